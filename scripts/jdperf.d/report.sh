# shellcheck shell=bash
# jdperf report: where the time went.

# shellcheck source=scripts/jdperf.d/view.sh
. "$JDPERF_LIB/view.sh"

report_usage() {
    cat <<END
usage: jdperf report [DIR] [--lines] [--callers] [PERF-REPORT-OPTION…]

Shows the profile DIR (default: $JDPERF_DEFAULT_DIR) with perf report: on a
terminal its browser, else text. It is self time by method, unless options ask
for something else.

      --lines         by method and source line
      --callers       below each method those that called it, up to the root

Any option of perf report can follow, as --symbol-filter METHOD, --comm NAME,
-g caller (stacks from the root down), --children (time with callees), -s
sym,srcline, --stdio.
END
}

verb_report() {
    local sort=overhead,comm,dso,sym options=() defaults=(--no-children)
    view_words report "$@"
    set -- "${OPTIONS[@]}"
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
