#!/usr/bin/env bash
# What the packages contain. With JDAGENT_LONG=1 also that they work on a Debian 12 with nothing but its base, which
# takes root, debootstrap and some 300 MB from Debian's servers.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps is not installed (dpkg-dev)"
# make would look through all of the build again, once for each package; with ninja cpack asks for no such thing.
cpack --config "$JDAGENT_BUILD/CPackConfig.cmake" -D CPACK_CMAKE_GENERATOR=Ninja -B "$scratch" >"$scratch/log" 2>&1 ||
    fail "cpack: $(tail -n 20 "$scratch/log")"
deb=$(echo "$scratch"/jdagent_*.deb)
tarball=$(echo "$scratch"/jdagent-*.tar.gz)

dpkg-deb -c "$deb" >"$scratch/contents"
tar tzf "$tarball" >"$scratch/names"
[[ $(dpkg-deb -f "$deb" Version) == "$(sed -n 's/^project(jdagent VERSION \([0-9.]*\).*/\1/p' "$JDAGENT_SOURCE/CMakeLists.txt")" ]] ||
    fail "the .deb is version $(dpkg-deb -f "$deb" Version)"
for file in bin/jdperf bin/jdtool lib/libjdagent.so lib/libjdwriter.a include/jdwriter.h \
    lib/pkgconfig/jdwriter.pc lib/cmake/jdwriter/jdwriter-config.cmake share/man/man1/jdperf.1 \
    share/man/man1/jdtool.1 share/man/man7/libjdagent.7 \
    share/bash-completion/completions/jdperf share/bash-completion/completions/jdtool; do
    grep -qE " \./usr/$file(\.gz)?\$" "$scratch/contents" || fail "the .deb has no $file"
    grep -qE "/$file(\.gz)?\$" "$scratch/names" || fail "the .tar.gz has no $file"
done
! grep -E '\.(dump|class)$|perf\.data|/work/|/build/' "$scratch/contents" || fail "what is that doing there?"
dpkg-deb -f "$deb" Depends | grep -q 'libc6.*libdw1.*libelf1.*libzstd1.*libzydis' || fail "dependencies: $(dpkg-deb -f "$deb" Depends)"

[ "${JDAGENT_LONG:-0}" = 1 ] || exit 0
[ "$(id -u)" -eq 0 ] || skip "only root can make a bare machine; the packages' contents are fine"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"

machine=$scratch/machine
cat >"$scratch/Main.java" <<'END'
public class Main {
    public static void main(String[] arguments) {
        long end = System.nanoTime() + 2_000_000_000L, sum = 0;
        java.util.Map<Integer, Integer> counts = new java.util.HashMap<>();
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100_000; i++) {
                sum += counts.merge(i % 1000, 1, Integer::sum);
            }
        }
        System.out.println(sum > 0);
    }
}
END
# In the machine: install, profile, look, from both packages.
cat >"$scratch/inside" <<'END'
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /tmp
apt-get -qq update
apt-get -qq --yes install ./jdagent.deb openjdk-17-jdk-headless >install.log 2>&1
command -v perf >/dev/null
javac Main.java
look() {
    "$1" record -o "$2" -- java Main >"$2.out" 2>&1 || { status=$?; cat "$2.out"; exit $status; }
    "$1" report "$2" >"$2.report" 2>/dev/null
    grep -q 'Main\.main' "$2.report" || { head -n 20 "$2.report"; exit 1; }
    grep -m 1 'Main\.main' "$2.report"
}
look /usr/bin/jdperf from-deb
apt-get -qq --yes remove jdagent >/dev/null 2>&1
! command -v jdperf >/dev/null
mkdir /opt/jdagent
tar xzf jdagent.tar.gz -C /opt/jdagent --strip-components=1
look "$(find /opt/jdagent -path '*/bin/jdperf')" from-tar
END
cp "$deb" "$scratch/jdagent.deb"
cp "$tarball" "$scratch/jdagent.tar.gz"
# Mounts made inside vanish with the namespace.
unshare -m --propagation private bash -s "$machine" "$scratch" <<'END' || fail "the bare machine: $(tail -n 30 "$scratch/machine.log")"
set -eu
machine=$1 scratch=$2
{
    debootstrap --variant=minbase bookworm "$machine"
    mount -t proc proc "$machine/proc"
    mount -t sysfs sysfs "$machine/sys"
    mount -t tmpfs tmpfs "$machine/dev/shm"
    cp "$scratch"/{jdagent.deb,jdagent.tar.gz,Main.java,inside} "$machine/tmp/"
} >"$scratch/machine.log" 2>&1
if ! chroot "$machine" bash /tmp/inside >"$scratch/machine.out" 2>"$scratch/inside.log"; then
    if grep -q 'cannot sample' "$scratch/machine.out"; then exit 77; fi
    cat "$scratch/machine.out" "$scratch/inside.log" "$machine/tmp/install.log" >>"$scratch/machine.log"
    exit 1
fi
END
sed 's/^/-- /' "$scratch/machine.out"
