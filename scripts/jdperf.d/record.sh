# shellcheck shell=bash
# jdperf record: run a command, or watch a JVM, under perf; then name its code.
#
# The command is started by jdperf itself, held until perf watches it, and let go: so its exit
# status, its terminal and its signals are its own, and perf can stop before it does.

# shellcheck source=scripts/jdperf.d/perf.sh
. "$JDPERF_LIB/perf.sh"
# shellcheck source=scripts/jdperf.d/inject.sh
. "$JDPERF_LIB/inject.sh"

record_usage() {
    cat <<END
usage: jdperf record [OPTION…] [--] COMMAND [ARGUMENT…]
       jdperf record [OPTION…] -a [-d SECONDS]

Runs COMMAND with the agent in its JVMs and perf watching, then names the
generated code and says how good the profile is. A java command gets the agent
as arguments; any other command (mvn, a start script) through
JAVA_TOOL_OPTIONS, which all JVMs it starts take up. Ctrl-C ends the recording,
not the work on it.

  -o DIR              where everything of this profile goes (default:
                      $JDPERF_DEFAULT_DIR; an earlier profile is kept as DIR.old)
  -d, --duration SECONDS  stop recording after that time; the command goes on
  -F, --frequency HZ  samples a second and processor (default: 997; 199 with
                      dwarf stacks)
  -e, --event EVENT   what to sample on (default: cycles; cpu-clock where the
                      machine has no counters)
  -a, --all           the whole machine, not only the command
      --stacks KIND   fp, dwarf (works without frame pointers, needs more
                      room), none, auto (default: fp, for a JVM that jdperf
                      starts gets -XX:+PreserveFramePointer)
      --stack-size N  bytes of stack copied with dwarf stacks (default: 65528)
      --agent-options LIST  key=value,… for the agent, see its options
      --injector jdtool|perf  what names the code (default: jdtool)
      --no-inject     leave that to jdperf inject
      --discard-raw   remove perf.data once perf.jit.data is made

The environment's PERF_RECORD_SECONDS and PERF_RECORD_FREQ are defaults for -d
and -F.
Exit status: 0 done, 1 failed or the command failed, 2 wrong usage,
3 the profile was taken, but too much of it has no name.
END
}

