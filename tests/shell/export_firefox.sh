#!/usr/bin/env bash
# Firefox Profiler, built from its repository, shows the call tree, flame graph, source and machine code.
# JDAGENT_LONG=1, and JDAGENT_FRONT_END=DIRECTORY is the `dist` of a copy that was built before; without it one is
# fetched from GitHub and built.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "builds a front end: JDAGENT_LONG=1"
need_real_profile
for command in python3 chromedriver; do
    command -v "$command" >/dev/null || skip "$command is not installed"
done

# A revision that was tried; what its build asks of node and yarn is in its package.json.
build_front_end() {
    local revision=df31314e1
    for command in git npm; do
        command -v "$command" >/dev/null || skip "$command is not installed"
    done
    {
        git clone -q --filter=blob:none https://github.com/firefox-devtools/profiler "$WORK/profiler"
        git -C "$WORK/profiler" checkout -q "$revision"
    } >git.log 2>&1 || skip "Firefox Profiler's repository cannot be had: $(grep -m 1 fatal git.log)"
    npm install --prefix "$WORK/tools" --no-audit --no-fund node@24 yarn@1 >npm.log 2>&1 ||
        skip "npm cannot install node 24 and yarn: $(grep -m 1 error npm.log)"
    (cd "$WORK/profiler" && export PATH=$WORK/tools/node_modules/.bin:$PATH CI=1 HUSKY=0 &&
        yarn install --frozen-lockfile --no-progress && yarn build-prod) >build.log 2>&1 ||
        skip "Firefox Profiler's front end cannot be built: $(grep -m 1 -i error build.log)"
    front_end=$WORK/profiler/dist
}
front_end=${JDAGENT_FRONT_END:-}
[[ $front_end ]] || build_front_end
[[ -s $front_end/index.html ]] || fail "no index.html in $front_end"

compile_sample
run 0 "$JDPERF" record -o p -- java -cp classes Market 4
status=0
HOME=$WORK timeout 240 python3 "$SOURCE/tests/exports/firefox_page.py" "$front_end" 'Market.drift(double, int)' \
    "$SOURCE/scripts/sample/Market.java" "${JDAGENT_PICTURES:-$WORK}" \
    "$JDPERF" view p --source-path "$SOURCE/scripts/sample" || status=$?
exit "$status"
