#!/usr/bin/env bash
# The scorecard knows a JVM's CPU time to 5 %, and calls no profile good that lacks much of it.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
command -v python3 >/dev/null || skip "python3 is not installed"
compile

# judge NAME: sets verdict, accounted and more (ns), in_profile (ns), lost (samples) and reason from the profile's scorecard.
judge() {
    { read -r verdict accounted more in_profile lost && read -r reason; } < <(python3 -c '
import json, sys
card = json.load(open(sys.argv[1]))
time = card["processor_time"]
assert card["time_accounted_share"] is not None, "nothing is known of the time"
print(card["verdict"], time["accounted"], time["at_most_more"], time["in_profile"], card["lost_samples"])
print(card["verdict_reason"])' "$scratch/$1/scorecard.json") || fail "no scorecard of $1: $(tail -n 5 "$scratch/said")"
    percent=$((100 * in_profile / accounted))
    note "$1: of $((accounted / 1000000)) ms $((in_profile / 1000000)) ms are in the profile, $percent %: $verdict${reason:+: $reason}"
}

# It may be called good only where nearly all is there, as far as chance lets a hundred samples say so.
not_good_without() {
    ((percent >= 65)) || [[ $verdict == fair || $verdict == bad ]] || fail "$1: $percent % of the time, and $verdict"
    [[ $verdict == good || $reason == *"of processor time"* || $reason == *"the stacks reach"* || $reason == *"samples were lost"* ]] || fail "$1: the reason is $reason"
}

# From the start, in a process of ours and in one that a shell reaps: what it had is what it says itself when it is
# about to end.
for mode in long short shell; do
    status=0
    command=("$jdk/bin/java" -cp "$classes" Timed "${mode/shell/long}" 1.5)
    [[ $mode != shell ]] || command=(sh -c '"$@"; true' sh "${command[@]}")
    "$jdperf" record -o "$scratch/$mode" -e cpu-clock -- "${command[@]}" >"$scratch/out" 2>"$scratch/said" || status=$?
    ((status == 0 || status == 3)) || fail "jdperf record: $(tail -n 5 "$scratch/said")"
    judge "$mode"
    own=$(sed -n 's/^[0-9]*$/&/p' "$scratch/out" | head -n 1)
    ((accounted * 100 <= own * 110 && (accounted + more) * 100 >= own * 95)) ||
        fail "the JVM says $own ns, the scorecard $accounted and at most $more more"
    [[ $mode == shell || $more == 0 ]] || fail "the clock of a process of ours was not read to its end"
    [[ $status == 3 ]] && is=bad || is=good
    [[ $verdict == fair || $verdict == "$is" ]] || fail "status $status, but $verdict"
    not_good_without "$mode"
done

# Attached, when all threads of the long one are there; so often that the samples at both ends are no matter.
for mode in long short; do
    "$jdk/bin/java" -cp "$classes" Timed "$mode" 100 >"$scratch/ready" 2>&1 &
    child=$!
    children+=("$child")
    until grep -q ready "$scratch/ready"; do
        kill -0 "$child" || fail "the program has ended"
        sleep 0.1
    done
    "$jdperf" record -o "$scratch/$mode-attached" -e cpu-clock --stacks fp -p "$child" -d 3 >"$scratch/out" 2>"$scratch/said" ||
        [ $? = 3 ] || fail "jdperf record -p: $(tail -n 5 "$scratch/said")"
    kill "$child"
    judge "$mode-attached"
    not_good_without "$mode-attached"
    if [[ $mode == long && $lost == 0 ]]; then
        claim "processor time in the profile, of threads that live on" "$percent %"
        ((percent >= 95 && percent <= 105)) || fail "$percent % of the time of threads that live on"
    fi
done
