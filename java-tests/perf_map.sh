#!/usr/bin/env bash
# mode=map: plain perf names samples in generated code from /tmp/perf-PID.map, without perf inject.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
javac_workload

jvm_flags "-agentpath:$agent=mode=map" -XX:+PreserveFramePointer -XX:+PrintCodeCache
# shellcheck disable=SC2016 # for the inner shell: exec keeps the pid, so that the map can be found
perf_record -o "$scratch/perf.data" -e cpu-clock -F 1999 -k mono -g -- \
    bash -c 'echo $$ >"$1"; shift; exec "$@"' - "$scratch/pid" \
    "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$scratch/codecache" ||
    fail "recording javac failed"
map=/tmp/perf-$(cat "$scratch/pid").map
[ -f "$map" ] || fail "no $map"
trap 'rm -f "$map"; finish' EXIT
overlaps "$map"

read -r total named < <(leaf_names "$scratch/perf.data" "$scratch/codecache")
note "perf map: $named of $total leaf samples in generated code named, $(share "$named" "$total")"
[ "$total" -ge 3000 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99 || fail "less than 99 % named"
