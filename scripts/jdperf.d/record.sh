# shellcheck shell=bash
# jdperf record: run a command, or watch a JVM, under perf; then name its code. What comes from the
# command line is in verb_record; how a command runs under perf, in run.sh; how a JVM that runs
# already is profiled, in running.sh.

# shellcheck source=scripts/jdperf.d/perf.sh
. "$JDPERF_LIB/perf.sh"
# shellcheck source=scripts/jdperf.d/inject.sh
. "$JDPERF_LIB/inject.sh"
# shellcheck source=scripts/jdperf.d/run.sh
. "$JDPERF_LIB/run.sh"
# shellcheck source=scripts/jdperf.d/running.sh
. "$JDPERF_LIB/running.sh"

record_usage() {
    cat <<END
usage: jdperf record [OPTION…] [--] COMMAND [ARGUMENT…]
       jdperf record [OPTION…] -p PID [-d SECONDS]
       jdperf record [OPTION…] -a [-d SECONDS]

Runs COMMAND with the agent in its JVMs and perf watching, then names the
generated code and says how good the profile is. A java command gets the agent
as arguments; any other command (mvn, a start script) through
JAVA_TOOL_OPTIONS, which all JVMs it starts take up. Ctrl-C ends the recording,
not the work on it. With -p it is a JVM that runs already: the agent is attached,
and stopped afterwards; PID may be a unique part of a name that jcmd -l shows.

  -o DIR              where everything of this profile goes (default:
                      $JDPERF_DEFAULT_DIR; an earlier profile is kept as DIR.old)
  -d, --duration SECONDS  stop recording after that time; the command goes on
  -F, --frequency HZ  samples a second and processor (default: 997; 199 with
                      dwarf stacks)
  -e, --event EVENT   what to sample on (default: cycles; cpu-clock where the
                      machine has no counters)
  -p, --pid PID       a JVM that runs already
  -a, --all           the whole machine; JVMs in it have to have the agent
                      (jdperf attach PID)
      --stacks KIND   fp, dwarf (works without frame pointers, needs more
                      room), none, auto (default: fp where the JVM has
                      -XX:+PreserveFramePointer, which a JVM that jdperf
                      starts gets, else dwarf)
      --stack-size N  bytes of stack copied with dwarf stacks (default: 65528)
  -m, --mmap-pages SIZE  perf's buffer for each processor, pages or a size as 8M:
                      what it cannot take is lost (default: 4M with dwarf
                      stacks for root, else perf's own)
      --agent-options LIST  key=value,… for the agent, see its options
      --injector jdtool|perf  what names the code (default: jdtool)
      --no-inject     leave that to jdperf inject
      --discard-raw   remove perf.data once a good perf.jit.data is made

The environment's PERF_RECORD_SECONDS and PERF_RECORD_FREQ are defaults for -d
and -F.
Exit status: the command's own, as perf record passes it on; else 0 done, 1 failed,
2 wrong usage, 3 the profile was taken, but it is bad: too many frames without a
name, or too few stacks that reach their root.
END
}

verb_record() {
    local out=$JDPERF_DEFAULT_DIR duration=${PERF_RECORD_SECONDS:-} frequency=${PERF_RECORD_FREQ:-}
    local event='' stacks=auto stack_size=65528 agent_options='' system_wide='' inject=yes
    local discard_raw='' pid='' buffer='' command
    read_options record 'out -o --output' 'duration -d --duration' 'frequency -F --frequency' \
        'event -e --event' 'pid -p --pid' 'system_wide=yes -a --all' 'stacks --stacks' \
        'stack_size --stack-size' 'buffer -m --mmap-pages' 'agent_options --agent-options' 'INJECTOR --injector' \
        'inject=no --no-inject' 'discard_raw=yes --discard-raw' \
        '+ jdperf record --help lists them' : "$@"
    command=("${MORE[@]}")
    [[ -z $duration ]] || is_number "$duration" || wrong_usage "record: the duration must be a number of seconds, a whole one from 1 on: $duration"
    [[ -z $frequency ]] || is_number "$frequency" || wrong_usage "record: the frequency must be a number, a whole one from 1 on: $frequency"
    if ! is_number "$stack_size" || ((stack_size > 65528 || stack_size % 8)); then
        wrong_usage "record: the stack size must be a multiple of 8 up to 65528: $stack_size"
    fi
    [[ $buffer =~ ^([0-9]+[BKMG]?)?$ ]] || wrong_usage "record: the buffer must be a number of pages, or a size as 8M: $buffer"
    [[ $stacks =~ ^(auto|fp|dwarf|none)$ ]] || wrong_usage "record: unknown kind of stacks: $stacks (auto, fp, dwarf, none)"
    [[ ! ,$agent_options, =~ ,mode=([^,]*), || +${BASH_REMATCH[1]}+ == *+jitdump+* ]] ||
        wrong_usage "record: mode=${BASH_REMATCH[1]} writes no dump, which a recording needs: leave it out, or mode=jitdump+${BASH_REMATCH[1]}"
    check_injector
    [[ ${#command[@]} -gt 0 || $system_wide || $pid ]] || wrong_usage "record: what shall be recorded? Give a command, -p PID or -a"
    [[ -z $pid || (${#command[@]} -eq 0 && -z $system_wide) ]] || wrong_usage "record: -p stands alone, without a command or -a"
    ((${#command[@]} == 0)) || command -v -- "${command[0]}" >/dev/null ||
        die "failed to run ${command[0]}: no such command$(java_hint "${command[0]}")"

    need_perf
    need_agent
    if [[ $pid ]]; then
        target_find "$pid"
        need_attach_tool
        # It would leave its files in the staging directory, which does not last.
        [[ $INJECTOR != perf ]] || target_is_like_us ||
            wrong_usage "record: --injector perf cannot serve another user's JVM or one in a container"
    fi
    [[ $stacks != auto ]] || record_choose_stacks
    [[ $frequency ]] || { [[ $stacks == dwarf ]] && frequency=199 || frequency=997; }
    choose_event "$event"
    create_profile "$out"
    profile_set "$PROFILE" command "${command[*]@Q}"
    profile_set "$PROFILE" event "$EVENT"
    profile_set "$PROFILE" frequency "$frequency"
    profile_set "$PROFILE" stacks "$stacks"

    record_perf_arguments
    record_estimate
    [[ -z $pid ]] || running_attach
    record_run
    [[ -z $pid ]] || running_detach
    local status=0
    if [[ $inject == yes ]]; then
        inject_profile || status=$?
        if [[ $discard_raw ]]; then
            if ((status == 0)); then
                rm -f "$PROFILE/perf.data"
            else
                say "perf.data is kept: jdperf inject $out names it once the cause is mended"
            fi
        fi
        [[ $status == 1 ]] || say "look at it with: jdperf report $(printf %q "$out")"
    fi
    record_command_status || status=$?
    trap - INT TERM HUP
    return "$status"
}

# Sets stacks to what reaches the root in this JVM.
record_choose_stacks() {
    stacks=fp
    [[ $pid ]] || return 0
    target_flag PreserveFramePointer || die "process $TARGET does not answer: $(target_silence)"
    if [[ $FLAG != true ]]; then
        stacks=dwarf
        say "process $TARGET runs without -XX:+PreserveFramePointer: copying stacks (--stacks dwarf) instead of following frame pointers"
    fi
}

java_hint() {
    [[ ${1##*/} != java && ${1##*/} != javac ]] ||
        printf '%s' ': apt-get install openjdk-17-jdk-headless, or give the path of a java'
}

# Sets PERF_ARGUMENTS from what verb_record parsed.
record_perf_arguments() {
    # A named clock is what ties samples to the stamps in the dump.
    PERF_ARGUMENTS=(record -k mono -e "$EVENT" -F "$frequency" -o "$PROFILE/perf.data")
    [[ -z $pid ]] || PERF_ARGUMENTS+=(-p "$TARGET")
    case $stacks in
    fp) PERF_ARGUMENTS+=(--call-graph fp) ;;
    dwarf)
        PERF_ARGUMENTS+=(--call-graph "dwarf,$stack_size")
        # Stacks lead through files that no sample hits, and a container's are gone with it.
        [[ ! $pid || $TARGET_SAME_FILES ]] || PERF_ARGUMENTS+=(--buildid-all)
        ;;
    esac
    # perf's own 512K hold eight copied stacks. Only root may have more than perf_event_mlock_kb.
    [[ $buffer || $stacks != dwarf || $EUID != 0 ]] || buffer=4M
    [[ -z $buffer ]] || PERF_ARGUMENTS+=(-m "$buffer")
}

# Sets RATE: what copied stacks take in a second when all processors are busy. Warns where that could
# fill the disk.
record_estimate() {
    local bytes space
    RATE=''
    [[ $stacks == dwarf ]] || return 0
    bytes=$(($(nproc) * frequency * stack_size))
    RATE=" (up to $(human_size "$bytes")/s)"
    space=$(($(stat -f -c '%a * %S' "$PROFILE")))
    ((bytes * ${duration:-60} < space)) ||
        say "this may fill the disk, which has $(human_size "$space"): lower -d, -F or --stack-size, or give another -o DIR"
}

# Sets AGENT_OPTIONS: the user's, and ours where the user has none (the agent takes no key twice).
record_agent_options() {
    AGENT_OPTIONS=$agent_options
    add_agent_option dir "$PROFILE"
    [[ $stacks != dwarf ]] || add_agent_option methods on
    # The agent would go on for the command's whole life.
    [[ -z $duration ]] || add_agent_option duration $((duration + 2))
}

add_agent_option() {
    [[ ,$AGENT_OPTIONS, =~ ,$1[=,] ]] || AGENT_OPTIONS+=${AGENT_OPTIONS:+,}$1=$2
}

# Sets COMMAND_LINE: the command with the agent in it, or in its environment.
record_command_line() {
    local java_options word i
    record_agent_options
    # An attached agent cannot switch DebugNonSafepoints on for code that is there already, and a
    # user's own later -XX:-… still wins.
    java_options=(-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints)
    [[ $stacks != fp ]] || java_options+=(-XX:+PreserveFramePointer)
    java_options+=("-agentpath:$JDPERF_AGENT=$AGENT_OPTIONS")

    # `env A=B java …` runs java too.
    i=0
    if [[ ${command[0]##*/} == env ]]; then
        for ((i = 1; i < ${#command[@]}; i++)); do
            [[ ${command[i]} == *=* ]] || break
        done
    fi
    if [[ $i -lt ${#command[@]} && ${command[i]##*/} == java ]]; then
        COMMAND_LINE=("${command[@]:0:i+1}" "${java_options[@]}" "${command[@]:i+1}")
        return
    fi
    # HotSpot parts JAVA_TOOL_OPTIONS at white space, but for what stands in quotes.
    local quoted=()
    for word in "${java_options[@]}"; do
        [[ $word == *[[:space:]]* ]] && word=\"$word\"
        quoted+=("$word")
    done
    say "giving the agent to every JVM that ${command[0]##*/} starts, through JAVA_TOOL_OPTIONS"
    COMMAND_LINE=(env "JAVA_TOOL_OPTIONS=${JAVA_TOOL_OPTIONS:+$JAVA_TOOL_OPTIONS }${quoted[*]}" "${command[@]}")
}
