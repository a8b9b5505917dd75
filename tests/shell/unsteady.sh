#!/usr/bin/env bash
# scripts/test.sh repeats sampled tests that failed, and reports those that pass the second time. So does any other
# test's failure, and so do seven. So it is with a test that was skipped although this machine has what it needs.
# shellcheck source=tests/shell/lib.sh
source "$(dirname "$0")/lib.sh"

mkdir -p project/scripts project/tests
cp "$SOURCE/scripts/test.sh" "$SOURCE/scripts/packages.sh" project/scripts/
cp "$SOURCE/tests/required.sh" project/tests/
printf '%s\n' '^java\.may     command:no-such-program' '.             command:bash' >project/tests/required.txt

# project NAME STATUSES…: tests that end with these statuses, one after the other ("1,0": fails first).
project() {
    rm -rf project/build
    {
        echo 'cmake_minimum_required(VERSION 3.18)'
        echo 'project(steadiness NONE)'
        echo 'enable_testing()'
        while (($#)); do
            rm -f "$WORK/$1".run
            cat <<END
add_test(NAME $1 COMMAND bash -c "echo >>$WORK/$1.run; exit \$(echo $2 | cut -d, -f \$(wc -l <$WORK/$1.run))")
set_tests_properties($1 PROPERTIES SKIP_RETURN_CODE 77)
END
            shift 2
        done
    } >project/CMakeLists.txt
}

project java.steady.17 0 java.once.17 1,0 shell.c++ 1,0 unit.steady 0
run 0 project/scripts/test.sh --no-install
says '2 failed'
says 'unsteady, passed when run again alone'
[[ $(wc -l <java.steady.17.run) == 1 ]] || fail "what had passed ran again"
project java.once.17 1,0
run 1 project/scripts/test.sh --no-install --once

project java.steady.17 0 java.twice.17 1,1
run 1 project/scripts/test.sh --no-install
says_not 'unsteady, passed'
project java.steady.17 0 java.skipped.17 1,77
run 1 project/scripts/test.sh --no-install
says_not 'unsteady, passed'
project java.may.17 77 shell.probe 77,0 java.once.17 1,0
run 0 project/scripts/test.sh --no-install
says 'unsteady, passed when run again alone'
says '  shell.probe'
says_not 'so failed'
[[ $(wc -l <java.may.17.run) == 1 ]] || fail "what may be skipped ran again"
project shell.probe 77,77
run 1 project/scripts/test.sh --no-install
says 'so failed'
project shell.probe 77,0
run 1 project/scripts/test.sh --no-install --once
says 'so failed'
project java.once.17 1,0 unit.broken 77,0
run 1 project/scripts/test.sh --no-install
says 'so failed'
project java.once.17 1,0 unit.broken 1,0
run 1 project/scripts/test.sh --no-install
says_not 'unsteady, passed'
project java.a 1,0 java.b 1,0 java.c 1,0 java.d 1,0 java.e 1,0 java.f 1,0 java.g 1,0
run 1 project/scripts/test.sh --no-install
says_not 'unsteady, passed'
