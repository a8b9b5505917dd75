# shellcheck shell=bash
# What report, script, annotate and flame share: opening a profile and calling perf on it.

# shellcheck source=scripts/jdperf.d/inject.sh
. "$JDPERF_LIB/inject.sh"

# view_profile DIR: sets PROFILE and DATA, the perf.data to look at; injects first if need be.
view_profile() {
    need_perf
    open_profile "$1"
    DATA=$PROFILE/perf.jit.data
    [[ -r $DATA ]] || inject_profile || (($? == 3)) || exit 1
}

# view_perf VERB ARGUMENT…: inlined frames make stacks longer than perf's default limit of 127.
view_perf() {
    local verb=$1
    shift
    case $verb in
    report | script) set -- --max-stack 1000 "$@" ;;
    esac
    perf_in_profile "$verb" -i "$DATA" "$@"
}
