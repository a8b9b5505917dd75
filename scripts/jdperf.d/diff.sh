# shellcheck shell=bash
# jdperf diff: what changed from one profile to another, as a flame graph.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"
# shellcheck source=scripts/jdperf.d/flame_page.sh
. "$JDPERF_LIB/flame_page.sh"

diff_usage() {
    cat <<END
usage: jdperf diff BEFORE AFTER [-o FILE] [--title TEXT] [OPTION…]

Draws what changed from the profile BEFORE to the profile AFTER as a flame graph,
one HTML file that needs no network: AFTER/flamediff.html or FILE. What grew is
red, what shrank blue. Both count by their share of all samples; names of lambdas
and hidden classes, which differ from run to run, are compared without their
numbers.

$SAMPLES_USAGE
END
}

verb_diff() {
    local out='' title='' before after
    take_filters "$@"
    read_options diff 'out -o --output' 'title --title' : "${REST[@]}"
    ((${#WORDS[@]} == 2)) || wrong_usage "diff: which two profiles? (jdperf diff BEFORE AFTER)"
    before=${WORDS[0]} after=${WORDS[1]}
    make_scratch
    open_samples "$before"
    samples_export flame "$SCRATCH/before.data"
    open_samples "$after"
    out=${out:-$PROFILE/flamediff.html}
    need_writable "$out"
    samples_export flame "$SCRATCH/after.data"
    flame_page "${title:-$before and $after}" "$(flame_about)" '' "$SCRATCH/before.data" "$before" "$SCRATCH/after.data" "$after" >"$SCRATCH/diff.html"
    cat "$SCRATCH/diff.html" >"$out" || die "failed to write $out"
    say "difference: $out"
}
