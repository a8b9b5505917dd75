#!/usr/bin/env bash
# A flame graph of a million samples opens in less than 2 s. JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "makes a page of a million samples: JDAGENT_LONG=1"
need_real_profile
command -v chromedriver >/dev/null || skip "chromium-driver is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
compile_sample

run 0 "$JDPERF" record -o p -- java -cp classes Market 4
run 0 "$JDPERF" flame p -o page.html
run 0 python3 "$SOURCE/tests/shell/flame_million.py" make page.html million.html 1000000
export HOME=$WORK
status=0
timeout 120 python3 "$SOURCE/tests/shell/flame_million.py" open "$WORK/million.html" 1000000 || status=$?
exit "$status"
