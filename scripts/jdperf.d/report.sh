# shellcheck shell=bash
# jdperf report: where the time went.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

report_usage() {
    cat <<END
usage: jdperf report [DIR] [OPTION…]
       jdperf report --perf [DIR] [--lines] [--callers] [PERF-REPORT-OPTION…]

Lists the hottest methods of the profile DIR (default: $JDPERF_DEFAULT_DIR), a table
for each event: the share of the method itself, the share including its callees,
its hottest line, and how it ran. A method is one row, however often the JVM
compiled it. The table is as wide as the terminal.

      --lines         one row per source line
      --threads       one row per thread
      --callers METHOD  a tree of the callers of METHOD
      --callees METHOD  a tree of the methods that METHOD calls
      --limit N       rows per event (default: 40; 0: all)
      --json          for scripts: every method with its lines and callers
$SAMPLES_USAGE

      --perf          run perf report on the same profile: its browser in a
                      terminal, else text. You can add perf report's options, such
                      as --comm NAME, -g caller, --children, -s sym,srcline, --stdio
END
}

verb_report() {
    local rows='' callers='' callees='' limit='' json='' arguments=() status=0
    if [[ " $* " == *' --perf '* ]]; then
        # shellcheck source=scripts/jdperf.d/report_perf.sh
        . "$JDPERF_LIB/report_perf.sh"
        report_with_perf "$@"
        return
    fi
    take_filters "$@"
    read_options report 'rows=--lines --lines' 'rows=--threads --threads' 'callers --callers' 'callees --callees' \
        'limit --limit' 'json=--json --json' "-- perf report's options need --perf" : "${REST[@]}"
    one_word report profile
    ((${#MORE[@]} == 0)) || wrong_usage "report: this option needs --perf: ${MORE[0]}"
    open_samples "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    tell_doubts
    [[ -z $callers ]] || arguments+=("--callers=$callers")
    [[ -z $callees ]] || arguments+=("--callees=$callees")
    [[ -z $limit ]] || arguments+=("--limit=$limit")
    # 141: whoever read our output has seen enough.
    samples_to report ${rows:+"$rows"} ${json:+"$json"} "${arguments[@]}" || status=$?
    ((status == 0 || status == 141)) || exit "$status"
}
