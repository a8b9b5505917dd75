#!/usr/bin/env bash
# Runs the unit tests with a compiler's sanitizers. usage: sanitized.sh SANITIZERS. SANITIZERS as -fsanitize wants them:
# address,undefined or thread, which is for those of code that has threads. Those of addresses are the fuzzers' build,
# where there is one.
set -euo pipefail
# shellcheck source=tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/clang_build.sh
source "$(dirname "$0")/clang_build.sh"

sanitizers=${1:?usage: sanitized.sh SANITIZERS}
source=${JDAGENT_SOURCE:?}
build=${JDAGENT_BUILD:?}/sanitized-${sanitizers//,/-}

# What was freed is kept for as long as the fuzzers keep it; sixteen times of that takes a tenth of the time.
export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=16
if [[ $sanitizers == address,undefined ]] && clang_can_fuzz; then
    clang_build "$source" "$JDAGENT_BUILD/fuzz" unit_tests || exit 1
    cd "$JDAGENT_BUILD/fuzz"
    exec ctest -L '^unit$' --no-tests=error --output-on-failure -j $((2 * $(nproc)))
fi

probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
if ! { echo 'int main(void) { return 0; }' |
    "${CC:-cc}" -fsanitize="$sanitizers" -x c - -o "$probe" && "$probe"; } 2>/dev/null; then
    skip "${CC:-cc} cannot make programs with -fsanitize=$sanitizers that run here"
fi
rm -f "$probe" # exec leaves no trap

tests=unit
[[ $sanitizers != thread ]] || tests=threads
log=$build.log
if ! { cmake -S "$source" -B "$build" -DJDAGENT_SANITIZE="$sanitizers" -DJDAGENT_WERROR=OFF \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO="$sanitized_flags" &&
    nice -n 5 cmake --build "$build" --target "${tests}_tests" -j "$(nproc)"; } >"$log" 2>&1; then
    cat "$log"
    exit 1
fi
cd "$build"
exec ctest -L "^$tests\$" --no-tests=error --output-on-failure -j $((2 * $(nproc)))
