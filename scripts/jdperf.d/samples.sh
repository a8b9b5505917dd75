# shellcheck shell=bash
# shellcheck disable=SC2034 # What is set here is read by the verbs.
# What export, flame, diff, view, annotate and report --json share: a profile's resolved samples, out of
# which jdtool makes what they show.

SAMPLES_USAGE='      --from TIME, --to TIME  a time range from the first sample: seconds, 300ms, 5m
      --thread NAME|TID, --comm NAME, --pid PID  threads, processes by name (with
                      wildcards * and ?), a process
      --label KEY[=VALUE]  samples with this label (record --threads)
      --by thread|virtual|label:KEY  group samples by this
      --include REGEX, --exclude REGEX  stacks with, or without, a matching frame
      --event EVENT   one event of several'

# take_filters "$@": what of the arguments chooses samples goes to FILTERS, for jdtool, the rest to REST.
take_filters() {
    FILTERS=() REST=()
    while (($#)); do
        case $1 in
        --) REST+=("$@"); return ;;
        --from | --to | --thread | --label | --by | --comm | --pid | --include | --exclude | --event)
            need_value "$@"
            FILTERS+=("$1=$2")
            shift
            ;;
        --from=* | --to=* | --thread=* | --label=* | --by=* | --comm=* | --pid=* | --include=* | --exclude=* | --event=*) FILTERS+=("$1") ;;
        *) REST+=("$1") ;;
        esac
        shift
    done
}

# open_samples DIR: sets PROFILE to a profile that jdtool can read samples from.
open_samples() {
    open_profile "$1"
    [[ -x $JDPERF_TOOL ]] || die "failed to find jdtool at $JDPERF_TOOL: $JDPERF_MISSING"
    [[ -r $PROFILE/samples.saved || -r $PROFILE/perf.data ]] ||
        die "the profile $1 has neither samples.saved nor perf.data: record again"
}

# samples_to VERB ARGUMENT…: jdtool VERB on the profile's samples. FILTERS and what else is known.
samples_to() {
    local verb=$1 sources=$PROFILE/src
    shift
    [[ -d $sources ]] || sources=''
    "$JDPERF_TOOL" "$verb" -i "$PROFILE" --buildid-dir "$PROFILE/buildid" \
        --source-path "${SOURCE_PATH:-}${SOURCE_PATH:+${sources:+:}}$sources" "${FILTERS[@]}" "$@"
}

# samples_export FORMAT FILE ARGUMENT…: FILE in that format, or the end of jdperf.
samples_export() {
    local format=$1 out=$2 status=0
    shift 2
    samples_to export --format "$format" -o "$out" "$@" || status=$?
    ((status == 0)) || exit "$status"
}
