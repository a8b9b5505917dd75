#!/usr/bin/env bash
# The agent builds and loads with musl libc, and its writer works.
set -euo pipefail

# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

command -v musl-gcc >/dev/null || skip "musl-gcc is not installed (musl-tools)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
# Not optimised, as what is asked here is the library's: the compiler is the one of all other builds.
CC=musl-gcc cmake -S "$JDAGENT_SOURCE" -B build -DCMAKE_BUILD_TYPE=Debug -DJDAGENT_WERROR=ON -DJDAGENT_TOOL=OFF \
    -DJDAGENT_TESTS=OFF >log 2>&1 || fail "configure: $(tail -n 20 log)"
cmake --build build >log 2>&1 || fail "build: $(grep -E 'error|warning' log)"
needed=$(readelf -d build/libjdagent.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ "$needed" = libc.so ] || fail "the agent needs $needed"

cat >load.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *agent = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!agent) {
        puts(dlerror());
        return 1;
    }
    return dlsym(agent, "Agent_OnLoad") && dlsym(agent, "Agent_OnAttach") ? 0 : 2;
}
END
musl-gcc -o load load.c
./load "$PWD/build/libjdagent.so" || fail "the agent does not load"

musl-gcc -std=c17 -I"$JDAGENT_SOURCE/writer" -o toy "$JDAGENT_SOURCE/examples/toy-jit/toy-jit.c" \
    build/writer/libjdwriter.a || fail "the example does not build"
./toy 1000 >out &
pid=$!
wait "$pid" || fail "the example failed"
rm -f "/tmp/perf-$pid.map"
"$JDAGENT_BUILD/jdtool" verify "jit-$pid.dump" || fail "jdtool verify"
"$JDAGENT_BUILD/jdtool" map "jit-$pid.dump" | grep ' count_to_1000$' >/dev/null || fail "no count_to_1000"
