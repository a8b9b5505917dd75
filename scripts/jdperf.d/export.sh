# shellcheck shell=bash
# jdperf export: a profile for other viewers and for servers.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

EXPORT_FORMATS='html pprof firefox speedscope collapsed otlp otlp-json'

export_usage() {
    cat <<END
usage: jdperf export [DIR] FORMAT [-o FILE] [OPTION…] [-- JDTOOL-EXPORT-OPTION…]

Writes the profile DIR (default: $JDPERF_DEFAULT_DIR) as FORMAT, into DIR or to FILE
(- is standard output):

  html        flamegraph.html: the page of jdperf flame
  pprof       profile.pb.gz: go tool pprof, Pyroscope, Parca, Cloud Profiler
  firefox     profile.firefox.json.gz: https://profiler.firefox.com, Perfetto
  speedscope  profile.speedscope.json: https://www.speedscope.app
  collapsed   stacks.collapsed.txt: flamegraph.pl, inferno
  otlp        profile.otlp.pb: OpenTelemetry, for POST to /v1development/profiles
  otlp-json   profile.otlp.json

      --source-path DIRS  Java source directories, for firefox
$SAMPLES_USAGE

Options of jdtool export follow --, such as -- --suffixes.
END
}

verb_export() {
    local out='' SOURCE_PATH='' format
    take_filters "$@"
    read_options export 'out -o --output' 'SOURCE_PATH --source-path' \
        '-- options of jdtool export stand behind --' : "${REST[@]}"
    case ${#WORDS[@]} in
    1) WORDS=("$JDPERF_DEFAULT_DIR" "${WORDS[0]}") ;;
    2) ;;
    *) wrong_usage "export: which format? (jdperf export DIR FORMAT: $EXPORT_FORMATS)" ;;
    esac
    format=${WORDS[1]}
    [[ " $EXPORT_FORMATS " == *" $format "* ]] || wrong_usage "export: unknown format: $format ($EXPORT_FORMATS)"
    check_directories "$SOURCE_PATH"
    open_samples "${WORDS[0]}"
    out=${out:-$PROFILE/$(export_name "$format")}
    samples_export "$format" "$out" "${MORE[@]}"
    [[ $out == - ]] || say "$format: $out"
}

export_name() {
    case $1 in
    html) echo flamegraph.html ;;
    pprof) echo profile.pb.gz ;;
    firefox) echo profile.firefox.json.gz ;;
    speedscope) echo profile.speedscope.json ;;
    collapsed) echo stacks.collapsed.txt ;;
    otlp) echo profile.otlp.pb ;;
    otlp-json) echo profile.otlp.json ;;
    esac
}
