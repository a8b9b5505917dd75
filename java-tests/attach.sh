#!/usr/bin/env bash
# jdperf attaches to a JVM that was started without any flags, samples it, and detaches. Every sample in generated code
# after the attach is named, and the JVM is as fast afterwards as before.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
start_warm -Xshare:auto # a default: no flag that helps anybody
wait_for "$scratch/rounds" '^12 ' 500
before=$(round_time)

profile=$scratch/profile
"$jdperf" record -o "$profile" -p "$pid" -d 4 -e cpu-clock -F 1999 --stacks none >"$scratch/said" 2>&1 ||
    fail "jdperf record -p: $(tail -n 5 "$scratch/said")"
code_cache "$pid" >"$scratch/codecache"
! grep -q "jit-$pid.dump" "/proc/$pid/maps" || fail "a dump is still mapped after the stop"

# As fast afterwards as before: a neighbour's noise passes, a slower JVM stays slow.
for attempt in 1 2 3 4; do
    rounds=$(wc -l <"$scratch/rounds")
    wait_for "$scratch/rounds" "^$((rounds + 12)) " 500
    after=$(round_time)
    ! awk "BEGIN { exit !($after <= 1.25 * $before) }" || break
    note "attempt $attempt: a round takes $after ms instead of $before"
done
kill -STOP "$pid" # it need not be busy while files are read
verify "$(the_dump "$profile")"
read -r total named < <(leaf_names "$profile/perf.jit.data" "$scratch/codecache")
claim "attached: named samples" "$(share "$named" "$total") of $total"
note "a round took $before ms before the attach, $after ms after the stop, ratio" \
    "$(awk "BEGIN { printf \"%.2f\", $after / $before }")"
[ "$total" -ge 1000 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99.9 || fail "less than 99.9 % named"
awk "BEGIN { exit !($after <= 1.25 * $before) }" || fail "the JVM stays slower after the stop"

# The same by hand, through jcmd, which needs quotes around what has a "=" in it: a second start is a
# polite no-op, status knows what is going on, and nothing is left open after a stop.
# JDK 8's jcmd cannot load agents.
by_hand() {
    if [ "$jdk_major" -ge 9 ]; then
        "$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" "\"$1\""
    else
        attach "$pid" "$1"
    fi
}
mkdir "$scratch/dump"
kill -CONT "$pid"
for command in "start,dir=$scratch/dump" "start,dir=$scratch/dump" status stop; do
    by_hand "$command" >"$scratch/said" 2>&1 || fail "$command: $(cat "$scratch/said")"
done
grep -q "^jdagent: .*$scratch/dump/jit-$pid.dump" "$scratch/warm.err" || fail "status: $(cat "$scratch/warm.err")"
! find "/proc/$pid/fd" -lname "$scratch/dump/*" | grep -q . || fail "the dump is still open after stop"
# Without jattach: JDK 8's jcmd cannot help, its script runner does.
if [ "$jdk_major" -eq 8 ]; then
    mkdir "$scratch/bin"
    ln -s /usr/bin/* "$scratch/bin"
    rm -f "$scratch/bin/jattach"
    for command in attach status stop; do
        PATH=$scratch/bin "$jdperf" "$command" "$pid" >"$scratch/said" 2>&1 ||
            fail "$command without jattach: $(tail -n 5 "$scratch/said")"
    done
fi
kill "$pid"
verify "$scratch/dump/jit-$pid.dump"
sed "s/^/-- the JVM's user sees: /" "$scratch/warm.err"
