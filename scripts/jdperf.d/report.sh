# shellcheck shell=bash
# jdperf report: where the time went.

# shellcheck source=scripts/jdperf.d/perf_view.sh
. "$JDPERF_LIB/perf_view.sh"
# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

report_usage() {
    cat <<END
usage: jdperf report [DIR] [--lines] [--callers] [PERF-REPORT-OPTION…]
       jdperf report [DIR] --json [OPTION…]

Shows the profile DIR (default: $JDPERF_DEFAULT_DIR) with perf report: on a
terminal its browser, else text. It is self time by method, unless options ask
for something else.

      --lines         by method and source line
      --callers       below each method those that called it, up to the root

      --json          for scripts: methods with their own and total weights, by
                      source line, and their callers
$SAMPLES_USAGE

Those options are for --json. Any option of perf report can follow, as --symbol-filter METHOD, --comm NAME,
-g caller (stacks from the root down), --children (time with callees), -s
sym,srcline, --stdio.
END
}

verb_report() {
    local sort=overhead,comm,dso,sym options=() defaults=(--no-children)
    view_words report "$@"
    set -- "${OPTIONS[@]}"
    if [[ " $* " == *" --json "* ]]; then
        report_json "$@"
        return
    fi
    while (($#)); do
        case $1 in
        -h | --help) report_usage; return 0 ;;
        --lines) sort=overhead,srcline,sym defaults+=(-w "9,40") ;;
        --callers) sort=overhead,comm,sym options+=(-g callee) ;; # perf filters symbols beside comm only
        *) options+=("$1") ;;
        esac
        shift
    done
    view_profile "$DIR"
    # The last -s counts, but "-g none" is not taken back by a later -g.
    [[ " ${options[*]} " == *\ @(-F|--fields)* ]] || defaults+=(-s "$sort")
    [[ " ${options[*]} " == *\ @(-g|--call-graph|-G|--inverted|--children)* ]] || defaults+=(-g none)
    if [[ -t 1 ]]; then
        view_show report "${defaults[@]}" "${options[@]}"
    else
        # perf fills its columns with blanks.
        view_show report "${defaults[@]}" "${options[@]}" --stdio | sed 's/ *$//'
    fi
}

report_json() {
    take_filters "$@"
    local word
    for word in "${REST[@]}"; do
        [[ $word == --json ]] || wrong_usage "report --json: unknown option: $word (jdperf report --help)"
    done
    open_samples "$DIR"
    samples_export report -
}
