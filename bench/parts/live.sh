# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# javac with each agent there from the start: what it costs the JVM. No memory here: the JVM's own differs from run
# to run by more than an agent holds; the parts replay and growth measure it on a JVM that stands still.

part_live() {
    local round who
    declare -A flag=([none]="" [floor]="-agentpath:$floor" [jdagent]="-agentpath:$agent=dir=$scratch/live")
    [ "$peer" = 0 ] || flag[perf]="-agentpath:$peer_agent"
    sources
    for ((round = 0; round < rounds; round++)); do
        for who in none floor jdagent perf; do
            [ -n "${flag[$who]+set}" ] || continue
            progress "live: round $((round + 1)) of $rounds, $who"
            rm -rf "$scratch/live" "$scratch/peer" && mkdir "$scratch/live" "$scratch/peer"
            run_javac ${flag[$who]:+"${flag[$who]}"}
            result "live javac cpu s" "$who" "$cpu"
            result "live javac wall s" "$who" "$wall"
            result "live Service Thread ms" "$who" "$service"
            if [ "$who" = jdagent ] && [ "$round" = 0 ]; then
                result "live bytes of the dump" jdagent "$(cat "$scratch"/live/*.dump | wc -c)"
            elif [ "$who" = perf ] && [ "$round" = 0 ]; then
                result "live bytes of the dump" perf "$(find "$scratch/peer" -name 'jit-*.dump' -exec cat {} + | wc -c)"
            fi
        done
    done
}

# run_javac [FLAG]: javac over the workload; sets wall and cpu (seconds) and service (the CPU time, in
# ms, of the thread on which HotSpot calls agents, as last seen before the end).
run_javac() {
    local file name task="" seen
    javac_command "$@"
    TIMEFORMAT='%R %U %S'
    {
        time env JITDUMPDIR="$scratch/peer" "${command[@]}" >"$scratch/run.out" 2>&1
    } 2>"$scratch/run.time" &
    local runner=$!
    service=0
    while kill -0 "$runner" 2>/dev/null; do
        if [ -z "$task" ]; then
            for file in $(pgrep -P "$runner" | sed 's|.*|/proc/&/task/*/comm|'); do
                name=$(cat "$file" 2>/dev/null) || continue
                [ "$name" != "Service Thread" ] || task=$(dirname "$file")
            done
        elif seen=$(cut -d ' ' -f 1 "$task/schedstat" 2>/dev/null); then
            [ -z "$seen" ] || service=$((seen / 1000))
        fi
        sleep 0.1
    done
    wait "$runner" || fail "javac failed: $(tail -n 3 "$scratch/run.out")"
    read -r wall user system <"$scratch/run.time"
    cpu=$(awk "BEGIN { print $user + $system }")
    service=$(awk "BEGIN { print $service / 1000 }")
}
