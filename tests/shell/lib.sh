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
# shellcheck disable=SC2034 # for who is root
AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --) # put before a command
# shellcheck disable=SC2034
IDLE_JVM=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dbusy=0 -Dpause=1000) # of Calm, where it has to be there, not to work
unset JAVA_TOOL_OPTIONS PERF_RECORD_SECONDS PERF_RECORD_FREQ PERF_MAP_OPTIONS JITDUMPDIR

# shellcheck source=tests/lib.sh
source "$SOURCE/tests/lib.sh"

fail() {
    printf 'FAILED: %s
' "$*"
    [[ ! -f $WORK/output ]] || cut -c 1-500 "$WORK/output" | sed -n '1,40s/^/    | /p'
    exit 1
}

# run STATUS COMMAND…: the command has to end with STATUS; what it says is kept in `output`.
run() {
    local expected=$1 status=0
    shift
    "$@" >"$WORK/output" 2>&1 </dev/null || status=$?
    # A machine so busy that most samples are lost makes a bad profile, of which tests take what there is.
    if ((status == 3 && expected == 0)) &&
        grep -qE -e 'the profile is bad: [0-9.]+ of [0-9.]+ s of processor time [^;]*$' \
            -e 'the profile is bad: [0-9]+ of [0-9]+ samples were lost; the missing processor time is unknown$' "$WORK/output"; then
        note "samples were lost:$(grep 'the profile is bad: ' "$WORK/output")"
        status=0
    fi
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
        [[ ! -L $directory ]] || continue # to one of the others
        ln -s -t "$WORK/few" "$directory"/* 2>/dev/null || : # some are in two of them
    done
    (cd "$WORK/few" && rm -f "$@")
}

# little_endian BYTES NUMBER: for printf %b.
little_endian() {
    local i number=$2
    for ((i = 0; i < $1; i++)); do
        printf '\\x%02x' $((number & 255))
        number=$((number >> 8))
    done
}

# A recording without a sample, as a file and as perf writes it into a pipe: one event, cpu-clock, on
# CLOCK_MONOTONIC.
make_empty_recording() {
    local zeros attr
    zeros=$(printf '%64s' '' | sed 's/ /\\x00/g')
    # type, size, config, frequency, sample_type (IP, TID, TIME, PERIOD), read_format, flags (sample_id_all,
    # use_clockid), then the clock's number 92 bytes from the start.
    attr=$(little_endian 4 1)$(little_endian 4 112)$(little_endian 8 0)$(little_endian 8 199)
    attr+=$(little_endian 8 $((0x107)))$(little_endian 8 0)$(little_endian 8 $((1 << 18 | 1 << 25)))
    attr+=${zeros:0:176}$(little_endian 4 1)${zeros:0:64}
    printf '%b' "PERFILE2$(little_endian 8 104)$(little_endian 8 128)$(little_endian 8 104)$(little_endian 8 128)" \
        "$(little_endian 8 232)$(little_endian 8 0)$zeros${zeros:64}" >"$WORK/empty.data"
    truncate -s 104 "$WORK/empty.data"
    printf '%b' "$attr${zeros:0:64}" >>"$WORK/empty.data"
    printf '%b' "PERFILE2$(little_endian 8 16)$(little_endian 4 64)$(little_endian 2 0)$(little_endian 2 120)$attr" >"$WORK/empty.pipe"
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
    -o) output=$2; shift ;;
    -p) pid=$2; shift ;;
    --control) control=${2#fd:}; shift ;;
    esac
    shift
done
[[ ! ${FAKE_FAILURE:-} ]] || { echo "$FAKE_FAILURE" >&2; exit 255; }
case $output in
'') ;;
-) cat "$WORK/empty.pipe" ;;
*) cat "$WORK/empty.data" >"$output" ;;
esac
[[ ! ${FAKE_COMPLAINT:-} || ! $control ]] || echo "$FAKE_COMPLAINT" >&2
[[ $control ]] || exit 0
trap 'exit 0' INT TERM
while [[ ! $pid ]] || kill -0 "$pid" 2>/dev/null; do
    ! read -r -t 0.05 -u "${control%,*}" _ || echo ack >&"${control#*,}"
done
END
    make_empty_recording
    export WORK
}

# What killed JVMs have left in /tmp: another user's JVM that gets such a pid cannot put it away, and answers nobody.
remove_dead_sockets() {
    local socket
    for socket in /tmp/.java_pid[0-9]*; do
        [[ ! -O $socket || -e /proc/${socket##*pid} ]] || rm -f "$socket"
    done
}

# Ends the test as skipped where perf cannot sample or there is no JDK.
need_real_profile() {
    need_perf
    remove_dead_sockets
    [[ -x ${JAVA_HOME:-}/bin/java ]] || command -v java >/dev/null || skip "there is no java"
    command -v javac >/dev/null || skip "there is no javac"
}

# oldest_javac: what it makes runs in every JVM here, which those of the javac on PATH may be too old for.
oldest_javac() {
    local javac
    while read -r _ javac; do
        [[ -x $javac ]] && echo "$javac" && return
    done < <(find /usr/lib/jvm -maxdepth 1 -type d | sed -nE 's|^.*-(1\.)?([0-9]+)[^/]*$|\2 &/bin/javac|p' | sort -n)
    readlink -f "$(command -v javac)"
}

# The sample, Market, and Calm, into classes/. Many tests want them: what javac made is kept in the build until it or
# the sources change.
compile_sample() {
    local javac kept=$JDAGENT_BUILD/tests/sample sources=("$SOURCE/scripts/sample/Market.java" "$SOURCE/tests/shell/Calm.java")
    javac=$(oldest_javac)
    (
        flock 9
        if [[ $(cat "$kept/.made" 2>/dev/null) != "$javac" || -n $(find "${sources[@]}" -newer "$kept/.made") ]]; then
            rm -rf "$kept"
            # With what a short life wants.
            "$javac" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -d "$kept" "${sources[@]}"
            printf '%s\n' "$javac" >"$kept/.made"
        fi
    ) 9>"$kept.lock" || exit
    mkdir -p "$WORK/classes"
    cp "$kept"/*.class "$WORK/classes/"
}
