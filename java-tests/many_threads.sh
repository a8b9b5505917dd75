#!/usr/bin/env bash
# The journal has the name of each thread even with more threads than it has chunks. 5,000; JDAGENT_LONG=1: 20,000.
source "$(dirname "$0")/lib.sh"
begin "$@"
command -v python3 >/dev/null || skip "python3 is not installed"
compile
count=5000
[ "$long" = 0 ] || count=20000
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)

# run FLAG...: sets pid, with all threads there, and $scratch/truth, the names that the kernel has.
run() {
    rm -rf "$scratch/in" "$scratch/out" "$scratch/dump"
    mkdir "$scratch/dump"
    mkfifo "$scratch/in"
    "$jdk/bin/java" "${dynamic[@]}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m "$@" -cp "$classes" ManyThreads "$count" \
        <"$scratch/in" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    children=("$pid")
    exec 7>"$scratch/in"
    for ((i = 0; i < 6000; i++)); do
        ! grep -q ready "$scratch/out" || break
        # pids of a container, memory: not of ours
        ! grep -qE 'unable to create native thread|Cannot create worker' "$scratch/err" || skip "$count threads cannot be had here"
        kill -0 "$pid" 2>/dev/null || fail "the JVM failed: $(head -n 5 "$scratch/err")"
        sleep 0.05
    done
    (cd "/proc/$pid/task" && grep -H . ./*/comm) | sed -n 's,^\./\([0-9]*\)/comm:\(worker-.*\),\1 \2,p' | sort >"$scratch/truth"
    [ "$(wc -l <"$scratch/truth")" = "$count" ] || fail "only $(wc -l <"$scratch/truth") threads in the kernel's list"
}
# check HOW: the journal against the truth.
check() {
    local missing
    python3 "$tests_dir/readers/journal_names.py" "$(find "$scratch/dump" -name '*.threads')" | sort >"$scratch/told" || fail "$1: the journal is broken"
    ! grep -q lost "$scratch/told" || fail "$1: the journal has gaps"
    ! grep -q lacks "$scratch/err" || fail "$1: $(grep lacks "$scratch/err")"
    missing=$(comm -23 "$scratch/truth" "$scratch/told" | wc -l)
    claim "many threads, $1" "$count at once, $missing without their name"
    [ "$missing" = 0 ] || fail "$1: $missing of $count threads have not their name: $(comm -23 "$scratch/truth" "$scratch/told" | head -n 3)"
}
end() {
    exec 7>&-
    wait "$pid" || fail "the JVM failed: $(tail -n 3 "$scratch/err")"
    children=()
}
run "-agentpath:$agent=dir=$scratch/dump,threads"
end
check "from the start"
run
attach "$pid" "start,dir=$scratch/dump,threads" >"$scratch/said" 2>&1 || fail "start: $(cat "$scratch/said")"
attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
check attached
end
