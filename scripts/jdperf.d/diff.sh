# shellcheck shell=bash
# jdperf diff: what changed from one profile to another, as a flame graph.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

diff_usage() {
    cat <<END
usage: jdperf diff BEFORE AFTER [-o FILE] [--title TEXT] [OPTION…]

Writes a flame graph of the difference between the profiles BEFORE and AFTER, one
HTML file that needs no network: AFTER/flamediff.html or FILE. Red frames grew,
blue frames shrank, each measured as a share of all samples. Names of lambdas and
hidden classes are compared without their numbers, which change from run to run.

$SAMPLES_USAGE
END
}

verb_diff() {
    local out='' title='' before after
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
