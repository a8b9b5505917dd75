# shellcheck shell=bash
# jdperf timeline: what the JVM itself did.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

timeline_usage() {
    cat <<END
usage: jdperf timeline [DIR] [--json] [-o FILE] [OPTION…]

Lists what the JVM did in the profile DIR (default: $JDPERF_DEFAULT_DIR), which must be
recorded with jdperf record --timeline: pauses and their causes, garbage
collections, compilations, methods that were compiled repeatedly, deoptimisations
by reason and method, threads, and how full the code cache was.

  --json          every event, with times in ns on the recording's clock
  -o FILE         write to FILE instead of standard output
  --from TIME, --to TIME  a time range from the first sample: seconds, 300ms, 5m
  --pid PID, --comm NAME  one process of several

The page of jdperf flame shows the same above its heat map, and jdperf export DIR
firefox has it as markers.
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
