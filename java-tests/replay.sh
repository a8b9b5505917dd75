#!/usr/bin/env bash
# An agent that attaches late describes exactly the code that exists.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)
telling=() # to stderr: on stdout it would break the program's own lines
[ "$jdk_major" -ge 20 ] || telling=(-XX:+PrintCompilation -XX:+DisplayVMOutputToStderr)
"$jdk/bin/java" "-agentpath:$oracle=$scratch/log,log" "${dynamic[@]}" -XX:+UseSerialGC -Xmx64m \
    -XX:ReservedCodeCacheSize=16m "${telling[@]}" -cp "$classes" Churn 400 wait >"$scratch/out" 2>"$scratch/err" &
pid=$!
children=("$pid")
wait_for "$scratch/out" '^ready$'
wait_still "$scratch/log" 2 # deferred events are delivered by then
mkdir "$scratch/dump" "$scratch/trees"
attach "$pid" "start,dir=$scratch/dump" >"$scratch/said" 2>&1 || fail "start: $(cat "$scratch/said")"
# Attaching makes the JVM compile, and events are late: what comes now need not be in the dump.
then=$(tail -n 2 "$scratch/log" | head -n 1 | cut -f 2)
wait_still "$(the_dump "$scratch/dump")"
attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
# Once more, with the rows left to the inline trees.
attach "$pid" "start,dir=$scratch/trees,lines=tree" >"$scratch/said" 2>&1 || fail "lines=tree: $(cat "$scratch/said")"
attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
kill -KILL "$pid" # a shutdown would run, and compile, more
dump=$(the_dump "$scratch/dump")
verify "$dump"
# JDK 9 to 19: a replay leaves out code that was made not entrant and is on no stack any more, which is
# unloaded when the sweeper comes by, a while later (nmethod::post_compiled_method_load_event). Nothing
# will run it, but the oracle has not heard of its end.
: >"$scratch/retired"
if [[ $jdk_major -lt 20 ]]; then
    sed -n 's/.* \([^ ]*\)::\([^ ]*\) ([0-9]* bytes) *made not entrant.*/\1.\2/p' "$scratch/err" >"$scratch/retired"
    [ -s "$scratch/retired" ] || fail "nothing was made not entrant"
fi
"$oracle_check" --live "$dump" "$scratch/log" "$then" "$scratch/retired" || fail "the replay and the JVM's life disagree"

# field NAME DUMP: of its statistics.
field() { "$jdtool" stat --json "$2" | sed -n "s/^  \"$1\": \([0-9]*\),*$/\1/p"; }
trees=$(the_dump "$scratch/trees")
verify "$trees"
"$jdtool" convert "$trees" -o "$scratch/rows.dump" >"$scratch/said" || fail "convert: $(cat "$scratch/said")"
verify "$scratch/rows.dump"
"$jdtool" convert --lines tree "$scratch/rows.dump" -o "$scratch/again.dump" >"$scratch/said" ||
    fail "convert --lines tree: $(cat "$scratch/said")"
cmp "$trees" "$scratch/again.dump" || fail "the rows that convert wrote are not those that the agent left out"
# The standard dump, by way of the trees, is the same to the byte: stock perf sees no difference.
"$jdtool" convert --lines tree "$dump" -o "$scratch/less.dump" >"$scratch/said" || fail "convert --lines tree: $(cat "$scratch/said")"
"$jdtool" convert "$scratch/less.dump" -o "$scratch/standard.dump" >"$scratch/said" || fail "convert: $(cat "$scratch/said")"
cmp "$dump" "$scratch/standard.dump" || fail "the standard dump has not come back from the trees"
claim "lines=tree and back: bytes that differ" "0 of $(stat -c %s "$dump")"
# A method of which HotSpot tells no place has no tree, and one row: its first line.
kept=$("$jdtool" dump "$trees" | awk '/ DEBUG_INFO / { rows = $NF } /^    node 0/ && rows > 0 { n += rows } END { print n + 0 }')
all=$(field rows "$scratch/rows.dump")
claim "lines=tree: rows kept beside a tree" "$kept of $all"
claim "lines=tree: bytes" "$(stat -c %s "$trees") of $(stat -c %s "$scratch/rows.dump")"
[ "$all" -gt 1000 ] || fail "only $all rows"
[ "$kept" = 0 ] || fail "lines=tree keeps $kept rows that a tree should give"
[ "$(field tree_rows "$scratch/rows.dump")" = 0 ] || fail "the converted dump leaves rows to trees"
