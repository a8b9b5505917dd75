# shellcheck shell=bash disable=SC2154,SC2034 # What run.sh sets, and what the parts use.
# async-profiler, out of its jar in Maven Central (or ASYNC_PROFILER, its library), and how it and jdperf are
# asked for the same: as many samples, whole stacks.

async_profiler_version=4.5

# Sets asprof to the library.
build_async_profiler() {
    local artifact=tools.profiler:async-profiler:$async_profiler_version
    local dir=$build/bench/async-profiler-$async_profiler_version
    asprof=${ASYNC_PROFILER:-$dir/libasyncProfiler.so}
    [ ! -e "$asprof" ] || return 0
    command -v mvn >/dev/null || fail "--peer async-profiler needs mvn, or ASYNC_PROFILER=libasyncProfiler.so"
    progress "fetching $artifact"
    mkdir -p "$dir"
    mvn -q -B dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$dir" >"$scratch/run.out" 2>&1 ||
        fail "Maven cannot fetch $artifact: $(grep -m 1 ERROR "$scratch/run.out")"
    local machine=x64
    [ "$(uname -m)" = x86_64 ] || machine=arm64
    unzip -q -o -j "$dir/async-profiler-$async_profiler_version.jar" "linux-$machine/libasyncProfiler.so" -d "$dir"
}

# The programs of bench/truth, in $scratch/classes.
build_truth() {
    [ ! -e "$scratch/classes/Truth.class" ] || return 0
    "$jdk/bin/javac" -nowarn -d "$scratch/classes" "$here"/truth/*.java 2>"$scratch/run.err" ||
        fail "bench/truth does not compile: $(head -n 3 "$scratch/run.err")"
}

# Who is compared: async-profiler -e cpu (perf_events) and itimer; jdperf as it is by default, with copied stacks, by
# frame pointers, and with perf record as its sampler.
async_profiler_all=(asprof-cpu asprof-itimer jdperf jdperf-copy jdperf-fp jdperf-perf)
sampling_hz=997

# as_profiled WHO RESULT COMMAND...: sets command to COMMAND (a java with its flags), profiled by WHO into RESULT.
as_profiled() {
    local who=$1 into=$2 options=""
    shift 2
    case $who in
    none) command=("$@") && return ;;
    asprof-cpu) options=event=cpu ;;
    asprof-itimer) options=event=itimer ;;
    jdperf*)
        command=("$here/../scripts/jdperf" record -o "$into" -F "$sampling_hz")
        case $who in
        jdperf-perf) command+=(--sampler perf) ;;
        jdperf-*) command+=(--stacks "${who#jdperf-}") ;;
        esac
        command+=(-- "$@")
        return
        ;;
    esac
    command=("$1" "-agentpath:$asprof=start,$options,interval=$((1000000000 / sampling_hz)),file=$into,jfr" "${@:2}")
}

# samples_of WHO RESULT: one sample a line, see truth/JfrSamples.java.
samples_of() {
    case $1 in
    jdperf*) python3 "$here/truth/perf_samples.py" "$jdtool" "$2" ;;
    *) "$jdk/bin/java" -cp "$scratch/classes" JfrSamples "$2" ;;
    esac
}
