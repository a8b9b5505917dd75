#!/usr/bin/env bash
# The inlined frames in call chains are those that HotSpot reported in the same JVM.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

jvm_options="-XX:+PreserveFramePointer -agentpath:$oracle=$scratch/oracle -agentpath:$agent=dir=$scratch"
JAVA_TOOL_OPTIONS=$jvm_options perf_record -k mono -e cpu-clock -F 499 -g -o "$scratch/perf.data" -- \
    "$jdk/bin/java" -cp "$classes" Streams 4 >"$scratch/log" 2>&1 || fail "record: $(tail -n 3 "$scratch/log")"
inlined_as_reported "$scratch"
