#!/usr/bin/env bash
# jdperf compare and diff name a method that became four times slower, in text, JSON, flame graph and exit status. The
# example Action fails a build for it and passes one without. With JDAGENT_LONG=1 also how often 200 pairs of equal runs
# alarm, and how often a planted 5 % is found.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v python3 >/dev/null || skip "python3 is not installed"
mkdir classes
"$(oldest_javac)" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -d classes "$SOURCE/tests/shell/Shop.java"
shop=(java -cp "$WORK/classes" Shop)

# Wrong usage, before anything runs.
run 2 "$JDPERF" compare -- java
says 'which two commands?'
run 2 "$JDPERF" compare -n 1 -- true -- true
says 'from 2 to 100'
run 2 "$JDPERF" compare --work-from '[0-9]+' -- true -- true
says 'with a group'
run 2 "$JDPERF" compare --work-from '([0-9]+' -- true -- true
says 'with a group'
run 2 "$JDPERF" compare --wrong -- true -- true
says 'unknown option: --wrong'
mkdir there
run 2 "$JDPERF" compare -o there -- true -- true
says 'there exists already'
run 1 "$JDPERF" compare -n 2 -o failing -- java NoSuchClass -- true
says 'run 1 of before ended with status 1'
says 'NoSuchClass'

# Before: 400 passes; after: 8000. Of Shop.main that is a tenth and two thirds, with 3 points of scatter between runs
# (5 seen at the worst): t is above 10, and of some 40 comparisons one such stays unnoticed in fewer than 1 of 10,000.
run 3 "$JDPERF" compare -n 5 -F 799 -o runs --flame page.html --threshold 5 --include 'Shop\.main' -- "${shop[@]}" 90 400 -- "${shop[@]}" 90 8000
says 'run 2 of 5: after'
says 'percent of all samples before: significant changes'
grep -qE '\+[0-9.]+ .* self +Shop\.checksum\(int\)' output || fail "checksum is not named"
# By turns: who goes first changes.
[[ $(grep -oE '^jdperf: run [0-9] of 5: [a-z]+' output | sed -E 's/.*run (.) .*: (.).*/\1\2/' | tr '\n' ' ') == '1b 1a 2a 2b 3b 3a 4a 4b 5b 5a ' ]] ||
    fail "the order of runs"
before=(runs/before.?) after=(runs/after.?) only=(--include "Shop\.main")

check_json() {
    python3 - "$@" <<'END'
import json
import sys

measure = sys.argv[1]
document = json.load(open("output"))
assert document["measure"] == measure, document["measure"]
assert document["runs"] == {"before": 5, "after": 5}, document["runs"]
[event] = [event for event in document["events"] if "clock" in event["name"] or "cycles" in event["name"]]
[row] = [row for row in event["changes"] if row["what"] == "self" and row.get("method", "").startswith("Shop.checksum")]
assert row["significant"] == (row["q"] <= 0.05) and row["loss"] == (row["significant"] and row["change"] > 0), row
assert row["impact"] > 20 and row["low"] <= row["change"] <= row["high"], row
assert measure == "work" or row["significant"] and row["low"] > 0, row
for side in ("before", "after"):
    values = row[side]["runs"]
    assert len(values) == 5 and abs(sum(values) / 5 - row[side]["mean"]) < 2e-6 * max(values), row
assert abs(row["after"]["mean"] - row["before"]["mean"] - row["change"]) < 3e-6 * max(row["after"]["mean"], 1)
assert document["losses"] == sum(row["loss"] for event in document["events"] for row in event["changes"])
assert document["tested"] == sum(len(event["changes"]) for event in document["events"])
END
}
run 3 "$JDPERF" diff --json --from 0 --after "${after[@]}" --before "${before[@]}" "${only[@]}"
check_json share || fail "the document by shares"
# By work: a day takes 20 times as many passes.
days=$(for run in "${before[@]}" "${after[@]}"; do sed -n 's/^\([0-9]*\) days.*/\1/p' "$run/log"; done | paste -sd ,)
status=0
"$JDPERF" diff --before "${before[@]}" --after "${after[@]}" "${only[@]}" --work "$days" --json >output || status=$?
((status == 0 || status == 3)) || fail "status $status by work"
check_json work || fail "the document by work"
# Faster is no loss of that method; a loss smaller than the threshold does not count.
run 0 "$JDPERF" diff --before "${after[@]}" --after "${before[@]}" "${only[@]}" --threshold 60
grep -qE -e '-[0-9.]+ .* self +Shop\.checksum\(int\)' output || fail "checksum did not become faster"
# In runs that are shorter than four seconds all counts. By the clock, for a busy machine makes longer ones of those above.
# shellcheck disable=SC2016 # the command's own
short=(sh -c 'for pause in 0 2.1; do sleep $pause; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; done')
run 0 "$JDPERF" compare -n 2 -F 499 -o short --threshold 100 -- "${short[@]}" -- "${short[@]}"
says_not 'are left out'
# While the JIT compiles most of the time less can be told.
"$JDPERF" diff --from 0 --before "${before[@]}" --after "${after[@]}" >output 2>&1 || (($? == 3)) || fail "JIT"
says '% of the samples are of the JIT compiler: '
# Of runs that are long enough the start is left out, unless told otherwise.
# shellcheck disable=SC2016 # the command's own
long=(sh -c 'for pause in 0 2.2 2.3; do sleep $pause; i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; done')
run 0 "$JDPERF" compare -n 2 -F 499 -o long --threshold 100 -- "${long[@]}" -- "${long[@]}"
says 'the first 2 s of each run are left out'
whole_of() { # OPTION…
    "$JDPERF" diff --before long/before.? --after long/after.? --json --all "$@" 2>whole.said || (($? == 3)) || fail "diff $*"
}
whole_of >left
grep -q 'are left out' whole.said || fail "the start counts: $(cat whole.said)"
whole_of --from 2s | cmp left - || fail "what is left out is not two seconds"
for all in "--from 0" "--work 1"; do
    # shellcheck disable=SC2086 # words
    whole_of $all >with
    if cmp -s left with || grep -q 'are left out' whole.said; then fail "the start is left out with $all"; fi
