#!/usr/bin/env bash
# A stack walked in the kernel equals the copied stack of the same interrupt, frame for frame, also in an NMI, in a signal
# handler and while code is deoptimised. A recursion of 3,000 calls reaches its root, and is cut where --depth says so;
# interpreted frames have their names; a JVM in a chroot is walked, too; killed, nothing of it is left in the kernel; where
# it cannot be had, who makes its tables dies, or a JVM cannot be read, stacks are copied, and it is said. The default
# copies at first. Of virtual threads that were parked the callers in the heap are those of the JVM's own trace, whatever
# collector moves them; where they cannot be had the stack says so. The same of stacks of allocations, locks, exceptions and
# waits; JDAGENT_LONG=1: with each collector.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
((EUID == 0)) || skip "only root may walk stacks in the kernel"
[ "$jdk_major" -ge 17 ] || skip "JDK $jdk_major is not walked by a test"
compile

# record PROFILE KIND ARGUMENT... Status 3: too many stacks are cut, which the test asks for.
around=()
record() {
    "${around[@]}" "$jdperf" record --stacks "$2" -o "$scratch/$1" -e cpu-clock -F 499 "${@:3}" </dev/null >"$scratch/log" 2>"$scratch/err" ||
        [ $? = 3 ] || fail "$1: $(tail -n 5 "$scratch/err")"
    local why
    why=$(grep -m 1 'not walked in the kernel' "$scratch/err") || return 0
    # Whether the kernel takes the program depends on the clang that compiled it: a new one is no reason to leave this out.
    [[ $why != *'does not take the program'* || $(printf '%s\n' 5.17 "$(uname -r)" | sort -V | head -n 1) != 5.17 ]] ||
        fail "$why, compiled by $(clang --version 2>&1 | head -n 1)"
    skip "$why"
}

# count PROFILE KEY: a number of its scorecard.
count() {
    local found
    found=$(grep -o -m 1 "\"$2\": *[0-9]*" "$scratch/$1/scorecard.json" || true)
    echo "${found##*[!0-9]}" | grep . || echo 0
}

# of_event PROFILE EVENT KEY: the same of one of its events.
of_event() {
    python3 -c 'import json, sys
print(sum(event[sys.argv[3]] for event in json.load(open(sys.argv[1] + "/scorecard.json"))["events"] if event["name"] == sys.argv[2]))' \
        "$scratch/$1" "$2" "$3"
}

# What recordings of other events need.
has_uprobes() {
    (need_uprobes) >/dev/null && command -v python3 >/dev/null
}

# enough PROFILE KEY NUMBER: whether so many are there; else the program has to run for longer, for the tables are made by a
# thread that on a busy machine comes late.
enough() {
    (($(count "$1" "$2") >= $3)) && return
    note "$1: only $(count "$1" "$2") $2 of $(count "$1" samples), once more and longer"
    return 1
}

# same PROFILE SECONDS ARGUMENT...: each stack is walked and copied, and both are one. Where the copy ends first, or reaches
# code that nobody knows, it is the shorter. How long the program runs says its argument SECONDS.
events=() each=()
same() {
    local compared differing try arguments=("${@:3}")
    for try in 1 2 4 8; do
        record "$1" compare "${events[@]}" -- "${each[@]}" "$jdk/bin/java" -XX:CompileCommand=quiet "${arguments[@]/#SECONDS/$(($2 * try))}"
        compared=$(count "$1" compared)
        differing=$(count "$1" compared_differing)
        claim "walked as copied, $1" "$((compared - differing)) of $compared, $(count "$1" samples) samples"
        # Where the dump tells of code later than the JVM's own header does, the copy is the wrong one.
        # Such a one is rare: three of some 400,000 have been seen, and of those two are not explained.
        ((1000 * differing <= compared + 1000)) || fail "$1: $(grep -m 5 'differs from its copy' "$scratch/err")"
        grep -q 'walks: to the root [0-9]' "$scratch/err" || fail "$1: how walks ended is not said"
        ! enough "$1" compared 200 || return 0
    done
    fail "$1: too few"
}

