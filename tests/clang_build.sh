# shellcheck shell=bash
# The build that libFuzzer's targets and the unit tests under the address and undefined behaviour
# sanitizers share: what they test is compiled once. Sourced, behind tests/lib.sh.

clang_sanitizers=fuzzer-no-link,address,undefined
# Not optimised: what sanitizers put into the code takes three times as long to compile otherwise; fuzzers hardly notice.
sanitized_flags='-O0 -g1 -DNDEBUG'

# clang_can_fuzz: else skip_reason says why not.
clang_can_fuzz() {
    local probe status=0
    command -v clang >/dev/null || { skip_reason="clang is not installed"; return 1; }
    probe=$(mktemp)
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { (void)d; (void)n; return 0; }' |
        clang -fsanitize=fuzzer,address,undefined -x c - -o "$probe" 2>/dev/null || status=1
    rm -f "$probe"
    # shellcheck disable=SC2034 # for who asks
    ((status == 0)) || skip_reason="clang has no libFuzzer here (Debian: libclang-rt-14-dev)"
    return $status
}

# clang_build SOURCE BUILD TARGET…: one at a time, for they share the objects, and none must see another's half-made
# ones. What it says when it fails is printed.
clang_build() {
    local source=$1 build=$2 target targets=() status=0
    shift 2
    for target; do targets+=(--target "$target"); done
    # Nobody looks into comparisons: that takes an eighth of the time to compile, and of a fuzzer more than what it tries.
    # A hundred programs are linked, by gold in two thirds of the time.
    local gold=()
    ! command -v ld.gold >/dev/null || gold=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold)
    (
        flock 9
        # It calls cmake again by itself where it has to.
        { { [[ -e $build/Makefile || -e $build/build.ninja ]] ||
            cmake -S "$source" -B "$build" -DCMAKE_C_COMPILER=clang -DJDAGENT_FUZZ=ON \
                -DJDAGENT_SANITIZE="$clang_sanitizers" "${gold[@]}" ${clang_more:+"$clang_more"} -DCMAKE_C_FLAGS_RELWITHDEBINFO="$sanitized_flags -fno-sanitize-coverage=trace-cmp"; } &&
            nice -n 5 cmake --build "$build" "${targets[@]}" -j "$(nproc)"; } >"$build.log" 2>&1 9>&- && exit
        cat "$build.log" # before the next one writes it
        exit 1
    ) 9>"$build.lock" || status=1
    return $status
}
