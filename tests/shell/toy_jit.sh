#!/usr/bin/env bash
# perf shows the example JIT's two functions with the right shares, and annotate shows the source lines. From the dump
# by perf inject, and by name from the map.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

scratch=$(mktemp -d)
map=
trap 'rm -rf "$scratch" ${map:+"$map"}' EXIT
cd "$scratch"
need_perf
toy=$JDAGENT_BUILD/examples/toy-jit/toy-jit
[ -x "$toy" ] || skip "the example is not built on this architecture"

# shellcheck disable=SC2016 # for the inner shell: exec keeps the pid
perf record -q -o perf.data -e cpu-clock -F 2999 -k mono -- \
    bash -c 'echo $$ >pid; exec "$@"' - "$toy" 250000000 1000000000 >out 2>log ||
    fail "perf record: $(head -n 1 log)"
map=/tmp/perf-$(cat pid).map

# ratio PERF_DATA: checks the samples of the two functions.
ratio() {
    local once four_times total
    perf script -i "$1" -F ip,sym >samples 2>/dev/null
    total=$(wc -l <samples)
    once=$(grep -c ' count_to_250000000$' samples) || true
    four_times=$(grep -c ' count_to_1000000000$' samples) || true
    echo "-- $1: $once and $four_times of $total samples"
    [ "$total" -ge 300 ] || skip "perf took only $total samples"
    # Nearly all of the time is spent in the two loops, and neighbours on the same core shift the ratio. By chance 300
    # samples are beyond 1:8 once in 40,000 times, beyond 1:2 never.
    awk -v a="$once" -v b="$four_times" -v n="$total" \
        'BEGIN { exit !(a + b >= 0.9 * n && b >= 2 * a && b <= 8 * a) }' ||
        fail "not 1:4 of nearly all samples: $once and $four_times of $total"
}

ratio perf.data

"$JDAGENT_BUILD/jdtool" verify jit-*.dump || fail "jdtool verify"
perf --buildid-dir "$scratch/buildid" inject --jit -i perf.data -o perf.jit.data || fail "perf inject"
ratio perf.jit.data

command -v objdump >/dev/null || skip "objdump is not installed, so there is nothing to annotate with"
perf --buildid-dir "$scratch/buildid" annotate -i perf.jit.data --stdio -l -s count_to_1000000000 \
    >annotated 2>log || fail "perf annotate: $(cat log)"
grep -q 'count = count + 1' annotated || fail "annotate shows no source: $(head -n 40 annotated)"
grep -qE '(jmp|b)[[:space:]]+[0-9a-f]+' annotated || fail "annotate shows no loop: $(head -n 40 annotated)"
sed -n 's/^/   /p' annotated | grep -v '^ *$' | tail -n 25
