#!/usr/bin/env bash
# The main path: record, report and annotate the sample program.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
export PERF_RECORD_FREQ=997 # many samples in a short time
export HOME=$WORK/home
mkdir "$HOME"
compile_sample

run 0 "$JDPERF" record -o p --keep-raw -- java -cp classes Market 4
says 'customers and statements'
ls p/jit-*.dump >/dev/null || fail "there is no dump in the profile"
[[ $(stat -c %a p) == 700 ]] || fail "the profile is open to others"
run 0 "$JDAGENT_BUILD/jdtool" verify p/jit-*.dump

# The sample's methods lead the report, with their lines; a method is one row.
run 0 "$JDPERF" report p
grep -m 1 -A 3 SELF output >top
grep -qE 'Market\.(drift|price|takeOrders).*Market\.java:[0-9]+ .*(C2|C1|inlined|interpreted)' top ||
    fail "the hot method is not at the top: $(cat top)"
[[ -z $(sed -n 's/^ *[0-9.]*% *[0-9.]*%  \([A-Za-z.]*Market\.[^ ]*\) .*/\1/p' output | sort | uniq -d) ]] ||
    fail "a method has several rows: $(cat output)"
run 0 "$JDPERF" report --lines p
grep -m 1 -A 3 SELF output | grep -qE 'Market.*Market\.java:(5[0-9]|6[01])' || fail "the hot lines are not at the top: $(head -n 5 output)"
COLUMNS=70 run 0 "$JDPERF" report p --limit 5
[[ $(grep -v '^jdperf: ' output | wc -L) -le 70 ]] || fail "wider than 70 columns: $(cat output)" # but for what it says of the profile
says 'more methods: --limit 0 shows all'
COLUMNS=1000 run 0 "$JDPERF" report p --limit 5
[[ $(wc -L <output) -gt 512 ]] || fail "a wide terminal is not used: $(cat output)"
run 1 "$JDPERF" report p --event locks
says 'failed to find event locks in'
says ': its events are c'
# What is wrong is said of the verb that was typed, not of one of jdtool's that works for it.
for typed in 'report p --limit x' 'flame p --from x' 'annotate p --from x sort' 'view p --port x'; do
    # shellcheck disable=SC2086
    run 2 "$JDPERF" $typed
    says "jdperf: ${typed%% *}: "
    says_not 'usage: jdtool'
done
# A program that is no JVM.
run 0 "$JDPERF" record -o n -F 997 -- awk 'BEGIN { for (i = 0; i < 3000000; i++) n += i }'
says 'the profile is of native code alone'
run 0 "$JDPERF" report p --threads
says ' THREAD'
says ' java'
run 0 "$JDPERF" report p --threads --by process
[[ $(grep -c '%' output) == 1 ]] || fail "the threads of one process are several rows: $(cat output)"
grep -qE "%.* Market [0-9]+$" output || fail "the process has no main class and number: $(cat output)"
cp output grouped
run 0 "$JDPERF" report p --by process # ...--threads goes without saying
cmp output grouped || fail "--by changes nothing: $(cat output)"
run 0 "$JDPERF" report p --by label:team
grep -qE '% +[0-9]+ +-  \[no team\]$' output || fail "a group of samples has the number of a thread: $(cat output)"
run 2 "$JDPERF" report p --by process --lines
says 'report: --by prints one row for each group'
run 0 "$JDPERF" export p firefox -o - # other readers tell several JVMs apart, too
grep -q '"processName": *"Market"' output || fail "Firefox's profiler is not told what the process runs"
run 0 "$JDPERF" report p --callers mergeLo
grep -m 1 % output | grep -q mergeLo || fail "the method asked for is not at the top"
says 'call_stub'
run 0 "$JDPERF" report p --callees takeOrders
says 'Market.price(int)'
run 1 "$JDPERF" report p --callees takeOder
says 'Market.takeOrders()'
run 2 "$JDPERF" report p --stdio
says "perf report's options need --perf"
run 2 "$JDPERF" report p --limit some
says "not 'some'"

run 0 "$JDPERF" report --perf p
awk '!/^#/ && NF && n++ < 3' output >top
grep -qE 'Market\.(takeOrders|price)' top || fail "the hot method is not at the top"
run 0 "$JDPERF" report --perf p --lines
awk '!/^#/ && NF && n++ < 3' output >top
grep -Eq 'Market\.java:(5[0-9]|6[01]) .*Market' top || fail "the hot lines are not at the top"
run 0 "$JDPERF" report --perf p --callers --symbol-filter Market.
says 'call_stub'
awk '!/^#/ && NF && /%/ { print; exit }' output | grep -q 'Market\.' || fail "the method asked for is not at the top"

