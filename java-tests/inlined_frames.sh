#!/usr/bin/env bash
# The inlined frames that jdtool inject puts into call chains, against what HotSpot reported to the
# oracle in the same JVM: a program of collections and streams, and javac.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile Streams
javac_workload

# judge NAME COMMAND...: records a JVM that runs with oracle and agent, and injects.
judge() {
    local name=$1
    local dir=$scratch/$name
    shift
    mkdir -p "$dir"
    JAVA_TOOL_OPTIONS="-XX:+PreserveFramePointer -agentpath:$oracle=$dir/oracle -agentpath:$agent=dir=$dir" \
        perf_record -k mono -e cpu-clock -F 499 -g -o "$dir/perf.data" -- "$@" >"$dir/log" 2>&1 ||
        fail "$name: $(tail -n 3 "$dir/log")"
    "$jdtool" inject -i "$dir/perf.data" -o "$dir/perf.jit.data" --inline expand -q ||
        fail "$name: jdtool inject"
    note "$name"
    python3 "$tests_dir/readers/inlined.py" "$dir/perf.data" "$dir/perf.jit.data" "$dir/oracle" ||
        fail "$name: inlined frames are not the JVM's"
}

judge streams "$jdk/bin/java" -cp "$classes" Streams 5
judge javac "$jdk/bin/javac" "${javac_args[@]}"
