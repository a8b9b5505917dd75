#!/usr/bin/env bash
# jdperf still works where the kernel refuses BPF, CPU events or signals, as old kernels and containers do. It is said
# once, and samples are there.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
((EUID == 0)) || skip "others than root are refused that anyway"
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

# refused WHAT SAYS OPTION…: recorded where WHAT is refused; SAYS is said once, and by our own sampler there are samples.
refused() {
    local what=$1 says=$2 status=0
    shift 2
    rm -rf profile
    PERF=/bin/false "$JDAGENT_BUILD/tests/refuse" "$what" "$JDPERF" record -o profile -e cpu-clock -F 997 "$@" -- "$java" -version >output 2>&1 ||
        status=$?
    ((status == 0 || status == 3)) || fail "$what refused, $*: status $status"
    [[ $(grep -c "$says" output) = 1 ]] || fail "$what refused, $*: '$says' is not said once"
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
run 0 "$JDAGENT_BUILD/tests/refuse" filters "$JDPERF" report profile
says 'with all rights of root: this kernel'
chmod 755 "$WORK"
chown -R 65534 profile
run 0 "${AS_NOBODY[@]}" "$JDAGENT_BUILD/tests/refuse" filters "$JDPERF" report profile
says 'with all your rights: this kernel'