same compiled 2 -XX:MaxInlineLevel=0 -XX:-Inline -cp "$classes" DeepChain SECONDS
same interpreted 2 -Xint -cp "$classes" DeepChain SECONDS
same churn 400 -cp "$classes" Churn SECONDS
same storm 3 -cp "$classes" Storm SECONDS
if [ "$jdk_major" -ge 21 ]; then
    same virtual 2 -cp "$classes" VirtualThreads SECONDS
fi

# frozen NAME CHAIN-IS-WHOLE ARGUMENT...: each stack of Frozen.burn is the trace that the JVM printed there, or is marked.
frozen() {
    local try good marked wrong copied
    for try in 1 2 4 8; do
        record "$1" kernel -- "$jdk/bin/java" -XX:CompileCommand=quiet -XX:+UnlockDiagnosticVMOptions -XX:+ShowHiddenFrames \
            "${@:3}" -cp "$classes" Frozen $((2 * try)) 60
        "$jdperf" export "$scratch/$1" collapsed -o "$scratch/stacks" 2>"$scratch/err" || fail "$1: $(cat "$scratch/err")"
        read -r good marked wrong < <(awk -f "$(dirname "$0")/frozen.awk" "$scratch/log" "$scratch/stacks")
        ! enough "$1" walked 200 || ((good + marked + wrong < 100)) || break
    done
    copied=$(($(count "$1" stacks) - $(count "$1" walked)))
    claim "frozen callers, $1" "$good whole, $marked marked (of $copied copied), $wrong wrong"
    ((good + marked + wrong >= 100)) || fail "$1: only $((good + marked + wrong)) stacks of it"
    ((1000 * wrong <= good + marked + 1000)) || fail "$1: $wrong stacks are not the JVM's own trace"
    ! grep -q 'Only --stacks kernel finds them' "$scratch/$1/scorecard.json" || fail "$1: what it does is its own remedy"
    # Nearly all are whole once the tables know of continuations, which on a busy machine takes a part of the time.
    [ "$2" = 0 ] || ((4 * good >= 3 * (good + marked - copied))) || fail "$1: of $((good + marked)) stacks $marked lack their callers"
}
if [ "$jdk_major" -ge 21 ]; then
    frozen serial 1 -XX:+UseSerialGC -Xmx32m
    [ "$long" = 0 ] || frozen parallel 1 -XX:+UseParallelGC -Xmx32m # of events below
    frozen g1 1 -XX:+UseG1GC -Xmx32m
    frozen wide 1 -Xint -XX:+UseSerialGC -XX:-UseCompressedOops -Xcheck:jni # which the agent asks otherwise for offsets
    frozen z 0 -XX:+UseZGC
fi

# frozen_events NAME ARGUMENT...: the same of stacks of events.
frozen_events() {
    local try event good marked wrong stacks missing
    for try in 1 2 4 8; do
        missing=''
        record "$1" kernel --alloc=64K --off-cpu --threads -- "$jdk/bin/java" -XX:CompileCommand=quiet -XX:+UnlockDiagnosticVMOptions \
            -XX:+ShowHiddenFrames -Djdk.virtualThreadScheduler.maxPoolSize=4 "${@:2}" -cp "$classes" Frozen $((4 * try)) 60 "$scratch/pipe"
        for event in alloc off-cpu virtual-wait; do
            "$jdperf" export "$scratch/$1" collapsed --event $event -o "$scratch/stacks" 2>"$scratch/err" || fail "$1: $(cat "$scratch/err")"
            read -r good marked wrong < <(awk -f "$(dirname "$0")/frozen.awk" "$scratch/log" "$scratch/stacks")
            stacks=$((good + marked + wrong))
            claim "frozen callers, $1, $event" "$good whole, $marked marked, $wrong wrong"
            ((1000 * wrong <= stacks + 1000)) || fail "$1: $event: $wrong stacks are not the JVM's own trace"
            # Some are copied before the tables are there, and some taken while a collection moves objects.
            ((stacks >= 50 && 4 * good >= 3 * stacks)) || missing="$missing $event: $good of $stacks;"
        done
        [ "$missing" ] || return 0
    done
    fail "$1: callers are missing:$missing"
}
if [ "$jdk_major" -ge 21 ] && part "events of virtual threads" has_uprobes; then
    mkfifo "$scratch/pipe"
    frozen_events parallel_events -XX:+UseParallelGC
    if [ "$long" = 1 ]; then
        frozen_events serial_events -XX:+UseSerialGC
        frozen_events g1_events -XX:+UseG1GC
    fi
