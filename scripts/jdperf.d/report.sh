# shellcheck shell=bash
# jdperf report: where the time went.

# shellcheck source=scripts/jdperf.d/view.sh
. "$JDPERF_LIB/view.sh"

report_usage() {
    cat <<END
usage: jdperf report [DIR] [--lines] [PERF-REPORT-OPTION…]

Shows the profile DIR (default: $JDPERF_DEFAULT_DIR) with perf report: on a
terminal its browser, else text. Without options of yours: self time by method,
without stacks.

      --lines         by method and source line

Any option of perf report can follow, as -g caller, --children, -s sym,srcline,
--stdio, --comm NAME.
END
}

verb_report() {
    local dir=$JDPERF_DEFAULT_DIR lines='' options=()
    if (($#)) && [[ $1 != -* ]]; then
        dir=$1
        shift
    fi
    while (($#)); do
        case $1 in
        -h | --help) report_usage; return 0 ;;
        --lines) lines=yes ;;
        *) options+=("$1") ;;
        esac
        shift
    done
    view_profile "$dir"
    [[ -t 1 ]] || options+=(--stdio)
    if [[ $lines ]]; then
        options=(--no-children -g none -s "overhead,srcline,sym" -w "9,40" "${options[@]}")
    elif ((${#options[@]} == 0)) || [[ ${options[*]} == --stdio ]]; then
        options=(--no-children -g none -s "overhead,comm,dso,sym" "${options[@]}")
    fi
    view_perf report "${options[@]}"
}
