#!/usr/bin/env bash
# An outside CMake project, pkg-config and C++ use an installed libjdwriter.
set -euo pipefail

fail() {
    echo "FAILED: $*"
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
cmake --install "$JDAGENT_BUILD" --prefix "$prefix" >"$scratch/log" || fail "install: $(cat "$scratch/log")"
# An installation may be moved.
mv "$prefix" "$scratch/elsewhere"
prefix=$scratch/elsewhere
archive=$(find "$prefix" -name libjdwriter.a)
libdir=$(dirname "$archive")

foreign=$(nm --defined-only -g "$archive" | awk '$3 != "" && $3 !~ /^jdwriter_/')
[ -z "$foreign" ] || fail "symbols that could clash with a program's own: $foreign"

example=$JDAGENT_SOURCE/examples/toy-jit
cmake -S "$example" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log" 2>&1 ||
    fail "find_package: $(cat "$scratch/log")"
cmake --build "$scratch/build" >"$scratch/log" 2>&1 || fail "build: $(cat "$scratch/log")"

export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs jdwriter)
cc -std=c17 -Wall -Wextra -Werror -o "$scratch/toy" "$example/toy-jit.c" "${flags[@]}" ||
    fail "pkg-config: ${flags[*]}"

printf '#include <jdwriter.h>\nint main() { jdwriter_close(nullptr); }\n' >"$scratch/user.cc"
if part "from C++" command -v c++; then
    c++ -std=c++11 -Wall -Wextra -Werror -o "$scratch/user" "$scratch/user.cc" "${flags[@]}" ||
        fail "C++"
    "$scratch/user" || fail "the C++ program failed"
fi

cd "$scratch"
for toy in build/toy-jit ./toy; do
    "$toy" 1000 2000 >out & pid=$!
    wait "$pid" || fail "$toy failed"
    rm -f "/tmp/perf-$pid.map"
    [ "$(cat out)" = $'count_to_1000 returned 1000\ncount_to_2000 returned 2000' ] || fail "$(cat out)"
    "$JDAGENT_BUILD/jdtool" verify "jit-$pid.dump" || fail "jdtool verify"
    "$JDAGENT_BUILD/jdtool" map "jit-$pid.dump" | grep ' count_to_2000$' >/dev/null || fail "no count_to_2000"
done
