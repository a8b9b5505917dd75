#!/usr/bin/env bash
# An installed jdperf finds its parts, also through a symbolic link. Blanks and colons in paths change nothing.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
command -v cmake >/dev/null || skip "cmake is not installed"
need_real_profile
export PERF_RECORD_FREQ=997 # many samples in a short time
compile_sample
cmake --install "$JDAGENT_BUILD" --prefix "$WORK/a b/usr" >install.log 2>&1 || fail "cmake --install: $(tail -n 5 install.log)"
for text in share/man/man7/libjdagent.7 share/man/man1/jdtool.1 share/doc/jdagent/README.md; do
    grep -q "agentpath:$WORK/a b/usr/lib/libjdagent.so" "$WORK/a b/usr/$text" || fail "$text names another place than the agent's"
    ! grep -q '/usr/local' "$WORK/a b/usr/$text" || fail "$text names /usr/local"
done
# All of it says which release it is.
version=$(sed -n 's/^project(jdagent VERSION \([0-9.]*\).*/\1/p' "$SOURCE/CMakeLists.txt")
grep -q "^## $version\$" "$SOURCE/CHANGELOG.md" || fail "the changelog has no $version"
grep -qrx "Version: $version" "$WORK/a b/usr/lib" --include=jdwriter.pc || fail "jdwriter.pc has another version than $version"
grep -qr "PACKAGE_VERSION \"$version\"" "$WORK/a b/usr/lib" --include=jdwriter-config-version.cmake || fail "the CMake package has another version than $version"
unset JDAGENT_BUILD
ln -s "$WORK/a b/usr/bin/jdperf" jdperf
for jdperf in "$WORK/a b/usr/bin/jdperf" ./jdperf; do
    run 0 "$jdperf" --version
    says "jdperf $version"
    run 0 "$jdperf" record -o 'a profile 12:30' -- java -cp classes Market 2
    says 'with a name'
    run 0 "$jdperf" report 'a profile 12:30' --limit 0
    says 'Market.takeOrders()'
done
run 0 ./jdperf annotate 'a profile 12:30' takeOrders --whole --source-path "$SOURCE/scripts/sample"
says 'List<Order> orders = new ArrayList<>();'
run 0 ./jdperf flame 'a profile 12:30'
run 0 ./jdperf bundle 'a profile 12:30' -o 'a bundle.tar'
# Through the environment the path has a blank in it, too.
run 0 ./jdperf record -o 'a profile 12:30' -- sh -c 'java -cp classes Market 1'
run 0 ./jdperf report 'a profile 12:30' --limit 0
says 'Market.takeOrders()'

rm "a b/usr/bin/jdtool"
run 1 ./jdperf jvms
says 'is not complete'
