#!/usr/bin/env bash
# jdperf still works where the kernel refuses BPF, CPU events or signals, as containers do, and what came after Linux 5.4,
# 5.10 and 5.15. With JDAGENT_LONG=1 also each call, flag and helper is refused alone. It is said once, samples are there,
# and nothing is left. On 4.18 it is said that jdperf cannot.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
((EUID == 0)) || skip "others than root are refused that anyway"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
refuse=$JDAGENT_BUILD/tests/refuse

# refused WHAT SAYS OPTION…: recorded where WHAT is refused; SAYS is said once ('': nothing is), and by our own sampler there
# are samples.
refused() {
    local what=$1 says=$2 status=0
    shift 2
    rm -rf profile
    PERF=/bin/false "$refuse" "$what" "$JDPERF" record -o profile -e cpu-clock -F 997 "$@" -- "$java" -version >output 2>&1 ||
        status=$?
    ((status == 0 || status == 3)) || fail "$what refused, $*: status $status"
    [[ ! $says || $(grep -c "$says" output) = 1 ]] || fail "$what refused, $*: '$says' is not said once"
    ! grep -q 'perf samples instead' output || fail "$what refused, $*: perf has to sample"
    grep -qE '^ *[1-9][0-9]* samples, [1-9]' output || fail "$what refused, $*: there are no samples"
}

refused bpf 'failed to load a BPF program that filters samples'
# A recording that cannot end what it started would wait for ever.
refused signals 'recording cpu-clock'
refused processors 'each thread is sampled by itself'
refused processors 'stacks are not walked in the kernel, but copied: that needs root or CAP_PERFMON' --stacks kernel
[[ $(uname -m) != x86_64 ]] || refused bpf 'stacks are not walked in the kernel, but copied' --stacks kernel

# Who reads a profile with all rights is told, root or not.
run 0 "$refuse" filters "$JDPERF" report profile
says 'with all rights of root: this kernel'
chmod 755 "$WORK"
chown -R 65534 profile
run 0 "${AS_NOBODY[@]}" "$refuse" filters "$JDPERF" report profile
says 'with all your rights: this kernel'

# ---- Older kernels ----

command -v jattach >/dev/null || skip 'jattach is not installed'
"$refuse" linux-5.4 true || skip "nothing here may be traced, by which older kernels are played"
compile_sample
"$java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dpause=20 -cp classes Calm 600 >/dev/null 2>&1 </dev/null &
jvm=$! watch=
trap 'kill -KILL $jvm $watch 2>/dev/null; rm -rf "$WORK"' EXIT

# left NAME: neither files in the JVM's /tmp, nor probes, nor processes.
left() {
    local found
    for _ in {1..50}; do
        found=$(
            find /tmp -maxdepth 1 -name "jdperf-$jvm.*"
            grep -h "jdperf-$jvm\.\|$JDAGENT_BUILD/libjdagent" /sys/kernel/tracing/uprobe_events 2>/dev/null
            pgrep -f "^[^ ]*jdtool.* -p $jvm( |$)"
        ) || :
        [[ $found ]] || return 0
        sleep 0.1
    done
    fail "$1: left behind: $found"
}

for verb in "record -p $jvm" "attach $jvm" "stop $jvm" "watch" "top $jvm" doctor jvms; do
    # shellcheck disable=SC2086 # words
    run 1 "$refuse" linux-4.18 "$JDPERF" $verb
    says "failed to ${verb%% *}: pidfd_open: Function not implemented"
    says "record with 'perf record -k mono -g', then run 'jdtool inject'"
    (($(wc -l <output) == 3)) || fail "$verb: more is said"
done

walks='stacks are not walked in the kernel, but copied'
reads='cannot confine who reads it'
# old KERNEL: a command and a running JVM are recorded, by perf as well; the JVM is watched, its profile looked at.
old() {
    local kernel=$1 status=0 slices
    [[ $(uname -m) != x86_64 || $kernel = 6.* ]] || refused "linux-$kernel" "$walks" --stacks kernel
    rm -rf profile kept
    run 0 "$refuse" "linux-$kernel" "$JDPERF" record -o profile -e cpu-clock -F 499 --off-cpu --alloc -p "$jvm" -d 1
    grep -qE '^ *off-cpu +[1-9]' output || fail "$kernel: no waits are recorded"
    grep -qE '^ *alloc +[1-9]' output || fail "$kernel: no allocations are recorded"
    [[ $kernel != 5.4 ]] || says 'failed to follow the scheduler'
    run 0 "$refuse" "linux-$kernel" "$JDPERF" report profile
    grep -q 'Market' output || fail "$kernel: nothing is reported"
    [[ $kernel = 5.15 || $kernel = 6.* ]] || says "$reads"
    for away in /etc/passwd ../x buildid/../../x; do
        ln -s "$away" profile/away
        run 2 "$refuse" "linux-$kernel" "$JDPERF" report profile
        says "the link $WORK/profile/away in this profile leads out of it"
        rm profile/away
    done
    "$refuse" "linux-$kernel" "$JDPERF" watch -p "$jvm" --name "floors-$$" --slice 1 -o kept >output 2>&1 &
    watch=$!
    for _ in {1..200}; do
        slices=$(find . -path './kept/*.pb.gz' | wc -l)
        ((slices == 0)) || break
        sleep 0.1
    done
    kill -TERM "$watch"
    wait "$watch" || status=$?
    watch=
    ((slices > 0)) || fail "$kernel: nothing is watched"
    ((status == 0)) || fail "$kernel: watch ends with $status"
    ! grep -q 'is not watched\|nothing is watched' output || fail "$kernel: it was not watched for a while"
    left "$kernel"
}
old 5.4
old 5.10
old 5.15

[[ ${JDAGENT_LONG:-0} == 1 ]] || exit 0
old 6.1
while read -r what; do
    case $what in
    probe_read_user | get_current_task_btf | task_pt_regs | loop) refused "$what" "$walks" --stacks kernel ;;
    pidfd_open | events) ;; # above; jdperf_doctor.sh
    *) refused "$what" '' --stacks kernel ;;
    esac
    left "$what"
done < <("$refuse" list)
