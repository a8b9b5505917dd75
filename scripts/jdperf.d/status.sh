# shellcheck shell=bash
# jdperf status: how a session stands.

# shellcheck source=scripts/jdperf.d/target.sh
. "$JDPERF_LIB/target.sh"

status_usage() {
    cat <<END
usage: jdperf status PID

Asks the agent in a JVM how it stands: state (running, failed, stopped, absent),
where it reports to, seconds, records, bytes, what was dropped, and the file.
Exit status: 0 when a session runs, else 1.
END
}

verb_status() {
    case ${1:-} in
    -h | --help) status_usage; return 0 ;;
    -*) wrong_usage "status: unknown option: $1" ;;
    '') wrong_usage "status: of which JVM? (jdperf status PID)" ;;
    esac
    (($# == 1)) || wrong_usage "status: one JVM at a time: $2"
    target_find "$1"
    target_status || die "the agent in process $TARGET does not answer"
    printf '%s\n' "$STATUS_LINES"
    [[ $STATUS_LINES == *state=running* ]]
}
