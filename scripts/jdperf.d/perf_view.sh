# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is read by the verbs.
# What report, script, annotate --perf share: opening a profile and calling perf on it.

# The user's own perfconfig (percent-limit, order=caller) cannot change what the verbs rely on.
export PERF=${PERF:-perf} PERF_CONFIG=/dev/null

# view_profile DIR: sets PROFILE and DATA, the perf.data to look at.
view_profile() {
    command -v "$PERF" >/dev/null ||
        die "failed to find perf: apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora, RHEL, SUSE)"
    open_profile "$1"
    DATA=$PROFILE/perf.jit.data
    # perf asks addr2line for every address: ours is quick where there is nothing to find.
    JDPERF_ADDR2LINE=$(command -v addr2line) || return 0
    export JDPERF_ADDR2LINE PATH=$JDPERF_LIB/tools:$PATH
}

# view_words VERB "$@": sets DIR to the first word, unless that is an option, and OPTIONS to the rest, for
# perf. Which of perf's options take a value we do not know, so a profile is not looked for behind them.
view_words() {
    local verb=$1 word
    shift
    DIR=$JDPERF_DEFAULT_DIR
    if (($#)) && [[ $1 != -* ]]; then
        DIR=$1
        shift
    fi
    OPTIONS=("$@")
    for word; do
        [[ $word == -* ]] || ! is_profile "$word" ||
            wrong_usage "$verb: the profile comes first: jdperf $verb $word …"
    done
}

# view_perf VERB ARGUMENT…: inlined frames make stacks longer than perf's default limit of 127. Build-ids are looked
# up inside the directory, never in ~/.debug.
view_perf() {
    local verb=$1
    shift
    case $verb in
    report | script) set -- --max-stack 1000 "$@" ;;
    esac
    command "$PERF" --buildid-dir "$PROFILE/buildid" "$verb" -i "$DATA" "$@"
}

# view_show VERB ARGUMENT…: the same for the user. Of an option that perf does not know he sees the
# name, not perf's whole help.
view_show() {
    local status=0 said
    view_perf "$@" 2>"$SCRATCH/said" || status=$?
    said=$(view_complaint "$SCRATCH/said")
    [[ -z $said ]] || wrong_usage "$1: perf $1 says: $said ($PERF $1 -h lists its options)"
    cat "$SCRATCH/said" >&2
    # 7.2.13 does at samples in a library whose debug package is installed (docs/jdks.md).
    case $((status - 128)) in
    4 | 6 | 7 | 8 | 11) say "perf crashed; the profile is intact. Use jdperf report, flame, view or export, which do not need perf" ;;
    esac
    return "$status"
}

# What perf complains about in its words in $1, when it goes on with its usage.
view_complaint() {
    ! grep -q '^ *Usage: perf' "$1" || sed -n '/^ *Error: *$/d; /[^ ]/ { s/^ *Error: *//; p; q }' "$1"
}
