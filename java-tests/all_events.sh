#!/usr/bin/env bash
# Records CPU time, waits, allocations and contended monitors at once; each total equals what the program counted. And
# jdperf view, the flame page and perf report show the same totals.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_events
seconds=2
[ "$long" = 0 ] || seconds=10

# An object of two longs, with this JVM's header.
small=32
! "$jdk/bin/java" -XX:+PrintFlagsFinal -version 2>/dev/null | grep 'UseCompactObjectHeaders *= *true' >/dev/null || small=24

# take PROFILE EVENT...: a recording of these, and what the program counted.
take() {
    local profile=$1 event status=0 options=()
    shift
    for event in "$@"; do
        case $event in
        off-cpu) options+=(--off-cpu) ;;
        alloc) options+=(--alloc=256K) ;;
        lock) options+=(--locks) ;;
        esac
    done
    "$jdperf" record -o "$scratch/$profile" -F 499 -m 64M "${options[@]}" -- \
        "$jdk/bin/java" -cp "$classes" Events $seconds alloc locks waits time >"$scratch/$profile.log" 2>"$scratch/err" || [ $? = 3 ] ||
        fail "record: $(tail -n 5 "$scratch/err")"
    for event in "$@"; do
        "$jdperf" export "$scratch/$profile" collapsed -o "$scratch/$profile.$event" --event "$event" -- --weights 2>/dev/null
        # The program's waits end when it has a processor again.
        [ "$event" != off-cpu ] ||
            "$jdperf" export "$scratch/$profile" collapsed -o - --event runnable -- --weights 2>/dev/null >>"$scratch/$profile.$event" || :
    done
    python3 "$tests_dir/readers/totals.py" truth "$scratch/$profile" "$small" "$@" >"$scratch/told" || status=1
    sed "s/^/# $profile: /" "$scratch/told"
    return "$status"
}

# A thread that is awake may wait for a processor, which it counts as waiting and the kernel does not, and what
# perf cannot take is lost: on a machine with more to do than it has processors. So the best of three counts.
best() {
    for _ in 1 2 3; do
        ! take "$@" || return 0
    done
    fail "the totals of $1 are not what they were"
}

best together cpu-clock off-cpu alloc lock
if [ "$long" = 1 ]; then
    for event in off-cpu alloc lock; do
        best "$event" cpu-clock "$event"
    done
fi

# The same totals wherever they are shown.
perf report -i "$scratch/together/perf.jit.data" --stdio --no-children -g none --sort sym >"$scratch/report" 2>/dev/null
"$jdperf" flame "$scratch/together" -o "$scratch/flame.html" 2>/dev/null
"$jdperf" view "$scratch/together" --front-end http://localhost:4242/x --idle 60 >"$scratch/view" 2>"$scratch/err" &
viewer=$!
children+=("$viewer")
wait_until 60 "the view's address" grep -q symbolServer "$scratch/view"
python3 "$tests_dir/readers/totals.py" shown "$scratch/together" "$scratch/report" "$scratch/flame.html" "$scratch/view" \
    >"$scratch/told" || fail "$(cat "$scratch/told")"
sed 's/^/# /' "$scratch/told"
pkill -INT -P "$viewer" # jdtool: what a script has put into the background ignores the signal
wait "$viewer" || fail "the view ended with $?: $(cat "$scratch/err")"
