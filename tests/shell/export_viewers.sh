#!/usr/bin/env bash
# speedscope and Firefox Profiler read exports of a real recording. Both come from npm: JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "fetches two viewers from npm: JDAGENT_LONG=1"
need_real_profile
for command in python3 node npm chromedriver; do
    command -v "$command" >/dev/null || skip "$command is not installed"
done
npm install --prefix "$WORK/npm" --no-audit --no-fund --ignore-scripts --fetch-retries 1 --fetch-timeout 20000 \
    speedscope@1.25.0 @firefox-devtools/profiler-cli@0.10.0 >npm.log 2>&1 || skip "npm cannot install the viewers: $(grep -m 1 error npm.log)"
modules=$WORK/npm/node_modules
compile_sample

run 0 "$JDPERF" record -o p --export speedscope=p.json -- java -cp classes Market 4
status=0
HOME=$WORK timeout 120 python3 "$SOURCE/tests/exports/speedscope_page.py" "$modules/speedscope/dist/release" p.json >said 2>&1 || status=$?
cat said
((status == 0 || status == 77)) || fail "speedscope: see above"

set -m # a process group of its own, which Ctrl-C ends as it does one in a terminal
"$JDPERF" view p --source-path "$SOURCE/scripts/sample" --idle 120 >told 2>view.log &
server=$!
set +m
wait_until 60 "address" grep -q symbolServer told
timeout 180 python3 "$SOURCE/tests/exports/firefox_cli.py" "$modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js" told \
    'Market.drift(double, int)' "$SOURCE/scripts/sample/Market.java" >said 2>&1 || status=$?
kill -INT -- "-$server"
wait "$server" || fail "jdperf view: $(cat view.log)"
cat said
((status == 0 || status == 77)) || fail "Firefox Profiler: see above"
exit "$status"
