#!/usr/bin/env bash
# The agent cross-compiles for aarch64, and what libjdwriter writes under qemu-user verifies.
#
# With JDAGENT_CROSS=1 everything cross-compiles, the unit tests pass under qemu-user, and the agent in
# an arm64 OpenJDK writes a dump that verifies. That fetches some 100 MB of Debian packages and
# emulates a JVM, so it is on request only. The sysroot stays in the build directory.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

command -v aarch64-linux-gnu-gcc >/dev/null || skip "aarch64-linux-gnu-gcc is not installed"
# Since Debian 13 it is the same program by the second name.
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || skip "qemu-aarch64-static is not installed"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# cross OPTION...: configures and builds.
cross() {
    cmake -S "$JDAGENT_SOURCE" -B build -DJDAGENT_WERROR=ON \
        -DCMAKE_TOOLCHAIN_FILE="$JDAGENT_SOURCE/cmake/aarch64.cmake" "$@" >log 2>&1 ||
        fail "configure: $(tail -n 20 log)"
    cmake --build build -j "$(nproc)" >log 2>&1 || fail "build: $(grep -E 'error|warning|rror:' log)"
}

# check DUMP: jdtool has nothing to say against it.
check() {
    "$JDAGENT_BUILD/jdtool" verify "$1" || fail "jdtool verify"
    "$JDAGENT_BUILD/jdtool" dump "$1" | grep "e_machine 183" >/dev/null || fail "e_machine is not 183"
}

# toy PROGRAM: runs the example.
toy() {
    local pid
    "${emulator[@]}" "$1" 1000 2000 >out || fail "the example failed"
    [ "$(cat out)" = $'count_to_1000 returned 1000\ncount_to_2000 returned 2000' ] || fail "$(cat out)"
    check jit-*.dump
    pid=$(basename jit-*.dump .dump)
    rm -f "/tmp/perf-${pid#jit-}.map" jit-*.dump
}

if [ "${JDAGENT_CROSS:-0}" != 1 ]; then
    # Not optimised: the compiler's passes are those of all other builds, and take three quarters of the time.
    cross -DJDAGENT_TOOL=OFF -DJDAGENT_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug
    JDAGENT_LONG=0 JDAGENT_BUILD=$PWD/build "$JDAGENT_SOURCE/tests/shell/old_glibc.sh" || exit 1
    aarch64-linux-gnu-gcc -std=c17 -I"$JDAGENT_SOURCE/writer" -o example \
        "$JDAGENT_SOURCE/examples/toy-jit/toy-jit.c" build/writer/libjdwriter.a || fail "the example"
    emulator=("$qemu" -cpu neoverse-n1 -L /usr/aarch64-linux-gnu)
    toy ./example
    echo "-- the agent and libjdwriter; JDAGENT_CROSS=1 tests the rest, and an arm64 JVM"
    exit 0
fi

command -v apt-get >/dev/null || skip "no apt-get to fetch the arm64 packages with"
sysroot=${AARCH64_SYSROOT:-$JDAGENT_BUILD/aarch64-sysroot}
"$JDAGENT_SOURCE/scripts/aarch64-sysroot.sh" "$sysroot" >log 2>&1 ||
    skip "the arm64 packages cannot be fetched: $(tail -n 1 log)"
cross -DAARCH64_SYSROOT="$sysroot"
# Tests take their libraries apart with what reads them.
mkdir tools
for tool in objcopy strip; do
    ln -s "$(command -v "aarch64-linux-gnu-$tool")" "tools/$tool"
done
(cd build && PATH=$scratch/tools:$PATH ctest -L unit --output-on-failure) >log 2>&1 ||
    fail "unit tests under qemu-user: $(tail -n 60 log)"
echo "-- $(grep 'tests passed' log)"

emulator=("$qemu" -cpu neoverse-n1 -L "$sysroot")
java=("${emulator[@]}" "$sysroot/usr/lib/jvm/java-17-openjdk-arm64/bin/java" -XX:-UsePerfData)
cat >Main.java <<'END'
public class Main {
    public static void main(String[] arguments) {
        java.util.Map<Integer, Integer> counts = new java.util.HashMap<>();
        long sum = 0;
        for (int i = 0; i < 2_000_000; i++) {
            counts.merge(i % 1000, 1, Integer::sum);
            sum += counts.get(i % 1000);
        }
        System.out.println(sum);
    }
}
END
javac -d . --release 17 Main.java
# The agent walks down to its directory from "/", which qemu's -L makes the sysroot.
mkdir -p "$sysroot/dumps"
rm -f "$sysroot"/dumps/*
"${java[@]}" "-agentpath:$PWD/build/libjdagent.so=dir=/dumps" -cp . Main >out || fail "the JVM failed"
[ "$(cat out)" = 2001000000 ] || fail "the program printed $(cat out)"
mv "$sysroot"/dumps/jit-*.dump .
check jit-*.dump
"${emulator[@]}" build/jdtool verify jit-*.dump || fail "the arm64 jdtool verify"
methods=$("$JDAGENT_BUILD/jdtool" map jit-*.dump | grep -c 'java\.' || true)
[ "$methods" -ge 20 ] || fail "only $methods compiled methods"
echo "-- the dump of an arm64 JVM verifies, with $methods compiled methods"
rm jit-*.dump
toy build/examples/toy-jit/toy-jit
