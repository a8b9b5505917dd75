#!/usr/bin/env bash
# Another agent in the same JVM works before, during and after a session.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
neighbour=$build/java-tests/libneighbour.so
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)

# start FLAG...: sets pid; allocate sends to it.
start() {
    rm -f "$scratch/in" "$scratch/out"
    mkfifo "$scratch/in"
    "$jdk/bin/java" "${dynamic[@]}" -XX:+UseSerialGC -Xmx64m "$@" -cp "$classes" Allocates <"$scratch/in" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    children=("$pid")
    exec 7>"$scratch/in"
    wait_for "$scratch/out" ready
    rounds=0
}
allocate() {
    rounds=$((rounds + 1))
    echo 512 >&7
    wait_until 300 "round $rounds" has_done
}
has_done() { [ "$(grep -c 'done' "$scratch/out")" = "$rounds" ]; }
finish_jvm() {
    exec 7>&-
    wait "$pid" || fail "the JVM failed: $(tail -n 3 "$scratch/err")"
    children=()
}
# ask: has the neighbour get what it lacks and tell; sets error, allocs, loads.
ask() {
    local said
    rm -f "$scratch/told"
    if command -v jattach >/dev/null; then
        jattach "$pid" load "$neighbour" true "$scratch/told" >"$scratch/said" 2>&1
    else
        "$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$neighbour" "$scratch/told" >"$scratch/said" 2>&1
    fi || fail "the neighbour cannot be loaded: $(cat "$scratch/said")"
    said=$(cat "$scratch/told")
    note "${FUNCNAME[1]}, $1: $said"
    [[ $said =~ ^error=([0-9]+)\ allocs=([0-9]+)\ loads=([0-9]+)$ ]] || fail "it says '$said'"
    error=${BASH_REMATCH[1]} allocs=${BASH_REMATCH[2]} loads=${BASH_REMATCH[3]}
}
# its_own WHEN: 512 MB are sampled every 512 KB, as HotSpot does by itself: 1,024 times, with a deviation of 32.
its_own() {
    allocate
    ask "$1"
    [ "$error" = 0 ] || fail "$1: the neighbour gets error $error"
    [ "$allocs" -ge 800 ] || fail "$1: of the neighbour's 1,024 allocations only $allocs are told"
    [ "$allocs" -le 1250 ] || fail "$1: $allocs allocations instead of 1,024: the interval is not its own"
    [ "$loads" -ge 5 ] || fail "$1: only $loads compiled methods are told"
}
ours() {
    rm -rf "$scratch/dump"
    mkdir "$scratch/dump"
    attach "$pid" "start,dir=$scratch/dump,methods,threads,log,$1" >"$scratch/said" 2>&1 || fail "start: $(cat "$scratch/said")"
}
stop_ours() {
    [ -n "$(find "$scratch/dump" -name 'jit-*.methods' -size +100k)" ] || fail "no methods were told of"
    attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
    verify "$(the_dump "$scratch/dump")"
    others=$(find "$scratch/dump" -type f ! -perm 600)
    [ -z "$others" ] || fail "others can read $others"
}

ours_first() {
    mkdir "$scratch/dump"
    start "-agentpath:$agent=dir=$scratch/dump,methods,threads,alloc=64K,locks=1ms"
    allocate
    ask "beside ours"
    [ "$error" = 98 ] || fail "this JVM gives two agents what only one can have: nothing is tested"
    stop_ours
    ask "ours has ended"
    its_own "after ours from the start"
    ours alloc=64K
    its_own "beside ours"
    stop_ours
    its_own "after ours, attached"
    finish_jvm
}
# What only one agent can have is missing in a recording, and the scorecard says so.
no_allocations() {
    "$jdperf" record --alloc -F 500 -d 2s -o "$scratch/profile" -p "$pid" >"$scratch/said" 2>&1 &
    children+=("$!")
    wait_for "$scratch/said" ' 2 s$'
    allocate
    wait "${children[-1]}" || fail "$(cat "$scratch/said")"
    unset 'children[-1]'
    grep -q 'the profile is fair: .*1 of 1 JVMs report no alloc events' "$scratch/said" || fail "$(cat "$scratch/said")"
    grep -q "! process $pid: no alloc events: another agent in the JVM has them" "$scratch/said" || fail "$(cat "$scratch/said")"
}
neighbour_first() {
    start "-agentpath:$neighbour"
    ask "at the start"
    its_own "alone"
    ours code=on
    its_own "beside ours"
    stop_ours
    its_own "after ours"
    no_allocations
    finish_jvm
}
ours_first
neighbour_first
claim "another agent" "its events as without us, before ours and after it"