# For perf a profile is looked for in the first word alone; elsewhere it is not passed over.
run 2 "$JDPERF" report --perf --lines p
says 'the profile comes first: jdperf report --perf p'
run 2 "$JDPERF" script -F comm p
says 'the profile comes first: jdperf script p'

# Nothing of the user's own perf configuration gets in.
printf '[report]\n\tpercent-limit = 99\n[call-graph]\n\torder = caller\n\tprint-limit = 1\n' >"$HOME/.perfconfig"
run 0 "$JDPERF" report --perf p
says 'Market.takeOrders()'
rm "$HOME/.perfconfig"

run 2 "$JDPERF" report --perf p -s magic
says "Unknown --sort key: \`magic'"
run 2 "$JDPERF" script p --frobnicate
says "unknown option \`frobnicate'"
run 2 "$JDPERF" flame p --from noon
says "not 'noon'"
run 1 "$JDPERF" flame p --thread 1
says 'the selection matches none'
run 1 "$JDPERF" report p --thread 1
says 'jdperf: there are no samples, or the selection matches none'
run 1 "$JDPERF" flame p --include '('
says 'regular expression'
run 1 "$JDPERF" bundle p -o nowhere/p.tar
says 'failed to write nowhere/p.tar: No such file'

run 0 "$JDPERF" annotate p takeOrders --source-path "$SOURCE/scripts/sample" --whole
says 'List<Order> orders = new ArrayList<>();'
run 0 "$JDPERF" annotate p takeOrders --no-source
says_not 'List<Order>'
run 2 "$JDPERF" annotate p
says 'which method of p?'
run 2 "$JDPERF" annotate p takeOrders --source-path nowhere
says 'no directory nowhere'
run 0 "$JDPERF" annotate p price
says 'jdtool: Market.price(int): '
says_not 'also matching'
# It is hot, and C2 inlines it; ArrayList.add may have samples in its own code alone.
run 0 "$JDPERF" annotate p drift
says 'inlined'
run 1 "$JDPERF" annotate p noSuchMethod
says 'The hottest are:'
says 'Market.takeOrders()'
# Own disassembly: offsets, inlined methods' lines below their callers', columns.
run 0 "$JDPERF" annotate p price --source-path "$SOURCE/scripts/sample"
grep -qE '^ +[0-9.]+ \| +[0-9a-f]+ \| (\| )?[a-z]+ ' output || fail "no instruction has a share: $(head -n 30 output)"
# It begins near the first instruction that was sampled, and leaves out what is far from any.
awk -F'|' '/^ *[0-9.]+ +\|/ { exit rows > 9 } / offset / { rows = 0; in_it = 1 } in_it && $2 ~ /^ +[0-9a-f]+ $/ { rows++ }' output ||
    fail "the first sample is far down: $(head -n 40 output)"
short=$(wc -l <output)
run 0 "$JDPERF" annotate p price --source-path "$SOURCE/scripts/sample" --whole
(($(wc -l <output) > short)) || fail "--whole shows no more than $short lines"
says_not 'instructions without samples'
run 0 "$JDPERF" annotate p price --source-path "$SOURCE/scripts/sample"
says 'instructions without samples'
grep -qE '\| \| Market\.drift:6[01] +.*(trend|Math)' output || fail "no line of the inlined method: $(head -n 30 output)"
ln -s "$SOURCE/scripts/sample" sources # perf runs in another directory
run 0 "$JDPERF" annotate --perf p takeOrders --source-path sources
says 'double trend = price * 0.0001;'
run 0 "$JDPERF" annotate --perf p price
says 'jdperf: Market.price(int): '

run 0 "$JDPERF" report p --json
python3 - output <<'END' || fail "report --json"
import json, sys
with open(sys.argv[1]) as file:
    text = file.read()
report = json.loads(text[text.index("{"):])
price = next(method for method in report["methods"] if method["name"] == "Market.price(int)")
assert price["total_samples"] >= price["self_samples"] > 0 and price["lines"] and price["file"] == "Market.java"
assert any(report["methods"][caller["method"]]["name"] == "Market.takeOrders()" for caller in price["callers"])
END

run 0 "$JDPERF" script p
says 'Market.takeOrders()+0x'
says 'start_thread+0x'