done
# Equal groups.
run 0 "$JDPERF" diff --before "${before[@]}" --after "${before[@]}" --all "${only[@]}"
says 'No change is larger than chance'
says 'within chance'
for wrong in "--before ${before[0]} --after ${after[*]}" "--before ${before[*]}" "--before ${before[*]} --after ${after[*]} --work 1,2" \
    "--before ${before[*]} --after ${after[*]} --threshold x" "--before ${before[*]} --after ${after[*]} --work 0" "--after"; do
    # shellcheck disable=SC2086 # words
    run 2 "$JDPERF" diff $wrong
done

# The flame graph: coloured where something changed, grey elsewhere.
if part "the flame graph of several runs" command -v chromedriver; then
    export HOME=$WORK
    run 0 timeout 120 python3 "$SOURCE/tests/shell/flame_runs.py" "$WORK/page.html" 'Shop.checksum' 5
fi

# Whoever puts a link in the place of the directory meanwhile has nothing written elsewhere.
mkdir elsewhere
# shellcheck disable=SC2016 # the commands' own
busy=(sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo 7 days') \
    swapping=(sh -c '[ -L held ] || { mv held moved; ln -s elsewhere held; }; exec "$@"' -)
run 0 "$JDPERF" compare -n 2 -o held --work-from '([0-9]+) days' --threshold 100 -- "${swapping[@]}" "${busy[@]}" -- "${busy[@]}"
[[ $(cat moved/*/profile | grep -c '^work=7') == 4 ]] || fail "the work is not kept"
[[ -z $(ls elsewhere) ]] || fail "written through a link: $(ls elsewhere)"

# The work that a run prints is kept with it; the example Action does as a CI service would have it. With what a short life wants.
shop=(java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$WORK/classes" Shop)
run 0 "$JDPERF" compare -n 2 -o worked --work-from '([0-9]+) days' --threshold 100 -- "${shop[@]}" 50 400 -- "${shop[@]}" 50 400
[[ $(cat worked/*/profile | grep -c '^work=[0-9]') == 4 ]] || fail "the work is not kept"
run 1 "$JDPERF" compare -n 2 -o silent --work-from 'no ([0-9]+)' -- "${shop[@]}" 9 400 -- true
says 'printed nothing that --work-from matches'
action=(python3 "$SOURCE/tests/shell/run_action.py" "$SOURCE/examples/compare/action.yml")
run 0 "${action[@]}" "before=${shop[*]} 50 400" "after=${shop[*]} 50 400" runs=2 threshold=100
says 'comparisons'
run 2 "${action[@]}" "before=${shop[*]} 50 400" "after=${shop[*]} 50 400" runs=1
# The words of Maven's and Gradle's are the same but for the jar, and jdperf takes them.
fakes
fake java <<<'exit 9'
mapfile -t maven < <(sed -n 's|.*<argument>\(.*\)</argument>|\1|p' "$SOURCE/examples/compare/pom.xml")
mapfile -t gradle < <(sed -n '/commandLine/,/jar.$/p' "$SOURCE/examples/compare/build.gradle" | grep -o "'[^']*'" | tr -d "'" | tail -n +2)
[[ "${maven[*]/target/build\/libs}" == "${gradle[*]}" ]] || fail "Maven: ${maven[*]}; Gradle: ${gradle[*]}"
run 1 "$JDPERF" "${maven[@]}"
says 'run 1 of before ended with status 9'
rm bin/java

[[ ${JDAGENT_LONG:-0} == 1 ]] || exit 0

# A fifth more of a method of 23 %: 5 % of the program.
run 0 python3 "$SOURCE/bench/differences.py" --runs 21 --frequency 1999 --days 1200 --passes 800 970
note "$(cat output)"
