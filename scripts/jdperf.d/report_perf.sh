# shellcheck shell=bash
# jdperf report --perf: what perf report makes of a profile.

# shellcheck source=scripts/jdperf.d/perf_view.sh
. "$JDPERF_LIB/perf_view.sh"

verb_report() {
    local sort=overhead,comm,dso,sym options=() defaults=(--no-children) words=() word
    for word; do
        [[ $word == --perf ]] || words+=("$word")
    done
    view_words 'report --perf' "${words[@]}"
    set -- "${OPTIONS[@]}"
    while (($#)); do
        case $1 in
        -h | --help) "$JDPERF_TOOL" live report --help; return 0 ;;
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
