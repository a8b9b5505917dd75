# shellcheck shell=bash
# jdperf diff: what changed from one profile to another, as a flame graph; from several to several, beyond chance.

# shellcheck source=scripts/jdperf.d/runs.sh
. "$JDPERF_LIB/runs.sh"

diff_usage() {
    cat <<END
usage: jdperf diff BEFORE AFTER [-o FILE] [--title TEXT] [OPTION…]
       jdperf diff --before DIR… --after DIR… [-o FILE] [OPTION…]

Writes a flame graph of the difference between the profiles BEFORE and AFTER, one
HTML file that needs no network: AFTER/flamediff.html or FILE. Red frames grew,
blue frames shrank, each measured as a share of all samples. Names of lambdas and
hidden classes are compared without their numbers, which change from run to run.

Two profiles always differ by chance. Give several of each to see what changed by
more than that:

      --before DIR…, --after DIR…  at least 2 profiles on each side; 5 or more are
                      better. Lists methods that changed, with 95 % intervals. In
                      the flame graph FILE only frames that changed have a colour
      --work N[,N…]   how much work each run did, in their order; 1 if all did the
                      same. Compares time per unit of work instead of shares
$RUNS_USAGE
$SAMPLES_USAGE

Exit status of a comparison of several: 3 if something became slower.
END
}

verb_diff() {
    local out='' title='' before after
    if [[ " $* " == *' --before'[\ =]* || " $* " == *' --after'[\ =]* ]]; then
        diff_several "$@"
        return
    fi
    take_filters "$@"
    read_options diff 'out -o --output' 'title --title' : "${REST[@]}"
    ((${#WORDS[@]} == 2)) || wrong_usage "diff: which two profiles? (jdperf diff BEFORE AFTER)"
    before=${WORDS[0]} after=${WORDS[1]}
    open_samples "$before"
    open_samples "$after"
    out=${out:-$PROFILE/flamediff.html}
    samples_export html "$out" -i "$after" --before "$before" "--title=${title:-$before and $after}"
    say "difference: $out"
}

# A word behind --before or --after is a profile of that side.
diff_several() {
    local side='' out='' arguments=()
    take_filters "$@"
    set -- "${REST[@]}"
    BEFORE=() AFTER=()
    while (($#)); do
        case $1 in
        --*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        esac
        case $1 in
        -h | --help) diff_usage; exit 0 ;;
        --before) side=BEFORE ;;
        --after) side=AFTER ;;
        --all | --json) arguments+=("$1") ;;
        --threshold | --work | --title) need_value "$@"; arguments+=("$1=$2"); shift ;;
        -o | --output) need_value "$@"; out=$2; arguments+=("--output=$2"); shift ;;
        -*) wrong_usage "diff: unknown option: $1" ;;
        *)
            open_samples "$1"
            case $side in
            BEFORE) BEFORE+=("$PROFILE") ;;
            AFTER) AFTER+=("$PROFILE") ;;
            *) wrong_usage "diff: is $1 from before or after the change? (--before DIR… --after DIR…)" ;;
            esac
            ;;
        esac
        shift
    done
    ((${#BEFORE[@]} > 1 && ${#AFTER[@]} > 1)) ||
        wrong_usage "diff: at least 2 profiles are needed on each side; one says nothing of chance"
    diff_runs "${arguments[@]}"
}