fi

# Interpreted frames have their names by what the walk carries.
for try in 1 2 4 8; do
    record names kernel -- "$jdk/bin/java" -Xint -cp "$classes" DeepChain $((2 * try - 1))
    ! enough names walked 100 || break
done
(($(count names walked) >= 100)) || fail "names: only $(count names walked) of $(count names samples) walked"
at_least "$(count names interpreted_frames_named)" "$(count names interpreted_frames)" 99 || fail "names: interpreted frames without a name"

# Copies lack the callers of virtual threads: where a thread may carry these, walks begin at once.
if [ "$jdk_major" -ge 21 ]; then
    for try in 1 2 4 8; do
        record carried auto -F 99 -- "$jdk/bin/java" -cp "$classes" Frozen $((2 * try)) 60
        ! enough carried walked 50 || break
    done
    walked=$(count carried walked)
    copied=$(($(count carried stacks) - walked))
    claim "walked by default, of virtual threads" "$walked of $(count carried stacks)"
    ((walked >= 50 && copied < 200)) || fail "carriers: $walked stacks were walked, $copied copied"
fi

# Copies of events are small: where there are such events, walks begin at once, too. (400 frames are 100 KB.)
if has_uprobes; then
    for try in 1 2 4 8; do
        record few_events auto -F 49 --alloc=512K -- "$jdk/bin/java" -Xint -cp "$classes" Depths $((2 * try)) 400 waits
        ! enough few_events walked 50 || break
    done
    stacks=$(of_event few_events alloc stacks)
    claim "deep allocations, walked by default" "$(of_event few_events alloc stacks_rooted) of $stacks rooted"
    ((stacks >= 20)) || fail "few events: $stacks stacks"
    at_least "$(of_event few_events alloc stacks_rooted)" "$stacks" 90 || fail "few events: stacks end early"
fi

# Up to here JDKs differ.
my_part 0 "events, NMIs, a chroot, deep stacks, the default, and what is missing or dies" || exit 0

# By event: allocations and locks, exceptions, waits. Their weights are those of copies.
if part "events" has_uprobes; then
    events=(--alloc=64K --locks --exceptions --off-cpu --wakers -m 64M)
    same events 2 -cp "$classes" Events SECONDS alloc locks exceptions waits
    events=()
    for event in alloc exception off-cpu waker; do
        (($(of_event events $event samples) >= 20)) || fail "events: only $(of_event events $event samples) of $event"
    done
fi
# A uprobe's breakpoint leaves the pc behind a push that is not done, and the kernel steps over an endbr64 in a page of its own:
# samples of the clock meanwhile are whole as well. Without that one in twenty, and every other one, was not.
if part "breakpoints" has_uprobes; then
    for try in 1 2 4 8; do
        record breakpoints kernel --exceptions -m 64M -- "$jdk/bin/java" -cp "$classes" Throws $((3 * try)) 5
        (($(of_event breakpoints cpu-clock stacks) < 500)) || break
    done
    stacks=$(of_event breakpoints cpu-clock stacks)
    rooted=$(of_event breakpoints cpu-clock stacks_rooted)
    claim "stacks at breakpoints" "$rooted of $stacks rooted"
    ((stacks >= 500 && 100 * (stacks - rooted) <= stacks)) || fail "breakpoints: $rooted of $stacks are rooted"
