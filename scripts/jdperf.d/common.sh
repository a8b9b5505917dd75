# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is read by the verbs.
# What every verb needs: messages, options, the directory of a profile.

JDPERF_VERSION=1.0.0
JDPERF_VERBS='record inject report script annotate flame diff compare timeline export view bundle attach stop status map top watch jvms doctor clean'
# Those that are jdtool's; of some perf shows a part.
JDPERF_LIVE_VERBS='record inject report annotate flame diff timeline export view bundle attach stop status map top watch jvms doctor clean'
JDPERF_PERF_VERBS='report annotate'
JDPERF_PROFILE_VERBS='inject report script annotate flame diff compare timeline export view bundle'
JDPERF_DEFAULT_DIR=jdperf.profile

# Names out of profiles may be in it: no control character of theirs reaches the terminal.
say() {
    printf 'jdperf: %s\n' "${*//[[:cntrl:]]/?}" >&2
}

die() {
    say "$*"
    exit 1
}

wrong_usage() {
    say "$*"
    exit 2
}

# need_value "$@" at an option that takes one.
need_value() {
    (($# > 1)) || wrong_usage "$1 needs a value"
    [[ $2 != -?* ]] || wrong_usage "$1 needs a value, not $2"
}

need_tool() {
    [[ -x $JDPERF_TOOL ]] || die "failed to find jdtool at $JDPERF_TOOL: $JDPERF_MISSING"
}

# The directory of a profile (jdtool/look/opened_profile.h).

is_profile() {
    [[ -f $1/profile && $(head -n 1 "$1/profile") == jdperf-profile=1 ]]
}

profile_get() {
    sed -n "s/^$2=//p" "$1/profile" | tail -n 1
}

profile_set() {
    printf '%s=%s\n' "$2" "${3//$'\n'/ }" >>"$1/profile"
}

# Sets PROFILE to an existing profile, which jdtool has looked over and named: to how it is reached, whatever
# stands at its path by now, and whatever characters that has. For this jdtool starts jdperf once more, which then
# may change nothing but what is in SCRATCH, a directory that goes away with it.
open_profile() {
    need_tool
    # shellcheck disable=SC2154 # jdperf itself
    [[ ${JDPERF_HELD:-} ]] || exec "$JDPERF_TOOL" live profile "$1" -- "$self" "$verb" "${ARGUMENTS[@]}"
    PROFILE=/proc/self/fd/$JDPERF_HELD SCRATCH=$JDPERF_SCRATCH
}
