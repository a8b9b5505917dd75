#!/usr/bin/env bash
# run.sh TARGET: builds the fuzz targets with clang and runs one on its corpus, and then for 4 seconds
# on, or for 10 million executions with JDAGENT_LONG=1. What it finds stays in the build directory.
set -euo pipefail
# shellcheck source=tests/lib.sh
source "$(dirname "$0")/../lib.sh"

target=${1:?usage: run.sh dump|inject|methods|objects|options|pipe|resolve|sinks|stack}
source=${JDAGENT_SOURCE:?}
build=${JDAGENT_BUILD:?}/fuzz
here=$source/tests/fuzz

command -v clang >/dev/null || {
    skip "clang is not installed"
}
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { (void)d; (void)n; return 0; }' |
    clang -fsanitize=fuzzer,address,undefined -x c - -o "$probe" 2>/dev/null || {
    skip "clang has no libFuzzer here (Debian: libclang-rt-14-dev)"
}
rm -f "$probe" # exec leaves no trap

# One at a time: they share the objects, and none must see another's half-made ones.
exec 9>"$build.lock"
flock 9
log=$build.log
if ! { cmake -S "$source" -B "$build" -DCMAKE_C_COMPILER=clang -DJDAGENT_FUZZ=ON \
    -DJDAGENT_SANITIZE=fuzzer-no-link,address,undefined -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -g1 -DNDEBUG" &&
    cmake --build "$build" --target "${target}_fuzzer" -j "$(nproc)"; } >"$log" 2>&1; then
    cat "$log"
    exit 1
fi
exec 9>&-

limit=(-max_total_time=4)
[[ ${JDAGENT_LONG:-} == 1 ]] && limit=(-runs=10000000)
corpus=$build/corpus-$target # libFuzzer adds to the first directory, so not the one in the sources
mkdir -p "$corpus"
# Most of the time goes into ASan's own book-keeping otherwise.
export ASAN_OPTIONS=malloc_context_size=4:quarantine_size_mb=16
exec nice -n 10 "$build/${target}_fuzzer" "${limit[@]}" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -dict="$here/$target.dict" -artifact_prefix="$build/$target-" -print_final_stats=1 \
    -verbosity=0 "$corpus" "$here/corpus/$target"