fi

# Hardware counters interrupt x86 by NMI, as the exception of a breakpoint on the kernel's memory does (tests/in_nmi.c).
# jiffies: the address of jiffies_64, which do_timer adds to: add %rdi,jiffies_64(%rip)
jiffies() {
    local start bytes byte='[0-9a-f][0-9a-f]'
    start=$(awk '$3 == "do_timer" { print $1; exit }' /proc/kallsyms)
    bytes=$(bpftrace -e "BEGIN { \$i = 0; unroll(32) { printf(\"%02x\", *(uint8 *)kptr((uint64)0x$start + \$i)); \$i++; } exit(); }" 2>/dev/null |
        grep -E "^($byte){32}$")
    [[ $bytes =~ ^(($byte)*)48013d($byte)($byte)($byte)($byte) ]] || return 1
    local before=${BASH_REMATCH[1]} distance=$((16#${BASH_REMATCH[6]}${BASH_REMATCH[5]}${BASH_REMATCH[4]}${BASH_REMATCH[3]}))
    ((distance < 1 << 31)) || distance=$((distance - (1 << 32)))
    printf '%x\n' $((16#$start + ${#before} / 2 + 7 + distance))
}
address=$(jiffies || true)
if part "walks in an NMI" test -e "$JDAGENT_BUILD/tests/libin_nmi.so" && part "walks in an NMI: the address of jiffies_64, by bpftrace," test "$address"; then
    around=(env LD_PRELOAD="$JDAGENT_BUILD/tests/libin_nmi.so" IN_NMI_ADDRESS="$address")
    # One processor alone writes it: a program on each of the first two, where the others leave nobody idle.
    # shellcheck disable=SC2016
    each=(bash -c 'for cpu in 0 1; do taskset -c $cpu "$@" & done; wait' -)
    [ "$(nproc)" -eq 2 ] || each=()
    same nmi 3 -XX:MaxInlineLevel=0 -XX:-Inline -cp "$classes" DeepChain SECONDS
    around=() each=()
fi

# Behind a signal handler the stack goes on where the signal interrupted it.
around=(env IN_SIGNAL=1 LD_PRELOAD="$JDAGENT_BUILD/tests/libin_signal.so")
same signals 2 -XX:MaxInlineLevel=0 -XX:-Inline -cp "$classes" DeepChain SECONDS
around=()
"$jdperf" export "$scratch/signals" collapsed -o "$scratch/stacks" 2>"$scratch/err" || fail "signals: $(cat "$scratch/err")"
read -r all whole last others < <(awk -f "$(dirname "$0")/in_signal.awk" "$scratch/stacks")
claim "in a signal handler" "$whole of $all chains whole, $last % of the method that works; of others $others %"
((all >= 50 && 100 * whole >= 99 * all && 2 * last >= others)) || fail "signals: $whole of $all are whole, $last % of the last method, not $others %"

# In a chroot paths are not those that the kernel tells us.
mkdir "$scratch/root"
# shellcheck disable=SC2016
around=(unshare --mount --propagation private sh -c 'mount --rbind / "$0" && exec "$@"' "$scratch/root")
for try in 1 2 4 8; do
    record chroot kernel -- chroot "$scratch/root" "$jdk/bin/java" -cp "$classes" DeepChain $((2 * try - 1))
    ! enough chroot walked 100 || break
done
around=()
claim "walked in a chroot" "$(count chroot walked) of $(count chroot stacks)"
(($(count chroot walked) >= 100)) || fail "chroot: only $(count chroot walked) of $(count chroot stacks) walked"

# What was walked reaches the root, however deep: what does not was copied, before the tables were there.
deep=("$jdk/bin/java" -Xss16m -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,Depths.allocate" -cp "$classes" Depths)
for try in 1 2 4 8; do
    record deep kernel --depth 4000 -- "${deep[@]}" $((2 * try)) 3000
    ! enough deep walked 100 || break
done
walked=$(count deep walked)
copied=$(($(count deep stacks) - walked))
unrooted=$(($(count deep stacks) - $(count deep stacks_rooted)))
"$jdperf" export "$scratch/deep" collapsed -o "$scratch/stacks" 2>"$scratch/err" || fail "deep: $(cat "$scratch/err")"
read -r whole < <(awk '{ n = $NF; if (gsub(/Depths\.allocate/, "") >= 3001) whole += n } END { print whole + 0 }' "$scratch/stacks")
claim "deep recursion" "$walked walked, $whole of 3,000 calls, $unrooted unrooted, $copied copied"
((walked >= 100 && whole >= 50)) || fail "deep: $walked stacks were walked, $whole are whole"
((unrooted <= copied)) || fail "deep: $unrooted stacks do not reach their root, and $copied were copied"

# Deeper than a walk goes unless it is told: copied, where a copy has more of it, as of C2's small frames.
for try in 1 2 4 8; do
    record deeper kernel -- "${deep[@]::2}" -Xcomp -XX:-TieredCompilation "-XX:CompileCommand=compileonly,Depths::allocate" \
        "${deep[@]:2}" "$try" 1200
    "$jdperf" export "$scratch/deeper" collapsed -o "$scratch/stacks" 2>"$scratch/err2" || fail "deeper: $(cat "$scratch/err2")"
    read -r whole cut < <(awk '{ n = $NF; calls = gsub(/Depths\.allocate/, ""); whole += calls > 1200 ? n : 0; cut += calls > 900 && calls <= 1000 ? n : 0 }
        END { print whole + 0, cut + 0 }' "$scratch/stacks")
    ((whole < 50)) || break
done
claim "deeper than 1,000 frames" "$whole of 1,200 calls, $cut cut"
((whole >= 50 && whole > 4 * cut)) || fail "deeper: $whole stacks are whole, $cut are cut at 1,000 frames"

# Where a thread is switched away from others wait for the walk: it is cut there, whatever --depth says.
for try in 1 2 4 8; do
    record waits kernel --depth 4000 --off-cpu -- "${deep[@]}" "$try" 3000 waits
    "$jdperf" export "$scratch/waits" collapsed -o "$scratch/stacks" --event off-cpu 2>"$scratch/err2" || fail "waits: $(cat "$scratch/err2")"
    read -r whole cut < <(awk '{ n = $NF; calls = gsub(/Depths\.allocate/, ""); whole += calls > 3000 ? n : 0; cut += calls > 900 && calls <= 1000 ? n : 0 }
        END { print whole + 0, cut + 0 }' "$scratch/stacks")
    ((cut < 20)) || break
done
claim "deep waits" "$cut cut, $whole of 3,000 calls"
((cut >= 20 && !whole)) || fail "waits: $cut are cut at 1,000 frames, $whole are whole"
grep -q 'cut\|too deep' "$scratch/err" || fail "waits: nothing is said: $(cat "$scratch/err")"

for try in 1 2 4 8; do
    record cut kernel --depth 100 -- "${deep[@]}" $((2 * try - 1)) 3000
    ! enough cut walked 20 || break
done
grep -q 'cut\|too deep' "$scratch/err" || fail "--depth 100: nothing is said: $(cat "$scratch/err")"

# Nobody asked for it: the first 300 stacks are copied, and then most are walked.
for try in 1 2 4 8; do
    record default auto -- "$jdk/bin/java" -cp "$classes" DeepChain $((2 * try))
    ! enough default walked 200 || break
done
walked=$(count default walked)
copied=$(($(count default stacks) - walked))
claim "walked by default" "$walked of $(count default stacks)"
((walked >= 200 && copied >= 300)) || fail "default: $walked stacks were walked, $copied copied"

# The process that makes the tables dies: its recording goes on with copies, and says it once.
record dead kernel -- "$jdk/bin/java" -cp "$classes" DeepChain 3 &
recorder=$!
# The sampler is a child of jdtool's, whose parent is the function's shell; the walker is the sampler's.
walker_of() {
    local process
    for process in $(pgrep -P "$1" || true); do
        if [ "$(cat "/proc/$process/comm" 2>/dev/null)" = jdperf-walker ]; then
            walker=$process
        else
            walker_of "$process"
        fi
    done
    [ -n "${walker:-}" ]
}
wait_until 60 "process that makes the tables" walker_of "$recorder"
kill -KILL "$walker"
wait "$recorder" || fail "dead: the recording failed"
claim "tables' maker killed" "$(count dead walked) walked of $(count dead stacks)"
[ "$(grep -c 'stacks were copied from then on' "$scratch/err")" = 1 ] || fail "dead: it is not said once: $(cat "$scratch/err")"
(($(count dead stacks) >= $(count dead walked) + 20)) || fail "dead: only $(count dead stacks) stacks, $(count dead walked) walked"

# Killed: programs are gone with who had them open.
# has_program PID
has_program() {
    [ -n "$(find "/proc/$1/fd" -lname 'anon_inode:bpf-prog' 2>/dev/null)" ]
}
"$jdk/bin/java" -cp "$classes" DeepChain 600 >"$scratch/program" 2>&1 &
pid=$!
children+=("$pid")
setsid "$jdperf" record --stacks kernel -o "$scratch/killed" -e cpu-clock --off-cpu --locks -p "$pid" 2>"$scratch/err" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
# It names itself when it begins, which may be a moment after jdperf says that it records.
one_sampler() {
    mapfile -t samplers < <(pgrep -P "$recorder" -x jdperf-sampler || true)
    [ "${#samplers[@]}" = 1 ] && has_program "${samplers[0]}"
}
wait_until 60 "sampler with its program" one_sampler
for process in $(pgrep -s "$recorder" || true); do
    [ "$process" = "${samplers[0]}" ] || ! has_program "$process" || fail "killed: $(cat "/proc/$process/comm") has the program too"
done
kill -KILL "$recorder" "${samplers[0]}"
wait "$recorder" 2>/dev/null || true
for ((i = 0; i < 300; i++)); do
    [ -e "/proc/${samplers[0]}/fd/0" ] || break
    sleep 0.1
done
! has_program "${samplers[0]}" || fail "killed: a program is left"

# What looks like a JVM and cannot be read.
libjvm=$(find "$jdk/" -name libjvm.so -print -quit)
head -c 4096 /dev/zero >"$scratch/jit-1.dump"
record unread kernel -- python3 -c '
import mmap, os, sys, time
files = [os.open(name, os.O_RDONLY) for name in sys.argv[1:]]
maps = [mmap.mmap(file, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC) for file in files]
end = time.time() + 1
while time.time() < end: pass' "$libjvm" "$scratch/jit-1.dump"
grep -q 'dump of 1 JVMs cannot be read' "$scratch/err" || fail "unread: it is not said: $(cat "$scratch/err")"

# Where our own sampler is not at work.
"$jdperf" record --stacks kernel --sampler perf -o "$scratch/perf" -e cpu-clock -- "$jdk/bin/java" -version >"$scratch/log" 2>"$scratch/err" ||
    [ $? = 3 ] || fail "--sampler perf: $(tail -n 5 "$scratch/err")"
[ "$(grep -c 'not walked in the kernel' "$scratch/err")" = 1 ] || fail "--sampler perf: what is done instead is not said once: $(cat "$scratch/err")"
