# shellcheck shell=bash
# jdperf flame: a flame graph, one HTML file that needs no network.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

flame_usage() {
    cat <<END
usage: jdperf flame [DIR] [-o FILE] [--title TEXT] [OPTION…]

Writes a flame graph of the profile DIR (default: $JDPERF_DEFAULT_DIR) to
DIR/flamegraph.html or FILE: one file for any browser, without network. Colours
distinguish compiled, inlined, interpreted, native and kernel frames. Drag over
the heat map to select a time range. The page has buttons for search, inverted
stacks, and roots by thread or process.

$SAMPLES_USAGE

To compare two profiles, use jdperf diff.
END
}

verb_flame() {
    local out='' title=''
    take_filters "$@"
    read_options flame 'out -o --output' 'title --title' : "${REST[@]}"
    one_word flame profile
    open_samples "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    out=${out:-$PROFILE/flamegraph.html}
    samples_export html "$out" ${title:+"--title=$title"}
    say "flame graph: $out"
}
