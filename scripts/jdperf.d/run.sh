# shellcheck shell=bash
# shellcheck disable=SC2154 # The variables of verb_record.
# perf at work, and the command it watches.
#
# The command is started by jdperf itself, held until perf watches it, and let go: so its exit
# status, its terminal and its signals are its own, and perf can stop before it does.

# Starts perf, with the command held back until it samples, if there is one. Returns when perf has
# ended: because the command or the JVM has, the time is over, or the user pressed Ctrl-C. HELD is
# the command's process, empty when there is none.
record_run() {
    local timer='' go process running=yes
    HELD='' INTERRUPTED='' ENDED='' PERF_PID=''
    make_scratch
    mkfifo "$SCRATCH/go" "$SCRATCH/control" "$SCRATCH/ack"
    if ((${#command[@]})); then
        record_command_line
        # bash starts asynchronous commands deaf to Ctrl-C and without a terminal.
        (
            trap - INT QUIT
            read -r go <"$SCRATCH/go"
            [[ $go == go ]] || exit 125
            exec "${COMMAND_LINE[@]}"
        ) <&0 &
        HELD=$!
        [[ $system_wide ]] || PERF_ARGUMENTS+=(-p "$HELD")
    fi
    [[ -z $system_wide ]] || PERF_ARGUMENTS+=(-a)

    trap 'INTERRUPTED=yes ENDED=yes' INT
    trap 'ENDED=yes; [[ -z $HELD ]] || kill -TERM "$HELD" 2>/dev/null; [[ -z $PERF_PID ]] || kill -INT "$PERF_PID" 2>/dev/null' TERM HUP
    if ! record_start_perf; then
        [[ -z $HELD ]] || echo no >"$SCRATCH/go"
        exit 1
    fi
    settle_profile
    say "recording $EVENT at $frequency Hz, stacks: $stacks$RATE${duration:+, for $duration s}"
    [[ $HELD || $duration ]] || say "Ctrl-C ends the recording"
    [[ -z $HELD ]] || echo go >"$SCRATCH/go"
    if [[ $duration ]]; then
        sleep "$duration" &
        timer=$!
    fi
    # Whichever ends first ends the recording; a signal ends a wait, too.
    while [[ $running ]]; do
        wait -n "$PERF_PID" ${HELD:+"$HELD"} ${timer:+"$timer"} 2>/dev/null || :
        for process in "$PERF_PID" $HELD $timer; do
            kill -0 "$process" 2>/dev/null || running=''
        done
    done
    # Children that outlive the command (daemons) would keep perf going.
    kill -INT "$PERF_PID" 2>/dev/null || :
    while kill -0 "$PERF_PID" 2>/dev/null; do
        wait "$PERF_PID" || :
    done
    [[ -z $timer ]] || kill "$timer" 2>/dev/null || :
    [[ -z $INTERRUPTED ]] || say "interrupted: the profile ends here"
    if [[ ! -s $PROFILE/perf.data ]]; then
        explain_perf_failure "$(<"$SCRATCH/perf.log")"
        exit 1
    fi
    ! grep -q 'No space left' "$SCRATCH/perf.log" || say "the disk is full: the recording ended early"
    # What perf says beside its usual two lines: no space left, chunks lost, throttled.
    grep -vE '^(\[ perf record: (Woken up|Captured)|$)' "$SCRATCH/perf.log" | head -n 8 | sed 's/^/    perf: /' >&2 || :
}

# Starts perf and waits until it samples: it answers a ping then. Sets PERF_PID.
record_start_perf() {
    local control ack answer='' guard=()
    # Killed without a chance to end it, we do not leave perf recording until the disk is full.
    ! setpriv --pdeathsig INT true 2>/dev/null || guard=(setpriv --pdeathsig INT)
    exec {control}<>"$SCRATCH/control" {ack}<>"$SCRATCH/ack"
    (
        trap - INT
        exec "${guard[@]}" "$PERF" --buildid-dir "$PROFILE/buildid" "${PERF_ARGUMENTS[@]}" \
            --control "fifo:$SCRATCH/control,$SCRATCH/ack"
    ) >"$SCRATCH/perf.log" 2>&1 </dev/null &
    PERF_PID=$!
    echo ping >&"$control"
    while [[ -z $answer ]] && kill -0 "$PERF_PID" 2>/dev/null; do
        read -r -t 0.2 -u "$ack" answer || :
    done
    exec {control}>&- {ack}>&-
    if [[ -z $answer ]]; then
        if [[ $ENDED ]]; then
            say "interrupted before the recording began"
        else
            explain_perf_failure "$(<"$SCRATCH/perf.log")"
        fi
        return 1
    fi
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
