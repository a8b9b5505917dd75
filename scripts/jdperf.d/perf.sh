# shellcheck shell=bash
# perf: is it there, may it sample, and with what event.

# The user's own perfconfig (percent-limit, order=caller) cannot change what the verbs rely on. jdtool
# asks for perf's version.
export PERF=${PERF:-perf} PERF_CONFIG=/dev/null

need_perf() {
    command -v "$PERF" >/dev/null ||
        die "failed to find perf: apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora, RHEL, SUSE)"
}

# perf as this profile's files want it: build-ids are looked up inside the directory, never in
# ~/.debug.
perf_in_profile() {
    command "$PERF" --buildid-dir "$PROFILE/buildid" "$@"
}

perf_major_minor() {
    "$PERF" --version 2>/dev/null | sed -n 's/^perf version \([0-9]*\.[0-9]*\).*/\1/p'
}

has_counters() {
    local count
    count=$("$PERF" stat -x, -e "$1" -- true 2>&1 | tail -n 1) || return 1
    [[ $count =~ ^[0-9] ]]
}

# Says why perf cannot sample, after it failed with the message "$1".
explain_perf_failure() {
    local paranoid
    paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 0)
    if [[ $1 == *[Pp]ermission* || $1 == *"not permitted"* || $1 == *paranoid* || $1 == *"access"* ]]; then
        if ((EUID != 0 && paranoid > ${2:-2})); then
            say "perf cannot sample: kernel.perf_event_paranoid is $paranoid, and $(id -un) is not root"
            say "  run jdperf as root, or as root allow it until the next boot: sysctl kernel.perf_event_paranoid=${2:-1}"
        elif grep -qsE '^Seccomp:[[:space:]]*[12]' /proc/self/status; then
            say "perf cannot sample: a seccomp filter is on, as in containers, and refuses perf_event_open"
            say "  record from the host with jdperf record -p PID, or start the container with --cap-add PERFMON and a seccomp profile that allows perf_event_open"
        else
            say "perf cannot sample: the kernel refused it to $(id -un)"
            say "  run jdperf as root, or give perf the right: setcap cap_perfmon,cap_sys_ptrace+ep \$(command -v perf)"
        fi
    fi
    say "perf said:"
    printf '%s\n' "$1" | sed -e '/^$/d' -e 's/^/    /' | head -n 12 >&2
}

# Sets EVENT to what $1 asks for: cycles become cpu-clock, aloud, where there are no counters. Then
# tries it for real; dies with the reason when perf cannot sample.
choose_event() {
    local answer
    EVENT=${1:-cycles}
    if [[ $EVENT =~ ^(cpu-)?cycles(:[ukhpPG]+)?$ ]] && ! has_counters "$EVENT"; then
        EVENT=${EVENT/*cycles/cpu-clock}
        say "this machine has no hardware counter for ${1:-cycles}: sampling the timer $EVENT instead"
    fi
    make_scratch
    if ! answer=$("$PERF" record -BN -k mono -e "$EVENT" -o "$SCRATCH/probe.data" -- true 2>&1); then
        [[ $answer != *"event syntax error"* ]] || wrong_usage "perf knows no event '$EVENT' (perf list shows what there is)"
        explain_perf_failure "$answer"
        exit 1
    fi
    rm -f "$SCRATCH/probe.data"
    if ((EUID != 0)) && (($(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 0) > 1)); then
        say "only root may sample the kernel here: what the program does in it is not seen (kernel.perf_event_paranoid)"
    fi
}
