# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# How long after a method's installation its LOAD can be read in the file, over a run of javac. The floor is when the
# JVM tells an agent of the method.

part_readable() {
    local round who times=$rounds
    [ "$small" = 0 ] || times=1
    # names=jvm, as perf's agent has them: that is how installations and LOADs find each other.
    declare -A library=([floor]="$floor=told,$scratch/found" [jdagent]="$agent=names=jvm")
    [ "$peer" = 0 ] || library[perf]=$peer_agent
    sources
    for ((round = 0; round < times; round++)); do
        for who in floor jdagent perf; do
            [ -n "${library[$who]+set}" ] || continue
            progress "readable: round $((round + 1)) of $times, $who"
            javac_command "-agentpath:${library[$who]}" \
                "-Xlog:nmethod+install=info:file=$scratch/installed:timenanos:filecount=0"
            if [ "$who" != floor ]; then
                rm -rf "$scratch/live" && mkdir "$scratch/live"
                command=("$build/bench/readable" "$scratch/found" "$scratch/live" "${command[@]}")
            fi
            "${command[@]}" >"$scratch/run.out" 2>&1 || fail "readable, $who: $(tail -n 3 "$scratch/run.out")"
            awk -v who="$who" -f "$here/readable.awk" "$scratch/installed" "$scratch/found" >>"$results"
        done
    done
    rm -rf "$scratch/live"
}
