# shellcheck shell=bash
# jdperf timeline: what the JVM itself did.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

timeline_usage() {
    cat <<END
usage: jdperf timeline [DIR] [--json] [-o FILE] [OPTION…]

Tells what the JVM itself did in the profile DIR (default: $JDPERF_DEFAULT_DIR), which was
recorded with jdperf record --timeline: pauses and what they were for, garbage
collections, compilations, methods that were compiled again and again,
deoptimisations by reason and method, threads, how full the code cache was.

  --json          each of them, with times in ns on the recording's clock
  -o FILE         there instead of standard output
  --from TIME, --to TIME  behind the first sample: seconds, or 300ms, 5m
  --pid PID, --comm NAME  of one process of several

The same is in the page of jdperf flame, above its heat map, and among the
markers of jdperf export DIR firefox.
END
}

verb_timeline() {
    local out=- json=''
    take_filters "$@"
    read_options timeline 'out -o --output' 'json=-json --json' : "${REST[@]}"
    one_word timeline profile
    open_samples "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    samples_export "timeline$json" "$out"
}
