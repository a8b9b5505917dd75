#!/usr/bin/env bash
# Every glibc since 2.17 loads the agent. With JDAGENT_LONG=1 also that it is attached to a JVM of Debian 11 (glibc
# 2.31), which takes root, debootstrap and some 200 MB from Debian's servers.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
agent=$JDAGENT_BUILD/libjdagent.so
readelf -d "$agent" | grep 'NEEDED.*\[libc\.so\.6\]' >/dev/null || skip "this build is not for glibc"

# By readelf, which knows aarch64's too.
versions=$(readelf -W --dyn-syms "$agent" | grep -oE '[A-Za-z_0-9]+@GLIBC_[0-9.]+' | sort -u)
(($(wc -l <<<"$versions") >= 50)) || fail "only these symbols have a version: $versions"
while IFS=@ read -r name version; do
    [[ $(printf '%s\n' "$version" GLIBC_2.17 | sort -V | tail -n 1) == GLIBC_2.17 ]] ||
        fail "$name is wanted as of $version: agent/old_glibc.c can name an earlier one"
done <<<"$versions"
! readelf -W -V "$agent" | grep 'GLIBC_ABI' || fail "the agent wants more of the loader than glibc 2.17 has"

[[ ${JDAGENT_LONG:-0} == 1 ]] || exit 0
((EUID == 0)) || skip "only root can make a machine"
for tool in debootstrap jattach; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
need_real_profile
compile_sample
machine=$WORK/machine jvm=''
trap '[[ -z $jvm ]] || kill -9 "$jvm" 2>/dev/null || :; rm -rf "$WORK"' EXIT
debootstrap --variant=minbase --include=ca-certificates bullseye "$machine" >log 2>&1 || skip "no Debian 11: $(tail -n 1 log)"
# inside COMMAND…: mounts vanish with the namespace.
inside() {
    # shellcheck disable=SC2016 # for the inner shell; exec all along: its pid is the command's
    exec unshare --mount --propagation private sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$machine" "$@"
}
(inside sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends openjdk-17-jre-headless') \
    >log 2>&1 || skip "no JDK for Debian 11: $(tail -n 1 log)"
mkdir "$machine/classes"
cp classes/* "$machine/classes/"
inside java -cp /classes Market 600 >jvm.out 2>&1 </dev/null &
jvm=$!
wait_until 60 JVM listens "$jvm"
run 0 "$JDPERF" record -o profile -d 2 -p "$jvm"
says '100.00 %'
run 0 "$JDPERF" report profile --limit 0
says 'Market.takeOrders()'
