#!/usr/bin/env bash
# After INT, TERM and KILL at random moments nothing is left running, and profiles are readable or reported as
# incomplete. A sample by default; 100 moments a JDK with JDAGENT_LONG=1. JDAGENT_SEED repeats a run.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
compile_sample
moments=4 # each verb once with each JDK
[[ ${JDAGENT_LONG:-0} != 1 ]] || moments=100 # with each of two JDKs
RANDOM=${JDAGENT_SEED:=$((SECONDS + $$))}
note "seed $JDAGENT_SEED, $moments moments"

jvm=''
trap '[[ -z $jvm ]] || kill -9 "$jvm" 2>/dev/null || :; rm -rf "$WORK" "/tmp/perf-$jvm.map"' EXIT

session_is_over() {
    [[ $("$JDPERF" status "$jvm" 2>&1 || :) != *state=running* ]]
}

nothing_is_left() {
    ! pgrep -s "$session" >/dev/null && [[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] &&
        ! pgrep -f "jdtool live .*$WORK/profile" >/dev/null && ! pgrep -f "perf .*$WORK/profile" >/dev/null
}

counts=''
slowest=0
end_of_moment() {
    local signal=$1 verb=$2 status=$3
    wait_until 35 "end of all that $verb started ($signal, seed $JDAGENT_SEED)" nothing_is_left
    if [[ $verb == attach && $status == 0 ]]; then
        "$JDPERF" stop "$jvm" >/dev/null 2>&1 || fail "a session that was attached cannot be stopped"
    fi
    wait_until 35 "end of the session ($verb, $signal, seed $JDAGENT_SEED)" session_is_over
    [[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] || fail "a staging directory is left ($verb, $signal)"
    kill -0 "$jvm" || fail "the JVM has died ($verb, $signal)"
    counts+="$verb:$signal:$status "
}

# moment VERB SIGNAL
moment() {
    local verb=$1 signal=$2 arguments status=0 from took
    case $verb in
    record) arguments=(record -o "$WORK/profile" -- "$jdk/bin/java" -cp classes Market 1) ;;
    recordp) arguments=(record -o "$WORK/profile" -d 1 -p "$jvm") ;;
    attach) arguments=(attach "$jvm") ;;
    map) arguments=(map "$jvm" --follow) ;;
    esac
    rm -rf profile profile.old dumps
    mkdir -p dumps
    # bash has what it starts in the background ignore INT.
    JITDUMPDIR=$WORK/dumps env --default-signal=INT setsid "$JDPERF" "${arguments[@]}" >output 2>&1 </dev/null &
    session=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 1000))"
    from=${EPOCHREALTIME/./}
    case $signal in
    INT) kill -INT -- "-$session" 2>/dev/null || : ;; # as the terminal does
    *) kill "-$signal" "$session" 2>/dev/null || : ;;
    esac
    wait "$session" || status=$?
    took=$(((${EPOCHREALTIME/./} - from) / 1000))
    if [[ $signal != KILL ]]; then
        ((took < 20000)) || fail "$verb took $took ms to end at $signal (seed $JDAGENT_SEED)"
        ((took <= slowest)) || slowest=$took
        if [[ $verb == record* && -e profile ]]; then
            "$JDPERF" script profile >script.out 2>&1 || grep -qE 'jdperf: (failed|interrupted|process|ended)' output ||
                fail "no profile and no word ($verb, $signal, seed $JDAGENT_SEED)"
        fi
        # Before jdtool has taken over from the shell there is nothing to tell of.
        [[ $verb != record* || -e profile || -s output || $status -gt 128 ]] || fail "no word of $verb at $signal"
    fi
    end_of_moment "$signal" "$verb" "$status"
}

for jdk in $(find /usr/lib/jvm -maxdepth 1 -type d | sort); do
    [[ -x $jdk/bin/java ]] || continue
    "$jdk/bin/java" -cp classes Calm 3000 >jvm.out 2>jvm.err </dev/null &
    jvm=$!
    wait_until 60 "JVM" listens "$jvm"
    for ((i = 0; i < moments; i++)); do
        verbs=(record recordp attach map)
        signals=(INT TERM KILL)
        moment "${verbs[i % 4]}" "${signals[RANDOM % 3]}"
    done
    kill -9 "$jvm"
    wait "$jvm" 2>/dev/null || :
    rm -f "/tmp/perf-$jvm.map"
    jvm=''
done
note "INT and TERM: at most $slowest ms to the end"
tr ' ' '\n' <<<"$counts" | sort | uniq -c | awk 'NF > 1' | column -c 120
