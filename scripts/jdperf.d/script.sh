# shellcheck shell=bash
# jdperf script: every sample with its stack.

# shellcheck source=scripts/jdperf.d/perf_view.sh
. "$JDPERF_LIB/perf_view.sh"

script_usage() {
    cat <<END
usage: jdperf script [DIR] [PERF-SCRIPT-OPTION…]

Prints every sample of the profile DIR (default: $JDPERF_DEFAULT_DIR) with its
stack, as perf script does, for speedscope, FlameGraph and your own tools. perf
may not write files meanwhile, unless you add --trust.
END
}

verb_script() {
    view_words script "$@"
    case ${OPTIONS[0]:-} in
    -h | --help) script_usage; return 0 ;;
    esac
    view_profile "$DIR"
    view_show script "${OPTIONS[@]}"
}
