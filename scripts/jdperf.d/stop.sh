# shellcheck shell=bash
# jdperf stop: the end of a session.

# shellcheck source=scripts/jdperf.d/target.sh
. "$JDPERF_LIB/target.sh"

stop_usage() {
    cat <<END
usage: jdperf stop PID

Ends the session of the agent in a JVM: its dump is closed, and the JVM runs as
fast as it did before. The agent stays loaded, without effect.
END
}

verb_stop() {
    case ${1:-} in
    -h | --help) stop_usage; return 0 ;;
    -*) wrong_usage "stop: unknown option: $1" ;;
    '') wrong_usage "stop: in which JVM? (jdperf stop PID)" ;;
    esac
    (($# == 1)) || wrong_usage "stop: one JVM at a time: $2"
    local dump
    target_find "$1"
    [[ $(target_loaded_agent) ]] || die "there is no agent in process $TARGET"
    target_choose_agent
    dump=$(target_dump)
    target_command stop || exit 1
    [[ -z $dump ]] || printf 'state=stopped file=%s\n' "$TARGET_ROOT$dump"
    [[ $dump ]] || printf 'state=stopped\n'
}
