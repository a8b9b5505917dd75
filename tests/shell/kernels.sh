#!/usr/bin/env bash
# Distributions' kernels, 4.15 to 6.12: jdperf samples a JVM that it starts and one that runs, with allocations and waits;
# stacks are walked from 5.17 on, each equal to its copy, and copied below; nothing is left. On 4.15 it is said that jdperf
# cannot.
#
# Kernels of Debian and Ubuntu (10 to 70 MB each) and this machine's Debian (debootstrap) run in machines of QEMU (Debian:
# qemu-system-x86), each for some five minutes. KERNEL_MACHINES names a directory that keeps them, KERNELS those to try.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

[ "${JDAGENT_LONG:-0}" = 1 ] || skip "takes half an hour; set JDAGENT_LONG=1"
[ "$(uname -m)" = x86_64 ] || skip "the kernels are of x86-64"
for tool in cpio curl debootstrap dpkg-deb javac qemu-system-x86_64 xz; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
((EUID == 0)) || skip "debootstrap needs root"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
machines=${KERNEL_MACHINES:-$JDAGENT_BUILD/kernel-machines}
mkdir -p "$machines"
machines=$(cd "$machines" && pwd)
read -r -a kernels <<<"${KERNELS:-4.15 5.4 5.10 5.15 6.1 6.12}"

# Where a version is: its repository, the index of its packages there, and what the package's file is called.
ubuntu=http://archive.ubuntu.com/ubuntu
debian=http://deb.debian.org/debian
declare -A places=(
    [4.15]="$ubuntu dists/bionic-updates/main linux-image-unsigned-4.15.0-[0-9]*-generic_"
    [5.4]="$ubuntu dists/focal-updates/main linux-image-unsigned-5.4.0-[0-9]*-generic_"
    [5.10]="http://security.debian.org/debian-security dists/bullseye-security/main linux-image-5.10.0-[0-9]*-amd64_"
    [5.15]="$ubuntu dists/jammy-updates/main linux-image-unsigned-5.15.0-[0-9]*-generic_"
    [6.1]="$debian dists/bookworm/main linux-image-6.1.0-[0-9]*-amd64_"
    [6.12]="$debian dists/trixie/main linux-image-6.12.[^-]*-amd64_"
)

# fetch VERSION: its kernel, into $machines/VERSION.
fetch() {
    local repository index name file
    [ ! -e "$machines/$1" ] || return 0
    read -r repository index name <<<"${places[$1]}"
    file=$(curl -fsS --max-time 120 "$repository/$index/binary-amd64/Packages.xz" | xz -dc | sed -n "s,^Filename: \(.*/$name.*\),\1,p" | tail -n 1)
    curl -fsS --max-time 600 -o kernel.deb "$repository/$file"
    rm -rf kernel
    dpkg-deb -x kernel.deb kernel
    mv kernel/boot/vmlinuz-* "$machines/$1"
}
for kernel in "${kernels[@]}"; do
    (fetch "$kernel") >log 2>&1 || skip "Linux $kernel cannot be fetched: $(tail -n 1 log)"
done

# The machine's own Debian: what we are built for.
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
mapfile -t libraries < <(ldd "$JDAGENT_BUILD/jdtool" | awk '/=> \// { print $3 }' | xargs -n 1 readlink -f |
    while read -r library; do dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null || dpkg -S "${library#/usr}"; done |
    sed 's/:.*//' | sort -u)
if [ ! -e "$machines/root/etc/made" ]; then
    unshare -m --propagation private debootstrap --variant=minbase \
        --include="$(IFS=,; echo "${libraries[*]}"),default-jdk-headless,libbpf1,linux-perf,jattach,procps,util-linux,gawk" "$suite" "$machines/root" "$debian" >log 2>&1 ||
        skip "no Debian $suite can be fetched: $(tail -n 1 log)"
    : >"$machines/root/etc/made"
fi
DESTDIR=$scratch/overlay cmake --install "$JDAGENT_BUILD" --prefix /opt >log 2>&1 || fail "install: $(tail -n 5 log)"
mkdir -p overlay/classes
javac --release 17 -nowarn -d overlay/classes "$JDAGENT_SOURCE/java-tests/programs/"{DeepChain,Allocates}.java 2>log || fail "$(cat log)"

