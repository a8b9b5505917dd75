# shellcheck shell=bash
# jdperf doctor: what works here, and what to do about the rest.
#
# A check is a function check_NAME. It calls one of good, poor and bad with what it found; poor means
# that profiles suffer, bad that none can be taken, and both are given the remedy as well.

# shellcheck source=scripts/jdperf.d/perf.sh
. "$JDPERF_LIB/perf.sh"

# What the kernel tells; a test has other things told.
PROC=${JDPERF_PROC:-/proc}

doctor_usage() {
    cat <<END
usage: jdperf doctor [PID]

Checks what recording Java profiles needs on this machine, and in the JVM PID if
one is given: one line a check, with its state and what to do about it.

  ok    as it should be
  poor  profiles can be taken, but lack something
  BAD   no profile can be taken until this is mended

Exit status: 0, or 1 when something is BAD.
END
}

verb_doctor() {
    local check
    case ${1:-} in
    -h | --help) doctor_usage; return 0 ;;
    -*) wrong_usage "doctor: unknown option: $1" ;;
    esac
    (($# < 2)) || wrong_usage "doctor: one JVM at a time: $2"
    DOCTOR_STATUS=0
    for check in perf sampling counters clock stack_depth kernel_symbols agent jdtool java attach_tool \
        disassembler space build_id_cache leftovers; do
        CHECK=${check//_/ }
        "check_$check"
    done
    if (($#)); then
        # Not to attach is an answer here, so what jdtool says is shown as a check.
        CHECK=process
        check_process "$1" && for check in jdk attach dynamic_loading frame_pointers exact_lines libjvm libc session jvm_space; do
            CHECK=${check//_/ }
            "check_$check"
        done
    fi
    return "$DOCTOR_STATUS"
}

good() {
    printf 'ok    %-16s %s\n' "$CHECK" "$1"
}

poor() {
    printf 'poor  %-16s %s -> %s\n' "$CHECK" "$1" "$2"
}

unknown() {
    poor "not known: the JVM does not answer" "see attach"
}

bad() {
    printf 'BAD   %-16s %s -> %s\n' "$CHECK" "$1" "$2"
    DOCTOR_STATUS=1
}

has_perf() {
    command -v "$PERF" >/dev/null
}

check_perf() {
    local version major minor
    has_perf || { bad "not installed" "apt-get install linux-perf (Ubuntu: linux-tools-generic; Fedora, RHEL, SUSE: perf)"; return; }
    version=$(perf_major_minor)
    major=${version%%.*} minor=${version#*.}
    if [[ -z $version ]]; then
        poor "$("$PERF" --version 2>&1 | head -n 1): no version of Linux" "install perf 5.11 or later"
    elif ((major < 5 || (major == 5 && minor < 11))); then
        bad "$version cannot tell when sampling has begun (--control)" "install perf 5.11 or later"
    elif ((major < 7)); then
        good "$version; jdtool puts inlined methods into the stacks, this perf would not"
    else
        good "$version"
    fi
}

check_sampling() {
    local answer paranoid seccomp
    has_perf || { bad "needs perf" "see above"; return; }
    make_scratch
    paranoid=$(cat "$PROC/sys/kernel/perf_event_paranoid" 2>/dev/null || echo 0)
    if answer=$("$PERF" record -BN -e cpu-clock -o "$SCRATCH/probe.data" -- true 2>&1); then
        if ((EUID != 0 && paranoid > 1)); then
            poor "allowed for $(id -un), but not in the kernel: kernel.perf_event_paranoid is $paranoid" "run jdperf as root, or as root: sysctl kernel.perf_event_paranoid=1"
        else
            good "allowed for $(id -un)"
        fi
        return
    fi
    seccomp=$(awk '/^Seccomp:/ { print $2 }' "$PROC/self/status" 2>/dev/null || echo 0)
    if ((EUID != 0 && paranoid > 2)); then
        bad "kernel.perf_event_paranoid is $paranoid: only root may sample" "run jdperf as root, or as root: sysctl kernel.perf_event_paranoid=1"
    elif ((seccomp > 0)); then
        bad "a seccomp filter refuses perf_event_open, as in containers" "record from the host: jdperf record -p PID; or start the container with --cap-add PERFMON and a seccomp profile that allows perf_event_open"
    else
        bad "refused: $(grep -m 1 . <<<"$answer")" "run jdperf as root"
    fi
}

check_counters() {
    has_perf || return 0
    if has_counters cycles; then
        good "hardware counters: cycles can be sampled"
    else
        poor "no hardware counters: the timer cpu-clock serves instead (100 us at best, blind where interrupts are off)" "in a VM: have its host pass the PMU through"
    fi
}

check_clock() {
    has_perf || return 0
    if "$PERF" record -BN -k mono -e cpu-clock -o "$SCRATCH/probe.data" -- true >/dev/null 2>&1; then
        good "CLOCK_MONOTONIC accepted: samples and dumps share a clock"
    else
        bad "perf does not take -k mono" "install perf 4.1 or later on Linux 4.1 or later"
    fi
}

check_stack_depth() {
    local depth
    depth=$(cat "$PROC/sys/kernel/perf_event_max_stack" 2>/dev/null || echo 127)
    if ((depth >= 512)); then
        good "the kernel follows frame pointers $depth frames deep"
    else
        poor "the kernel follows frame pointers $depth frames deep only; Java stacks are often deeper" "as root, with no perf running: sysctl kernel.perf_event_max_stack=1024"
    fi
}

check_kernel_symbols() {
    local restrict
    restrict=$(cat "$PROC/sys/kernel/kptr_restrict" 2>/dev/null || echo 0)
    if ((restrict == 0 || (restrict == 1 && EUID == 0))); then
        good "kernel frames have names"
    else
        poor "kernel.kptr_restrict is $restrict: kernel frames have no names" "as root: sysctl kernel.kptr_restrict=0"
    fi
}

check_agent() {
    if [[ ! -r $JDPERF_AGENT ]]; then
        bad "not found at $JDPERF_AGENT" "$JDPERF_MISSING"
    else
        good "$JDPERF_AGENT"
    fi
}

check_jdtool() {
    if [[ ! -x $JDPERF_TOOL ]]; then
        poor "not found at $JDPERF_TOOL: perf inject --jit has to serve, without inlined frames" "$JDPERF_MISSING"
    elif ! "$JDPERF_TOOL" --help >/dev/null 2>&1; then
        poor "does not run: $("$JDPERF_TOOL" --help 2>&1 | head -n 1)" "apt-get install libelf1 libdw1 libzstd1 zlib1g liblzma5 libzydis4.0"
    else
        good "$JDPERF_TOOL"
    fi
}

check_java() {
    local java=java home version
    [[ ${JAVA_HOME:-} && -x ${JAVA_HOME:-}/bin/java ]] && java=$JAVA_HOME/bin/java
    if ! java=$(command -v "$java"); then
        poor "none on PATH" "apt-get install openjdk-17-jdk-headless; JVMs elsewhere can be recorded all the same"
        return
    fi
    home=$(readlink -f "$java")
    home=${home%/bin/java}
    version=$(sed -n 's/^JAVA_VERSION="\(.*\)"/\1/p' "$home/release" 2>/dev/null) || :
    if [[ -r $home/lib/src.zip || -r $home/src.zip ]]; then
        good "${version:-unknown version} in $home, with its sources"
    else
        poor "${version:-unknown version} in $home, without sources: annotate shows none for the JDK's methods" "apt-get install openjdk-${version%%.*}-source"
    fi
}

check_attach_tool() {
    if command -v jattach >/dev/null; then
        good "jattach"
    elif command -v jcmd >/dev/null; then
        poor "jcmd, which does not reach into containers" "apt-get install jattach"
    else
        poor "none: running JVMs cannot be attached to" "apt-get install jattach"
    fi
}

check_disassembler() {
    if command -v objdump >/dev/null && command -v addr2line >/dev/null; then
        good "objdump and addr2line, for annotate and source lines"
    else
        poor "no objdump or addr2line: no annotate, no source lines" "apt-get install binutils"
    fi
}

# free_kilobytes DIRECTORY
free_kilobytes() {
    df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'
}

tell_space() {
    local free
    free=$(free_kilobytes "$1")
    if [[ -z $free ]]; then
        poor "cannot tell for $1" "look with df"
    elif ((free < 100 * 1024)); then
        bad "$(human_size $((free * 1024))) in $1" "make room, or use -o with a directory elsewhere"
    elif ((free < 2 * 1024 * 1024)); then
        poor "$(human_size $((free * 1024))) in $1; a minute of dwarf stacks takes up to 1 GB a processor" "make room, use -o with a directory elsewhere, or --agent-options max=500M"
    else
        good "$(human_size $((free * 1024))) in $1"
    fi
}

check_space() {
    tell_space "$PWD"
}

check_build_id_cache() {
    local size=0
    [[ ! -d $HOME/.debug ]] || size=$(du -sk "$HOME/.debug" 2>/dev/null | cut -f 1)
    if ((size > 1024 * 1024)); then
        poor "$HOME/.debug holds $(human_size $((size * 1024)))" "jdperf clean --all; perf buildid-cache --purge-all empties all of it"
    else
        good "$HOME/.debug holds $(human_size $((size * 1024)))"
    fi
}

check_leftovers() {
    local count
    [[ -x $JDPERF_TOOL ]] || return 0
    count=$({ "$JDPERF_TOOL" live clean -n --all 2>/dev/null || :; } | wc -l)
    if ((count)); then
        poor "$count perf maps, dumps and directories of JVMs that have ended" "jdperf clean --all (-n lists them)"
    else
        good "no stale perf maps and dumps"
    fi
}

# Sets JVM to what jdtool tells of the JVM, by key, and JVM[silence] to its words where it does not
# answer.
check_process() {
    local line words answer status=0
    declare -gA JVM=()
    [[ -x $JDPERF_TOOL ]] || { bad "cannot be looked at without jdtool" "see above"; return 1; }
    make_scratch
    words=$SCRATCH/probe.words
    answer=$("$JDPERF_TOOL" live --agent "$JDPERF_AGENT" probe "$1" 2>"$words") || status=$?
    while IFS= read -r line; do
        [[ $line != *=* ]] || JVM[${line%%=*}]=${line#*=}
    done <<<"$answer"
    JVM[silence]=$(sed -e 's/^jdperf: *//' "$words" | tail -n 1)
    if ((status)); then
        bad "$(sed -e 's/^jdperf: *//' "$words" | head -n 1)" "give the pid of a JVM that is yours, or be root"
        return 1
    fi
    good "${JVM[pid]} is a JVM (JDK ${JVM[java]}) of ${JVM[user]}${JVM[elsewhere]:+, in namespaces of its own as ${JVM[elsewhere]}}"
}

check_attach() {
    if [[ ${JVM[user]} != "$(id -un)" && $EUID != 0 ]]; then
        bad "the JVM is another user's" "be ${JVM[user]}, or root"
    elif [[ ${JVM[answers]:-} ]]; then
        good "the JVM answers"
    elif [[ ${JVM[silence]} == *jattach*jcmd* ]]; then
        bad "neither jattach nor a jcmd that can reach it" "apt-get install jattach"
    else
        bad "the JVM does not answer" "${JVM[silence]}"
    fi
}

check_dynamic_loading() {
    [[ ${JVM[answers]:-} ]] || { unknown; return; }
    if [[ ${JVM[EnableDynamicAgentLoading]} == false ]]; then
        bad "the JVM runs with -XX:-EnableDynamicAgentLoading" "start it with -XX:+EnableDynamicAgentLoading, or with the agent: jdperf record -- java …"
    elif [[ ${JVM[java]} =~ ^[0-9]+$ && ${JVM[java]} -ge 21 && ! ${JVM[loading_allowed_by_argument]} ]]; then
        poor "JDK ${JVM[java]} prints a warning when an agent is loaded" "harmless; started with -XX:+EnableDynamicAgentLoading it prints none"
    else
        good "agents may be loaded"
    fi
}

check_frame_pointers() {
    [[ ${JVM[answers]:-} ]] || { unknown; return; }
    if [[ ${JVM[PreserveFramePointer]} == true ]]; then
        good "PreserveFramePointer is on: --stacks fp works, too"
    else
        good "PreserveFramePointer is off: stacks are copied and unwound as they arrive, as by default"
    fi
}

check_exact_lines() {
    # A diagnostic flag: a JVM that has these locked does not know it.
    [[ ${JVM[answers]:-} ]] || { unknown; return; }
    if [[ ${JVM[DebugNonSafepoints]} == true ]]; then
        good "DebugNonSafepoints is on: every instruction has its line"
    else
        poor "DebugNonSafepoints is off: code compiled before the agent comes has lines at calls and loop ends only" "start the JVM with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
    fi
}

# Those whose every claim scripts/matrix.sh has tried, see docs/jdks.md.
TESTED_JDKS=' 8 11 17 21 25 26 27 '

check_jdk() {
    local jdk=${JVM[java]:-}
    if grep -qs '/libj9vm[0-9]*\.so' "/proc/${JVM[pid]}/maps"; then
        poor "OpenJ9: names and lines of compiled code are what its JVMTI tells; no tiers, no inlined methods, interpreted frames stay nameless" "use a HotSpot JVM for those"
    elif [[ ! $jdk =~ ^[0-9]+$ || $jdk == 0 ]]; then
        poor "its JDK does not say which one it is" "see docs/jdks.md for what holds on which"
    elif [[ $TESTED_JDKS == *" $jdk "* ]]; then
        good "JDK $jdk, on which every claim has been tried"
    elif ((jdk > 27)); then
        poor "JDK $jdk is newer than 27, the newest that was tried: names and lines are JVMTI's and hold; tiers, interpreted frames and whole stacks hold if the agent says nothing" "look for 'jdagent: this JVM'\''s structures' on the JVM's stderr"
    else
        good "JDK $jdk; tried on those around it"
    fi
}

check_libjvm() {
    local file=${JVM[root]}${JVM[libjvm]:-}
    command -v readelf >/dev/null || { good "not looked at: no readelf"; return; }
    if ! readelf -W --dyn-syms "$file" 2>/dev/null | has gHotSpotVMStructs; then
        poor "libjvm.so tells nothing of its structures: no tiers, no frame sizes, interpreted frames stay nameless" "use a HotSpot JVM of JDK 8 or later"
    elif ! readelf -SW "$file" 2>/dev/null | has -E '\.symtab|\.gnu_debuglink'; then
        poor "libjvm.so is stripped: the JVM's own frames (compiler, GC) have no names" "install its debug symbols (Debian: openjdk-${JVM[java]}-dbg)"
    else
        good "its structures and symbols are there"
    fi
}

check_libc() {
    local machine
    machine=$(readelf -h "$JDPERF_AGENT" 2>/dev/null | sed -n 's/^ *Machine: *//p') || :
    if grep -qs '/ld-musl-' "$PROC/${JVM[pid]}/maps"; then
        if readelf -d "$JDPERF_AGENT" 2>/dev/null | has 'NEEDED.*libc\.so\.6'; then
            bad "the JVM runs on musl, the agent was built for glibc" "build the agent with musl-gcc (CC=musl-gcc cmake …)"
            return
        fi
    elif [[ $machine && $machine != "$(readelf -h "/proc/${JVM[pid]}/exe" 2>/dev/null | sed -n 's/^ *Machine: *//p')" ]]; then
        bad "the JVM's machine is not that of the agent ($machine)" "build the agent for it"
        return
    fi
    good "the agent fits the JVM's libc and machine"
}

check_session() {
    [[ ${JVM[answers]:-} ]] || { unknown; return; }
    [[ ${JVM[session]:-} ]] || { poor "the agent in it does not answer" "try again; another command may be at work"; return; }
    if [[ ${JVM[session]} == *state=failed* ]]; then
        poor "a session failed: ${JVM[session]}" "jdperf stop ${JVM[pid]}"
    else
        good "${JVM[session]}"
    fi
}

check_jvm_space() {
    CHECK='space for it'
    if [[ ${JVM[like_us]} ]]; then
        good "its dump goes into the profile's directory"
    else
        tell_space "${JVM[root]}/tmp"
    fi
}
