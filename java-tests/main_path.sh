#!/usr/bin/env bash
# After jdperf records javac, every sample in generated code has a name, by jdtool and by stock perf inject --jit.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
javac_recording
profile=$recording/profile

# named WHAT FILE
named() {
    local total named
    read -r total named < <(leaf_names "$2" "$recording/codecache")
    claim "$1: named" "$(share "$named" "$total") of $total"
    [ "$total" -ge 3000 ] || fail "only $total samples in generated code"
    at_least "$named" "$total" 99.9 || fail "$1: less than 99.9 % named"
}
named "jdperf record" "$profile/perf.jit.data"

# What perf makes of a dump.
my_part 0 "perf inject --jit" || exit 0
mkdir "$scratch/buildid"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$profile/perf.data" -o "$scratch/perf.jit.data" ||
    fail "perf inject --jit failed"
named "perf inject --jit" "$scratch/perf.jit.data"
