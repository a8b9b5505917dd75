#!/usr/bin/env bash
# A test counts as failed if it is skipped although the machine has what it needs.
# shellcheck source=tests/shell/lib.sh
source "$(dirname "$0")/lib.sh"

# results NAME STATUS OUTPUT…: what ctest writes.
results() {
    echo '<testsuite>'
    while (($#)); do
        printf '<testcase name="%s" status="%s">\n<system-out>%s</system-out>\n</testcase>\n' "$1" "$2" "$3"
        shift 3
    done
    echo '</testsuite>'
}

cat >list <<'END'
# a comment
^unit\.one$     command:no-such-program
^unit\.two$     command:bash
^unit\.long$    long
END
export JDAGENT_REQUIRED=$WORK/list

results unit.one notrun 'SKIPPED: no program' unit.three run '' >junit.xml
run 0 "$SOURCE/tests/required.sh" junit.xml

results unit.two notrun 'SKIPPED: no bash' unit.one notrun '' >junit.xml
run 1 "$SOURCE/tests/required.sh" junit.xml
says 'unit.two: no bash'
says_not unit.one

# One that no line names is required everywhere, and has to give a reason.
results unit.three notrun '' >junit.xml
run 1 "$SOURCE/tests/required.sh" junit.xml
says 'unit.three: (gave no reason)'

results unit.long notrun 'SKIPPED: set JDAGENT_LONG=1' >junit.xml
run 0 env JDAGENT_LONG=0 "$SOURCE/tests/required.sh" junit.xml
run 1 env JDAGENT_LONG=1 "$SOURCE/tests/required.sh" junit.xml

echo '^unit\.one$ magic' >list
results unit.one notrun 'SKIPPED: why' >junit.xml
run 2 "$SOURCE/tests/required.sh" junit.xml
says 'unknown need'

# The real list: a perf that fails on a machine that can sample is no reason to skip.
unset JDAGENT_REQUIRED
if "$JDAGENT_BUILD/tests/can-sample" 2>/dev/null && command -v perf >/dev/null; then
    for jdk in /usr/lib/jvm/*/bin/javac; do
        jdk=$(basename "$(dirname "$(dirname "$(readlink -f "$jdk")")")")
        results "java.main_path.$jdk" notrun 'SKIPPED: perf cannot sample here: no' >junit.xml
        run 1 "$SOURCE/tests/required.sh" junit.xml
        says "java.main_path.$jdk"
    done
fi
results java.main_path.jdk-99 notrun 'SKIPPED: no JDK at /usr/lib/jvm/jdk-99' >junit.xml
run 0 "$SOURCE/tests/required.sh" junit.xml
