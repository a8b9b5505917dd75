# shellcheck shell=bash
# jdperf annotate: a method's machine code with Java source beside it.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

annotate_usage() {
    cat <<END
usage: jdperf annotate [DIR] METHOD [OPTION…]
       jdperf annotate --perf [DIR] METHOD [OPTION…] [-- PERF-ANNOTATE-OPTION…]

Prints the machine code of a method with its Java source: the hottest method whose
name is METHOD, else one whose name contains it. Each instruction has its share of
the samples, one column per event; lines of inlined methods are indented. If the
method was inlined everywhere, you see the code of its callers.

      --source-path DIRS  source directories, separated by ':' (package roots, as
                      in DIR/java/util/HashMap.java). The JDK's sources come from
                      its src.zip (Debian: openjdk-N-source, for JDK N)
      --no-source     machine code only
      --all           all code of that name, not only the hottest (the JVM
                      compiles a method more than once)
      --perf          use perf annotate, which also shows native code
$SAMPLES_USAGE
END
}

verb_annotate() {
    local SOURCE_PATH='' source=yes all='' perf='' arguments=() status=0
    take_filters "$@"
    read_options annotate 'SOURCE_PATH --source-path' 'source= --no-source' 'all=yes --all' 'perf=yes --perf' \
        '-- options of perf annotate stand behind --' : "${REST[@]}"
    case ${#WORDS[@]} in
    1)
        ! is_profile "${WORDS[0]}" || wrong_usage "annotate: which method of ${WORDS[0]}? (jdperf annotate DIR METHOD)"
        WORDS=("$JDPERF_DEFAULT_DIR" "${WORDS[0]}")
        ;;
    2) ;;
    *) wrong_usage "annotate: which method? (jdperf annotate DIR METHOD)" ;;
    esac
    check_directories "$SOURCE_PATH"
    annotate_has_code "${WORDS[0]}" || perf=yes
    if [[ $perf ]]; then
        # shellcheck source=scripts/jdperf.d/annotate_perf.sh
        . "$JDPERF_LIB/annotate_perf.sh"
        ((${#FILTERS[@]} == 0)) || wrong_usage "annotate: --perf does not support ${FILTERS[0]%%=*}"
        annotate_with_perf "${WORDS[@]}"
        return
    fi
    ((${#MORE[@]} == 0)) || wrong_usage "annotate: this option needs --perf: ${MORE[0]}"
    open_samples "${WORDS[0]}"
    [[ $source ]] || arguments+=(--no-source)
    [[ -z $all ]] || arguments+=(--all)
    # 141: whoever read our output has seen enough.
    samples_to annotate "${arguments[@]}" -- "${WORDS[1]}" || status=$?
    ((status == 0 || status == 141)) || exit "$status"
}

# A bundle has the images that perf reads, not the dumps.
annotate_has_code() {
    local dumps=("$1"/jit-*.dump)
    [[ $perf || ${#dumps[@]} -gt 0 ]] || ! is_profile "$1" || [[ ! -r $1/perf.jit.data ]] || {
        say "this profile has no dumps: using perf annotate"
        return 1
    }
}
