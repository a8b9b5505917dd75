#!/usr/bin/env bash
# With clock=tsc the dump has the processor's time stamps. jdtool inject and perf inject honour them with a recording
# that says how to convert them; jdtool refuses others, and says why.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$(uname -m)" = x86_64 ] || skip "clock=tsc is for x86-64"
grep -qw constant_tsc /proc/cpuinfo || skip "this processor's time stamp counter changes its pace"
need_perf
compile
marker=$build/java-tests/tsc-marker

# Without -k: perf's own clock is what such a recording can be converted to.
# shellcheck disable=SC2016 # for the inner shell
perf_record -o "$scratch/perf.data" -e cpu-clock -F 999 -g -- bash -c '
    marker=$1 out=$2; shift 2
    "$marker" >"$out/first"; "$@" >"$out/codecache"; "$marker" >"$out/second"' - \
    "$marker" "$scratch" "$jdk/bin/java" "-agentpath:$agent=clock=tsc,dir=$scratch" \
    -XX:+PreserveFramePointer -XX:+PrintCodeCache -cp "$classes" Streams 3 ||
    fail "recording java failed"
dump=$(the_dump "$scratch")
verify "$dump"
"$jdtool" dump --brief "$dump" | sed -n 1p >"$scratch/header"
grep -q ARCH_TIMESTAMP "$scratch/header" || fail "the header does not say so: $(cat "$scratch/header")"

# check NAME INJECTED: the samples in generated code have names.
check() {
    local total named
    read -r total named < <(leaf_names "$2" "$scratch/codecache")
    note "$1: $named of $total leaf samples in generated code named, $(share "$named" "$total")"
    [ "$total" -ge 300 ] || fail "only $total samples in generated code"
    at_least "$named" "$total" 99.9 || fail "$1: less than 99.9 % named"
}

# refuses RECORDING REASON: the dump is left alone, which jdtool gives the reason for. A recording may
# hold other JVMs, so that is no reason to end.
refuses() {
    "$jdtool" inject -q -i "$1" -o "$scratch/refused" >"$scratch/said" 2>&1 || true
    grep -qE "$2" "$scratch/said" || fail "no reason: $(cat "$scratch/said")"
    read -r _ named < <(leaf_names "$scratch/refused" "$scratch/codecache")
    [ "$named" -eq 0 ] || fail "stamps of two clocks were mixed"
}

if perf script --show-mmap-events -D -i "$scratch/perf.data" 2>/dev/null | grep PERF_RECORD_TIME_CONV >/dev/null; then
    converted=$scratch/perf.data
else
    note "this kernel offers no conversion; one is measured"
    refuses "$scratch/perf.data" "$dump.*processor's time stamps.*convert"
    mapfile -t times < <(perf script --show-mmap-events --ns -i "$scratch/perf.data" 2>/dev/null |
        sed -n 's/^ *tsc-marker .* \([0-9]*\)\.\([0-9]*\): PERF_RECORD_MMAP2.*(0x3000) @ 0 .*/\1\2/p')
    [ "${#times[@]}" -eq 2 ] || fail "${#times[@]} marks in the recording"
    read -r before after <"$scratch/first"
    first=$(((before + after) / 2))
    read -r before after <"$scratch/second"
    converted=$scratch/converted.data
    python3 "$tests_dir/clock/add_time_conversion.py" "$scratch/perf.data" "$converted" \
        "$first" "${times[0]}" $(((before + after) / 2)) "${times[1]}" || fail "adding the conversion"
fi

"$jdtool" inject -q -i "$converted" -o "$scratch/jdtool.data" >"$scratch/said" 2>&1 ||
    fail "jdtool inject: $(cat "$scratch/said")"
check "jdtool inject" "$scratch/jdtool.data"
mkdir "$scratch/buildid"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$converted" -o "$scratch/perf.jit.data" ||
    fail "perf inject --jit failed"
check "perf inject" "$scratch/perf.jit.data"

# On the monotonic clock there is nothing to convert to.
perf_record -o "$scratch/mono.data" -e cpu-clock -F 99 -k mono -- "$jdk/bin/java" \
    "-agentpath:$agent=clock=tsc,dir=$scratch/out" -version >/dev/null 2>&1 || fail "recording java failed"
refuses "$scratch/mono.data" "processor's time stamps"

# The environment's word for it.
mkdir "$scratch/environment"
JITDUMP_USE_ARCH_TIMESTAMP=1 "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/environment" -version 2>/dev/null
"$jdtool" dump --brief "$(the_dump "$scratch/environment")" | sed -n 1p | grep -q ARCH_TIMESTAMP ||
    fail "JITDUMP_USE_ARCH_TIMESTAMP=1 has no effect"
