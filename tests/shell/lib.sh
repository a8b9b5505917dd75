# shellcheck shell=bash
# For the tests of the scripts: a directory that goes away, checks that say what was wrong, a perf
# and a java that do as told.

set -euo pipefail

SOURCE=${JDAGENT_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
export JDAGENT_BUILD=${JDAGENT_BUILD:-$SOURCE/build}
export JDPERF=$SOURCE/scripts/jdperf
WORK=$(mktemp -d "${TMPDIR:-/tmp}/jdperf-test.XXXXXXXX")
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
unset JAVA_TOOL_OPTIONS PERF_RECORD_SECONDS PERF_RECORD_FREQ PERF_MAP_OPTIONS JITDUMPDIR

# shellcheck source=tests/lib.sh
source "$SOURCE/tests/lib.sh"

fail() {
    printf 'FAILED: %s
' "$*"
    [[ ! -f $WORK/output ]] || sed -n '1,40s/^/    | /p' "$WORK/output"
    exit 1
}

# run STATUS COMMAND…: the command has to end with STATUS; what it says is kept in `output`.
run() {
    local expected=$1 status=0
    shift
    "$@" >"$WORK/output" 2>&1 </dev/null || status=$?
    ((status == expected)) || fail "status $status, not $expected, of: $*"
}

says() {
    grep -qF -- "$1" "$WORK/output" || fail "the output lacks: $1"
}

says_not() {
    ! grep -qF -- "$1" "$WORK/output" || fail "the output has: $1"
}

# Puts a directory of fakes first on PATH.
fakes() {
    mkdir -p "$WORK/bin"
    PATH=$WORK/bin:$PATH
}

# fake NAME <<script
fake() {
    { echo '#!/usr/bin/env bash'; cat; } >"$WORK/bin/$1"
    chmod +x "$WORK/bin/$1"
}

# A directory with links to all of the system's commands but those in "$@": to be PATH.
commands_but() {
    local directory
    mkdir -p "$WORK/few"
    for directory in /usr/bin /bin /usr/sbin /sbin; do
        ln -s -t "$WORK/few" "$directory"/* 2>/dev/null || : # some are in two of them
    done
    (cd "$WORK/few" && rm -f "$@")
}

# A perf that records nothing, but as the real one does: answers pings, ends at SIGINT, and notes
# its arguments in perf.arguments.
fake_perf() {
    fake perf <<'END'
printf '%s\n' "$*" >>"$WORK/perf.arguments"
output='' control='' pid=''
while (($#)); do
    case $1 in
    --version) echo 'perf version 6.1.192'; exit ;;
    stat) [[ ${FAKE_COUNTERS:-} ]] && echo "12345,,cycles,1,100,," >&2 || echo '<not supported>,,cycles,0,100.00,,' >&2; exit 0 ;;
    -o) output=$2; shift ;;
    -p) pid=$2; shift ;;
    --control) control=${2#fifo:}; shift ;;
    esac
    shift
done
[[ ! ${FAKE_FAILURE:-} ]] || { echo "$FAKE_FAILURE" >&2; exit 255; }
[[ ! $output ]] || echo data >"$output"
[[ ! ${FAKE_COMPLAINT:-} || ! $control ]] || echo "$FAKE_COMPLAINT"
[[ $control ]] || exit 0
exec 8<>"${control%,*}" 9<>"${control#*,}"
trap 'exit 0' INT TERM
read -r -u 8 _ && echo ack >&9
while [[ ! $pid ]] || kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
END
    export WORK
}

# Ends the test as skipped where perf cannot sample or there is no JDK.
need_real_profile() {
    command -v perf >/dev/null || skip "perf is not installed"
    perf record -q --no-bpf-event -e cpu-clock -k mono -o "$WORK/probe" -- true >/dev/null 2>&1 || skip "perf cannot sample here"
    rm -f "$WORK/probe"
    [[ -x ${JAVA_HOME:-}/bin/java ]] || command -v java >/dev/null || skip "there is no java"
    command -v javac >/dev/null || skip "there is no javac"
}

compile_sample() {
    javac -d "$WORK/classes" "$SOURCE/scripts/sample/Market.java"
}