# What the machine does. Emulated interrupts are slow, and the kernel would lower the rate of samples.
cat >overlay/init <<'END'
#!/bin/bash
export PATH=/opt/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp
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
# said NAME OPTION...: what is said, and the numbers of the scorecard.
said() {
    jdperf record --sampler own -F 199 -o "$@" </dev/null 2>&1 | sed "s/^/$1 /"
    [ ! -e "$1/scorecard.json" ] || grep -E '"(samples|walked|compared|compared_differing|jvms?|stacks|stacks_rooted)"|"name"' "$1/scorecard.json" | sed "s/^/$1 /"
}
said started -- java -cp /classes DeepChain 5
said walked --stacks kernel -- java -cp /classes DeepChain 20
said compared --stacks compare -- java -XX:-Inline -cp /classes DeepChain 20
mkfifo numbers
java -cp /classes Allocates <numbers >/dev/null &
jvm=$!
(while echo 4 && sleep 0.1; do :; done) >numbers &
sleep 5
said events --stacks kernel --alloc --off-cpu --exceptions -p "$jvm" -d 15s
kill -KILL %2 "$jvm"
wait
for _ in {1..100}; do # who removes the probes goes on by itself
    pgrep -x jdperf-guardian >/dev/null || break
    sleep 0.1
done
echo "left: $(pgrep -l jd) $(ls /tmp | grep -v '^hsperfdata\|^started\|^walked\|^compared\|^events\|^numbers') $(cat /sys/kernel/tracing/uprobe_events)"
dmesg | grep -E 'BUG|WARNING|Oops' | sed 's/^/kernel: /'
echo "the machine has done all"
echo o >/proc/sysrq-trigger
sleep 60
END
chmod +x overlay/init
{
    (cd "$machines/root" && find . \( -path ./boot -o -path './usr/share/[dlmz]*' -o -path ./var/cache -o -path ./var/lib/apt -o -name jmods -o -name '*.a' \) \
        -prune -o -print | cpio -o -H newc --quiet)
    (cd overlay && find . | cpio -o -H newc --quiet)
} >root

# number PROFILE KEY
number() {
    local found
    found=$(sed -n "s/\r//; s/^$1  *\"$2\": *\([0-9]*\),*\$/\1/p" console | head -n 1)
    echo "${found:-0}"
}

# of_event NAME: how many samples of it.
of_event() {
    local found
    found=$(sed -n "s/\r//; s/^events .*\"name\": \"$1\".*\"samples\": \([0-9]*\).*/\1/p" console | head -n 1)
    echo "${found:-0}"
}

# One thread of QEMU (7.2): with two, a third of JVMs crash in code that HotSpot patches for another processor, without us, too.
for kernel in "${kernels[@]}"; do
    timeout 1200 qemu-system-x86_64 -cpu max -accel tcg,thread=single -smp 2 -m 5120 -kernel "$machines/$kernel" -initrd root \
        -append "console=ttyS0 rdinit=/init panic=5 quiet mitigations=off clocksource=tsc tsc=reliable" -nographic -no-reboot -nic none </dev/null >console 2>&1 ||
        true
    [ ! "${KERNEL_MACHINES:-}" ] || cp console "$machines/console-$kernel"
    grep -q 'the machine has done all' console || fail "Linux $kernel: the machine: $(tail -n 20 console)"
    ! grep '^kernel: ' console || fail "Linux $kernel: the kernel complains"
    if [ "$kernel" = 4.15 ]; then
        grep -q '^started .*Linux has it from 5.3 on' console || fail "Linux $kernel: it is not said that jdperf cannot: $(grep '^started' console)"
        continue
    fi
    grep -q $'^left:  *\r*$' console || fail "Linux $kernel: $(grep '^left:' console)"
    for profile in started events; do
        (($(number "$profile" samples) >= 100)) || fail "Linux $kernel: $profile: $(grep "^$profile" console)"
    done
    for event in alloc off-cpu; do
        (($(of_event "$event") >= 10)) || fail "Linux $kernel: $(of_event "$event") samples of $event: $(grep '^events' console)"
    done
    # The program that limits events of probes is taken from 5.15 on.
    [ "$(printf '%s\n' 5.15 "$kernel" | sort -V | head -n 1)" != 5.15 ] || ! grep 'each exception is recorded' console ||
        fail "Linux $kernel: exceptions are not limited"
    if [ "$(printf '%s\n' 5.17 "$kernel" | sort -V | head -n 1)" = 5.17 ]; then
        ! grep 'not walked in the kernel' console || fail "Linux $kernel: not walked"
        compared=$(number compared compared) differing=$(number compared compared_differing)
        ((compared >= 200 && differing == 0)) || fail "Linux $kernel: $differing of $compared differ"
        echo "-- Linux $kernel: $(number walked walked) of $(number walked samples) walked, $compared equal to their copies"
        (($(number walked walked) >= 200)) || fail "Linux $kernel: too few are walked: $(grep '^walked' console)"
    else
        [ "$(grep -c '^walked .*not walked in the kernel' console)" = 1 ] || fail "Linux $kernel: it is not said once that stacks are copied: $(grep '^walked' console)"
    fi
    echo "-- Linux $kernel: $(number started samples) samples of a started JVM; of a running one $(of_event alloc) allocations, $(of_event off-cpu) waits"
done
