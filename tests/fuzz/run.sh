#!/usr/bin/env bash
# run.sh TARGET: builds the fuzz targets with clang and runs one on its corpus and then on the same
# 10,000 inputs each time, or on 10 million new ones with JDAGENT_LONG=1. What it finds stays in the build directory.
# A long run is optimised. JDAGENT_FUZZ_CONFINED=1: without rights, as jdtool reads others' data, and without the address
# sanitizer.
set -euo pipefail
# shellcheck source=tests/lib.sh
source "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/clang_build.sh
source "$(dirname "$0")/../clang_build.sh"

target=${1:?usage: run.sh dump|inject|jfr|journal|methods|objects|options|pipe|resolve|saved|sinks|stack}
source=${JDAGENT_SOURCE:?}
build=${JDAGENT_BUILD:?}/fuzz
here=$source/tests/fuzz

clang_can_fuzz || skip "$skip_reason"
mode=()
if [[ ${JDAGENT_FUZZ_CONFINED:-} == 1 ]]; then
    build+=-confined
    clang_sanitizers=fuzzer-no-link,undefined
    clang_more=-DJDAGENT_FUZZ_CONFINED=ON
    mode=(-timeout=0 -rss_limit_mb=0)
fi
limit=(-seed=1 -runs=10000 -max_total_time=3)
if [[ ${JDAGENT_LONG:-} == 1 ]]; then
    build+=-long
    sanitized_flags='-O2 -g1 -DNDEBUG'
    limit=(-runs=10000000 -entropic=0)
fi
clang_build "$source" "$build" "${target}_fuzzer" || exit 1

corpus=$build/corpus-$target # libFuzzer adds to the first directory, so not the one in the sources
mkdir -p "$corpus"
# Most of the time goes into ASan's own book-keeping otherwise.
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=16
exec nice -n 10 "$build/${target}_fuzzer" "${limit[@]}" -max_len=4096 -timeout=10 -rss_limit_mb=2048 "${mode[@]}" \
    -dict="$here/$target.dict" -artifact_prefix="$build/$target-" -print_final_stats=1 \
    -verbosity=0 "$corpus" "$here/corpus/$target"
