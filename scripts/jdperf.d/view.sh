# shellcheck shell=bash
# jdperf view: a profile in Firefox Profiler's front end, in a browser.

# shellcheck source=scripts/jdperf.d/samples.sh
. "$JDPERF_LIB/samples.sh"

view_usage() {
    cat <<END
usage: jdperf view [DIR] [--front-end URL] [--port PORT] [OPTION…]

Opens the profile DIR (default: $JDPERF_DEFAULT_DIR) in the Firefox Profiler: threads
over time, call tree, flame graph, Java source and machine code with their samples.
It prints the address to open, and how to open it from another machine. It serves
the profile until Ctrl-C, only on 127.0.0.1.

      --front-end URL     a copy of the front end, if the browser cannot reach
                      https://profiler.firefox.com (jdperf flame DIR needs no
                      network at all)
      --port PORT     port to listen on (default: any)
      --idle TIME     end after this time without requests
      --source-path DIRS  Java source directories, separated by ':'
$SAMPLES_USAGE
END
}

verb_view() {
    local front_end='' port='' idle='' SOURCE_PATH='' arguments=()
    take_filters "$@"
    read_options view 'front_end --front-end' 'port --port' 'idle --idle' 'SOURCE_PATH --source-path' : "${REST[@]}"
    one_word view profile
    check_directories "$SOURCE_PATH"
    open_samples "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    [[ -z $front_end ]] || arguments+=("--front-end=$front_end")
    [[ -z $port ]] || arguments+=("--port=$port")
    [[ -z $idle ]] || arguments+=("--idle=$idle")
    samples_to view "${arguments[@]}"
}
