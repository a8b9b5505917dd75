#!/usr/bin/env bash
# jdperf record --export writes several formats at once, equal to those of jdperf export. And go tool pprof reads ours.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v python3 >/dev/null || skip "python3 is not installed"
export GOTOOLCHAIN=local
command -v go >/dev/null || skip "go is not installed"
compile_sample

run 0 "$JDPERF" record -o p --export pprof --export collapsed=written -- java -cp classes Market 2
run 0 "$JDPERF" export p collapsed -o again
cmp <(sort written) <(sort again) || fail "the stacks of the same run are not those of the profile"

perf --buildid-dir p/buildid report -i p/perf.jit.data --no-children --stdio -g none -F sample,sym >top 2>said
run 0 python3 "$SOURCE/tests/exports/go_pprof.py" p/profile.pb.gz written p/scorecard.json top
cat output
# It can fail: a stack less.
sed '1d' written >less
run 1 python3 "$SOURCE/tests/exports/go_pprof.py" p/profile.pb.gz less p/scorecard.json top

# Without copied stacks the naming comes afterwards, and exports all the same.
run 0 "$JDPERF" record -o q --stacks fp --export otlp --export speedscope=q.json -- java -cp classes Market 1
[[ -s q/profile.otlp.pb && -s q.json ]] || fail "no exports of a recording that was named afterwards"

run 2 "$JDPERF" record -o r --export frames -- true
says 'takes FORMAT[=FILE]'
run 1 "$JDPERF" record -o r --export "pprof=$WORK/no/such/file" -- true
says 'No such file or directory'
run 2 "$JDPERF" record -o r --no-inject --export pprof -- true
[[ ! -e r ]] || fail "a profile in spite of wrong options"
