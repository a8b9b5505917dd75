#!/usr/bin/env bash
# After SIGKILL at random moments the dump is sound, except for at most one torn record and the last 100 ms. The oracle
# hears each event after the agent did, and writes it down in a write() of its own.
source "$(dirname "$0")/lib.sh"
begin "$@"
javac_workload whole # which lasts longer than any round

rounds=8
[ "$long" = 1 ] && rounds=100
jvm_flags "-agentpath:$agent=dir=$scratch/dump" "-agentpath:$oracle=$scratch/log,log"
blobs=0 torn=0 late=0
for ((round = 0; round < rounds; round++)); do
    rm -rf "$scratch/dump" "$scratch/out" "$scratch/log"
    mkdir "$scratch/dump"
    "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$scratch/said" 2>&1 &
    child=$!
    children=("$child")
    sleep "$((RANDOM % 3)).$((RANDOM % 900 + 100))"
    kill -KILL "$child" 2>/dev/null || fail "javac ended early: $(tail -n 3 "$scratch/said")"
    wait "$child" 2>/dev/null || true
    # A JVM that was killed before it got to the agent has nothing to show.
    [ -s "$scratch/log" ] || continue
    dump=$(the_dump "$scratch/dump")
    verify_torn "$dump"
    "$jdtool" verify "$dump" >/dev/null 2>&1 || torn=$((torn + 1))
    "$oracle_check" --held "$dump" "$scratch/log" >"$scratch/held" ||
        fail "round $round: $(cat "$scratch/held")"
    late=$((late + $(sed -n 's/.* \([0-9]*\) in the last instants/\1/p' "$scratch/held")))
    blobs=$((blobs + $(grep -c '^[LD]' "$scratch/log")))
done
note "$rounds SIGKILLs: $blobs blobs reported, none lost, $late in the last instants; $torn dumps with a torn record at the end"
[ "$blobs" -gt $((rounds * 100)) ] || fail "the JVMs were killed before they compiled anything"
