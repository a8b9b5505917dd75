#!/usr/bin/env bash
# With mode=map alone, plain perf names samples in generated code. What javac's map names, which is the larger one,
# consumers.sh judges.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

# shellcheck disable=SC2016 # for the inner shell: exec keeps the pid, so that the map can be found
perf_record -o "$scratch/perf.data" -e cpu-clock -F 1999 -k mono -g -- \
    bash -c 'echo $$ >"$1"; shift; exec "$@"' - "$scratch/pid" \
    "$jdk/bin/java" "-agentpath:$agent=mode=map" -XX:+PreserveFramePointer -XX:+PrintCodeCache -cp "$classes" Streams 4 \
    >"$scratch/codecache" || fail "recording failed"
map=/tmp/perf-$(cat "$scratch/pid").map
[ -f "$map" ] || fail "no $map"
trap 'rm -f "$map"; finish' EXIT
overlaps "$map"

read -r total named < <(leaf_names "$scratch/perf.data" "$scratch/codecache")
note "perf map: $named of $total leaf samples in generated code named, $(share "$named" "$total")"
[ "$total" -ge 300 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99 || fail "less than 99 % named"
