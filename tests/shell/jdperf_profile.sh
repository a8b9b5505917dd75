#!/usr/bin/env bash
# The main path for real: the sample recorded, reported, annotated, by a java command and by a script.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
compile_sample

run 0 "$JDPERF" record -o p -- java -cp classes Market 4
says 'customers and statements'
ls p/jit-*.dump >/dev/null || fail "there is no dump in the profile"
[[ $(stat -c %a p) == 700 ]] || fail "the profile is open to others"
run 0 "$JDAGENT_BUILD/jdtool" verify p/jit-*.dump

# The sample's methods lead the report, with their lines.
run 0 "$JDPERF" report p
awk '!/^#/ && NF && n++ < 3' output >top
grep -q 'Market\.takeOrders()' top || fail "the hot method is not at the top"
run 0 "$JDPERF" report p --lines
awk '!/^#/ && NF && n++ < 3' output >top
grep -Eq 'Market\.java:5[0-9] .*Market' top || fail "the hot lines are not at the top"
[[ ! -e $HOME/.debug || -z $(find "$HOME/.debug" -newer classes -name '*jit*' -print -quit) ]] ||
    fail "files of the profile went to ~/.debug"

run 0 "$JDPERF" annotate p takeOrders --source-path "$SOURCE/scripts/sample"
says 'double trend = price * 0.0001;'
run 0 "$JDPERF" annotate p takeOrders --no-source
says_not 'double trend'
run 1 "$JDPERF" annotate p noSuchMethod
says 'The hottest are:'
says 'Market.takeOrders()'

run 0 "$JDPERF" script p
says 'Market.takeOrders()+0x'
says 'start_thread+0x'

# A script and the JVMs it starts; -d ends the recording first; names as asked for.
printf '#!/bin/sh\njava -cp classes Market 3\njava -cp classes Market 1\n' >start
chmod +x start
run 0 "$JDPERF" record -o q -d 3 --agent-options names=short,tier=on -- ./start
says 'Picked up JAVA_TOOL_OPTIONS'
[[ $(grep -c 'customers and statements' output) == 2 ]] || fail "the command was cut short"
run 0 "$JDPERF" report q
says 'Market.takeOrders'

# Once more by perf's own injector.
run 0 "$JDPERF" inject p --injector=perf
says 'perf inject --jit'
run 0 "$JDPERF" report p
says 'Market.takeOrders()'