# A script and the JVMs it starts; -d ends the recording first; names as asked for.
printf '#!/bin/sh\njava -cp classes Market 1\njava -cp classes Market 1\n' >start
chmod +x start
run 0 "$JDPERF" record -o q -d 2 --agent-options names=short,tier=on -- ./start
says 'Picked up JAVA_TOOL_OPTIONS'
[[ $(grep -c 'customers and statements' output) == 2 ]] || fail "the command was cut short"
run 0 "$JDPERF" report q --limit 0
says 'Market.' # which of its methods is hot in these seconds depends on how busy the machine is
# Nothing raw is left on the disk.
[[ ! -e q/perf.data && -s q/perf.jit.data ]] || fail "perf.data was kept"
run 1 "$JDPERF" inject q
says 'was discarded'

[[ ! -e $HOME/.debug ]] || fail "perf wrote into the home directory"

# The whole machine, for root.
if part "the whole machine" is_root; then
    # 3: JVMs of others, which have no agent, may be among what is recorded.
    status=0
    # shellcheck disable=SC2016
    "$JDPERF" record -o a -a -- sh -c 'echo $$ >market; exec java -cp classes Market 1' >output 2>&1 || status=$?
    ((status == 0 || status == 3)) || fail "status $status of record -a"
    run 0 "$JDPERF" report a --comm java --pid "$(cat market)" --limit 0
    says 'Market.takeOrders()'
fi

# A dump that ends early: the profile is made, and called bad.
run 3 "$JDPERF" record -o b --keep-raw --discard-raw --agent-options max=300K -- java -cp classes Market 2
says 'of the frames in generated code have no name'
says 'perf.data is kept'
[[ -e b/perf.data ]] || fail "what may be injected again is gone"
grep -q '"verdict": "bad"' b/scorecard.json || fail "the scorecard is not bad"

# Stacks that lose their callers make a bad profile, too.
run 3 "$JDPERF" record -o b --stacks dwarf --stack-size 64 -- java -cp classes Market 1
says 'of the stacks reach their thread'\''s root'
run 0 "$JDPERF" flame b
grep -q 'This profile is bad: .* of the stacks reach their thread' b/flamegraph.html || fail "the flame page does not say that the profile is bad"
run 0 "$JDPERF" report b
says 'This profile is bad: '

# Copied stacks, and only the result kept.
run 0 "$JDPERF" record -o d --stacks dwarf --discard-raw -- java -cp classes Market 1
[[ ! -e d/perf.data ]] || fail "the raw recording was kept"
read -r all rooted < <(rooted_stacks d/perf.jit.data)
note "$rooted of $all stacks are rooted"
((all >= 100 && rooted * 10 >= all * 9)) || fail "stacks without roots: $rooted of $all; $(cat d/scorecard.json)"
run 0 "$JDPERF" report d --limit 0
says 'Market.takeOrders()'

# Its dump is packed, and read so; of a recording that is kept it stays as perf reads it.
[[ $(head -c 4 d/jit-*.dump | od -An -tx1 | tr -d ' ') == 28b52ffd ]] || fail "the dump is not packed"
[[ $(head -c 4 p/jit-*.dump) == DTiJ ]] || fail "the dump of a recording that is kept is packed"
run 0 "$JDAGENT_BUILD/jdtool" verify d/jit-*.dump
# Which of its methods was compiled when it was sampled depends on how busy the machine is.
run 0 "$JDPERF" annotate d Market
says ' bytes at 0x'
says_not ', there from '
run 0 "$JDAGENT_BUILD/jdtool" convert d/jit-*.dump -o plain.dump
[[ $(head -c 4 plain.dump) == DTiJ ]] || fail "convert makes no plain dump"

# What cannot be named again stays as it was named.
run 2 "$JDPERF" inject p -- --frobnicate
says "unknown option: --frobnicate"
cp -r p moved
rm moved/jit-*.dump
mv p away
run 1 "$JDPERF" inject moved
says 'its names are unchanged'
# Where it is now its dumps are found, whatever it is called.
cp -r away 'a[1]'
rm 'a[1]/samples.saved'
run 0 "$JDAGENT_BUILD/jdtool" export -i 'a[1]' --format collapsed -o carried
grep -q 'Market.takeOrders' carried || fail "a[1] has no names"
mv away p
run 0 "$JDPERF" report moved --limit 0
says 'Market.takeOrders()'

# Once more by perf's own injector.
run 0 "$JDPERF" inject p --injector=perf
says 'perf inject --jit'
run 0 "$JDPERF" report p --limit 0
says 'Market.takeOrders()'

# Not one dump that can be used: the profile is there, with everything but names, and called bad.
for dump in p/jit-*.dump; do
    : >"$dump"
done
run 3 "$JDPERF" inject p
says 'none of its dumps can be used'
says_not 'perf inject --jit'
run 0 "$JDPERF" report p --limit 0
says 'libjvm.so'