verb_record() {
    local out=$JDPERF_DEFAULT_DIR duration=${PERF_RECORD_SECONDS:-} frequency=${PERF_RECORD_FREQ:-}
    local event='' stacks=auto stack_size=65528 agent_options='' system_wide='' inject=yes
    local discard_raw='' command=()
    while (($#)); do
        case $1 in
        --) ;;
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
        -o | --output) need_value "$@"; out=$2; shift 2 ;;
        -d | --duration) need_value "$@"; duration=$2; shift 2 ;;
        -F | --frequency) need_value "$@"; frequency=$2; shift 2 ;;
        -e | --event) need_value "$@"; event=$2; shift 2 ;;
        -a | --all) system_wide=yes; shift ;;
        --stacks) need_value "$@"; stacks=$2; shift 2 ;;
        --stack-size) need_value "$@"; stack_size=$2; shift 2 ;;
        --agent-options) need_value "$@"; agent_options=$2; shift 2 ;;
        --injector) need_value "$@"; INJECTOR=$2; shift 2 ;;
        --no-inject) inject=no; shift ;;
        --discard-raw) discard_raw=yes; shift ;;
        -h | --help) record_usage; return 0 ;;
        --) shift; command=("$@"); break ;;
        -*) wrong_usage "record: unknown option: $1 (jdperf record --help lists them)" ;;
        *) command=("$@"); break ;;
        esac
    done
    [[ -z $duration ]] || is_number "$duration" || wrong_usage "record: the duration must be a number of seconds: $duration"
    [[ -z $frequency ]] || is_number "$frequency" || wrong_usage "record: the frequency must be a number: $frequency"
    if ! is_number "$stack_size" || ((stack_size > 65528 || stack_size % 8)); then
        wrong_usage "record: the stack size must be a multiple of 8 up to 65528: $stack_size"
    fi
    [[ $stacks =~ ^(auto|fp|dwarf|none)$ ]] || wrong_usage "record: unknown kind of stacks: $stacks (auto, fp, dwarf, none)"
    check_injector
    ((${#command[@]})) || [[ $system_wide ]] || wrong_usage "record: what shall be recorded? Give a command, -p PID or -a"
    ((${#command[@]} == 0)) || command -v -- "${command[0]}" >/dev/null ||
        die "failed to run ${command[0]}: no such command$(java_hint "${command[0]}")"

    need_perf
    need_agent
    [[ $stacks == auto ]] && stacks=fp
    [[ $frequency ]] || { [[ $stacks == dwarf ]] && frequency=199 || frequency=997; }
    choose_event "$event"
    create_profile "$out"
    profile_set "$PROFILE" command "${command[*]@Q}"
    profile_set "$PROFILE" event "$EVENT"
    profile_set "$PROFILE" frequency "$frequency"
    profile_set "$PROFILE" stacks "$stacks"

    record_perf_arguments
    record_run
    local status=0
    if [[ $inject == yes ]]; then
        inject_profile || status=$?
        [[ -z $discard_raw || $status == 1 ]] || rm -f "$PROFILE/perf.data"
        [[ $status == 1 ]] || say "look at it with: jdperf report $out"
    fi
    record_command_status || status=1
    trap - INT TERM HUP
    return "$status"
}

java_hint() {
    [[ ${1##*/} != java && ${1##*/} != javac ]] ||
        printf '%s' ': apt-get install openjdk-17-jdk-headless, or give the path of a java'
}

# Sets PERF_ARGUMENTS from what verb_record parsed.
record_perf_arguments() {
    # A named clock is what ties samples to the stamps in the dump.
    PERF_ARGUMENTS=(record -k mono -e "$EVENT" -F "$frequency" -o "$PROFILE/perf.data")
    case $stacks in
    fp) PERF_ARGUMENTS+=(--call-graph fp) ;;
    dwarf) PERF_ARGUMENTS+=(--call-graph "dwarf,$stack_size") ;;
    esac
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

# Starts the command held back, perf watching it, and lets it go. Returns when perf has ended:
# because the command has, the time is over, or the user pressed Ctrl-C. HELD is the command's
# process, empty when there is none.
record_run() {
    local timer='' go
    HELD='' INTERRUPTED=''
    make_scratch
    mkfifo "$SCRATCH/go" "$SCRATCH/control" "$SCRATCH/ack"
    if ((${#command[@]})); then
        record_command_line
        # bash starts asynchronous commands deaf to Ctrl-C and without a terminal.
        (
            trap - INT QUIT
            trap '' EXIT
            read -r go <"$SCRATCH/go"
            [[ $go == go ]] || exit 125
            exec "${COMMAND_LINE[@]}"
        ) <&0 &
        HELD=$!
        [[ $system_wide ]] || PERF_ARGUMENTS+=(-p "$HELD")
    fi
    [[ -z $system_wide ]] || PERF_ARGUMENTS+=(-a)

    trap 'INTERRUPTED=yes' INT
    trap '[[ -z $HELD ]] || kill -TERM "$HELD" 2>/dev/null; kill -INT "$PERF_PID" 2>/dev/null' TERM HUP
    if ! record_start_perf; then
        [[ -z $HELD ]] || echo no >"$SCRATCH/go"
        exit 1
    fi
    say "recording $EVENT at $frequency Hz, stacks: $stacks${duration:+, for $duration s}"
    [[ -z $HELD ]] || echo go >"$SCRATCH/go"
    if [[ $duration ]]; then
        { sleep "$duration" && kill -INT "$PERF_PID"; } 2>/dev/null &
        timer=$!
    fi
    while kill -0 "$PERF_PID" 2>/dev/null && { [[ -z $HELD ]] || kill -0 "$HELD" 2>/dev/null; }; do
        wait -n "$PERF_PID" ${HELD:+"$HELD"} 2>/dev/null || :
    done
    # Children that outlive the command (daemons) would keep perf going.
    kill -INT "$PERF_PID" 2>/dev/null || :
    while kill -0 "$PERF_PID" 2>/dev/null; do
        wait "$PERF_PID" || :
    done
    [[ -z $timer ]] || kill "$timer" 2>/dev/null || :
    [[ -z $INTERRUPTED ]] || say "interrupted: the profile ends here"
    if [[ ! -s $PROFILE/perf.data ]]; then
        explain_perf_failure "$(<"$PROFILE/perf.log")"
        exit 1
    fi
}

# Starts perf and waits until it samples: it answers a ping then. Sets PERF_PID.
record_start_perf() {
    local control ack answer=''
    exec {control}<>"$SCRATCH/control" {ack}<>"$SCRATCH/ack"
    (
        trap - INT
        exec "$PERF" --buildid-dir "$PROFILE/buildid" "${PERF_ARGUMENTS[@]}" \
            --control "fifo:$SCRATCH/control,$SCRATCH/ack"
    ) >"$PROFILE/perf.log" 2>&1 </dev/null &
    PERF_PID=$!
    echo ping >&"$control"
    while [[ -z $answer ]] && kill -0 "$PERF_PID" 2>/dev/null; do
        read -r -t 0.2 -u "$ack" answer || :
    done
    exec {control}>&- {ack}>&-
    [[ $answer ]] || {
        explain_perf_failure "$(<"$PROFILE/perf.log")"
        return 1
    }
}

# Waits for the command, which may outlive the recording. Its status, but 0 when the user ended it.
record_command_status() {
    local status=0
    [[ $HELD ]] || return 0
    ! kill -0 "$HELD" 2>/dev/null || say "the command goes on; jdperf ends with it"
    while :; do
        wait "$HELD" && status=0 || status=$?
        kill -0 "$HELD" 2>/dev/null || break
    done
    [[ -z $INTERRUPTED ]] || return 0
    profile_set "$PROFILE" command_status "$status"
    ((status == 0)) || say "the command ended with status $status"
    return "$status"
}
