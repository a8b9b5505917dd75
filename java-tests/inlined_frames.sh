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

# HotSpot's word is not taken where it mistakes one inlined method for another: the program knows what it does.
"$jdperf" record -o "$scratch/boxed" -F 499 -- "$jdk/bin/java" -cp "$classes" Boxed 4 >"$scratch/log" 2>&1 ||
    fail "record: $(tail -n 3 "$scratch/log")"
"$jdperf" export "$scratch/boxed" collapsed -o "$scratch/stacks" >"$scratch/log" 2>&1 || fail "export: $(cat "$scratch/log")"
read -r hot helper < <(awk '{ hot += /Boxed.hot\([^;]*$/ ? $NF : 0; helper += /Boxed.helper\([^;]*$/ ? $NF : 0 }
    END { print hot + 0, helper + 0 }' "$scratch/stacks")
claim "samples of a hot loop before boxing" "$hot of $((hot + helper))"
((hot >= 100)) || fail "only $hot samples"
at_least "$hot" "$((hot + helper))" 95 || fail "the loop's samples are said to be the boxing method's: $helper"
