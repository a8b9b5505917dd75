#!/usr/bin/env bash
# A JVM that was started with no flags at all and is at work: attach, sample, stop. Every sample in
# generated code after the attach is named, and the JVM is as fast afterwards as it was before.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
start_warm -Xshare:auto # a default: no flag that helps anybody
wait_for "$scratch/rounds" '^12 ' 120
before=$(round_time)

mkdir "$scratch/dump"
attach "$pid" "start,dir=$scratch/dump" >"$scratch/said" 2>&1 || fail "attach: $(cat "$scratch/said")"
[ -e "$scratch/dump/jit-$pid.dump" ] || fail "no dump: $(cat "$scratch/said" "$scratch/warm.err")"
perf record -q -o "$scratch/perf.data" -e cpu-clock -F 1999 -k mono -g -p "$pid" -- sleep 8
"$jdk/bin/jcmd" "$pid" Compiler.codecache >"$scratch/codecache"

# A second start is a polite no-op, and status knows what is going on. Both through jcmd, so that
# either way in is used.
"$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" "start,dir=$scratch/dump" >"$scratch/said" ||
    fail "second start: $(cat "$scratch/said")"
"$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" status >"$scratch/said" || fail "status: $(cat "$scratch/said")"
grep -q "$scratch/dump" "$scratch/warm.err" || fail "status says nothing of the dump: $(cat "$scratch/warm.err")"
"$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" stop >"$scratch/said" || fail "stop: $(cat "$scratch/said")"
! grep -q "jit-$pid.dump" "/proc/$pid/maps" || fail "the dump is still mapped after stop"
! find "/proc/$pid/fd" -lname "$scratch/dump/*" | grep -q . || fail "the dump is still open after stop"

rounds=$(wc -l <"$scratch/rounds")
wait_for "$scratch/rounds" "^$((rounds + 12)) " 120
after=$(round_time)
kill "$pid"
verify "$scratch/dump/jit-$pid.dump"

mkdir "$scratch/buildid"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/perf.data" -o "$scratch/perf.jit.data" ||
    fail "perf inject --jit failed"
read -r total named < <(leaf_names "$scratch/perf.jit.data" "$scratch/codecache")
note "attach: $named of $total leaf samples in generated code named, $(share "$named" "$total")"
note "a round took $before ms before the attach, $after ms after the stop, ratio" \
    "$(awk "BEGIN { printf \"%.2f\", $after / $before }")"
sed "s/^/-- the JVM's user sees: /" "$scratch/warm.err"
[ "$total" -ge 1000 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99.9 || fail "less than 99.9 % named"
awk "BEGIN { exit !($after <= 1.5 * $before) }" || fail "the JVM stays slow after the stop"
