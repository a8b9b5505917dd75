#!/usr/bin/env bash
# The main path: javac under perf with the agent, perf inject --jit, and every sample in generated
# code has a name.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
javac_workload

jvm_flags "-agentpath:$agent=dir=$scratch" -XX:+PreserveFramePointer -XX:+PrintCodeCache
perf record -q -o "$scratch/perf.data" -e cpu-clock -F 999 -k mono -g -- \
    "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$scratch/codecache" ||
    fail "recording javac failed"
verify "$(the_dump "$scratch")"

mkdir "$scratch/buildid"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/perf.data" -o "$scratch/perf.jit.data" ||
    fail "perf inject --jit failed"
read -r total named < <(leaf_names "$scratch/perf.jit.data" "$scratch/codecache")
note "perf inject --jit: $named of $total leaf samples in generated code named, $(share "$named" "$total")"
[ "$total" -ge 3000 ] || fail "only $total samples in generated code"
at_least "$named" "$total" 99.9 || fail "less than 99.9 % named"
