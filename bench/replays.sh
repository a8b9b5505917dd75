# shellcheck shell=bash disable=SC2154 # What run.sh sets.
# A running JVM, and everything it has compiled described anew by each agent in turn: for the parts replay and
# growth.

# start_jvm FLAG... : a JVM in the background that prints "idle" when it is ready to be looked at.
start_jvm() {
    : >"$scratch/jvm.out"
    JITDUMPDIR=$scratch/peer "$jdk/bin/java" -XX:+EnableDynamicAgentLoading "$@" >"$scratch/jvm.out" 2>"$scratch/jvm.err" &
    jvm=$!
    until grep -q '^idle' "$scratch/jvm.out"; do
        kill -0 "$jvm" 2>/dev/null || fail "the JVM failed: $(cat "$scratch/jvm.err")"
        sleep 0.2
    done
    sleep 2 # the compiler's queue and the deferred events
}
stop_jvm() {
    kill -KILL "$jvm" 2>/dev/null || true
    wait "$jvm" 2>/dev/null || true
    jvm=""
}

# load LIBRARY OPTIONS: into the JVM.
load() {
    if command -v jattach >/dev/null; then
        jattach "$jvm" load "$1" true "$2" >"$scratch/attach.out" 2>&1
    else
        "$jdk/bin/jcmd" "$jvm" JVMTI.agent_load "$1" "\"$2\"" >"$scratch/attach.out" 2>&1
    fi || fail "attaching $1: $(cat "$scratch/attach.out" "$scratch/jvm.err")"
}

# describe MEASURE WHO: everything the JVM has compiled described by an agent, measured by driver.c, which appends a
# line to $scratch/MEASURE.
describe() {
    local -A how=([floor]="$floor,$1," [limit]="$floor,$1,$scratch/sizes.dump,$scratch/limit"
        [jdagent]="$agent,$1,start,dir=$scratch/sizes" [perf]="$peer_agent,$1,")
    rm -rf "$scratch/limit" "$scratch/peer" "$scratch"/sizes/*.dump
    mkdir "$scratch/peer"
    load "$driver" "$scratch/$1,$2,${how[$2]}"
}

# replays WHAT: of the JVM that runs, the times first: measuring memory changes what malloc does. Sets events to how
# many there are.
replays() {
    local what=$1 round who wall cpu held peak
    local -a compared=(floor limit jdagent)
    [ "$peer" = 0 ] || compared+=(perf)
    rm -rf "$scratch/sizes" && mkdir "$scratch/sizes"
    load "$agent" "start,dir=$scratch/sizes"
    load "$agent" stop
    cp "$scratch"/sizes/jit-*.dump "$scratch/sizes.dump"
    result "$what bytes of the dump" jdagent "$(stat -c %s "$scratch/sizes.dump")"
    events=$("$jdtool" stat "$scratch/sizes.dump" | awk '$1 == "LOAD" { print $2; exit }')
    result "$what events" jdagent "$events"
    result "$what bytes of code" jdagent "$("$jdtool" stat "$scratch/sizes.dump" | awk '/bytes of code/ { print $NF }')"
    : >"$scratch/time"
    : >"$scratch/memory"
    for ((round = 0; round < rounds; round++)); do
        for who in "${compared[@]}"; do
            describe time "$who"
            [ "$who" != perf ] || [ "$round" -gt 0 ] ||
                result "$what bytes of the dump" perf "$(find "$scratch/peer" -name 'jit-*.dump' -printf '%s\n')"
        done
    done
    for ((round = 0; round < rounds; round++)); do
        for who in "${compared[@]}"; do
            [ "$who" = limit ] || describe memory "$who"
        done
    done
    while read -r who wall cpu; do
        result "$what wall us" "$who" "$wall"
        result "$what cpu us" "$who" "$cpu"
    done <"$scratch/time"
    while read -r who held peak; do
        result "$what memory held KiB" "$who" "$held"
        result "$what memory peak KiB" "$who" "$peak"
    done <"$scratch/memory"
}
