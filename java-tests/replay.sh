#!/usr/bin/env bash
# Attached late, the agent describes exactly the code that is there: what the oracle, which was there
# from the start, says is alive.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile Churn

dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)
telling=() # to stderr: on stdout it would break the program's own lines
[ "$jdk_major" -ge 20 ] || telling=(-XX:+PrintCompilation -XX:+DisplayVMOutputToStderr)
"$jdk/bin/java" "-agentpath:$oracle=$scratch/log,log" "${dynamic[@]}" -XX:+UseSerialGC -Xmx64m \
    -XX:ReservedCodeCacheSize=16m "${telling[@]}" -cp "$classes" Churn 400 wait >"$scratch/out" 2>"$scratch/err" &
pid=$!
children=("$pid")
wait_for "$scratch/out" '^ready$'
sleep 2 # deferred events are delivered by then
mkdir "$scratch/dump"
attach "$pid" "start,dir=$scratch/dump" >"$scratch/said" 2>&1 || fail "start: $(cat "$scratch/said")"
# Attaching makes the JVM compile, and events are late: what comes now need not be in the dump.
then=$(tail -n 2 "$scratch/log" | head -n 1 | cut -f 2)
sleep 1
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
