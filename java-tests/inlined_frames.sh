#!/usr/bin/env bash
# The inlined frames that jdtool inject puts into call chains, against what HotSpot reported to the
# oracle in the same JVM: a program of collections and streams, and javac. And javac's samples, named by plain perf
# from the map that was written beside the dump.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile Streams
javac_workload

# record NAME MODE COMMAND...: a JVM that runs with oracle and agent.
record() {
    local name=$1 mode=$2
    local dir=$scratch/$name
    shift 2
    mkdir -p "$dir"
    JAVA_TOOL_OPTIONS="-XX:+PreserveFramePointer -agentpath:$oracle=$dir/oracle -agentpath:$agent=mode=$mode,dir=$dir" \
        perf_record -k mono -e cpu-clock -F 499 -g -o "$dir/perf.data" -- "$@" >"$dir/log" 2>&1 ||
        fail "$name: $(tail -n 3 "$dir/log")"
}

# judge NAME: what jdtool makes of it.
judge() {
    local name=$1
    local dir=$scratch/$name
    "$jdtool" inject -i "$dir/perf.data" -o "$dir/perf.jit.data" --inline expand -q ||
        fail "$name: jdtool inject"
    note "$name"
    python3 "$tests_dir/readers/inlined.py" "$dir/perf.data" "$dir/perf.jit.data" "$dir/oracle" ||
        fail "$name: inlined frames are not the JVM's"
}

record streams jitdump "$jdk/bin/java" -cp "$classes" Streams 5
judge streams

# The same agent and jdtool over more methods.
my_part 0 || exit 0
jvm_flags -XX:+PrintCodeCache
record javac jitdump+map "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}"
dump=$(the_dump "$scratch/javac")
map=/tmp/perf-$(basename "$dump" .dump | tr -dc 0-9).map
[ -f "$map" ] || fail "no $map"
trap 'rm -f "$map"; finish' EXIT
overlaps "$map"
read -r total named < <(leaf_names "$scratch/javac/perf.data" "$scratch/javac/log")
claim "javac, perf map: named" "$(share "$named" "$total") of $total"
[ "$total" -ge 1500 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99 || fail "less than 99 % named by the map"
mv "$map" "$scratch/javac/map"
judge javac
