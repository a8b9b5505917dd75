#!/usr/bin/env bash
# Names stay right while classes live for milliseconds and are unloaded, in a code cache of 8 MB. At most 1 in 10,000
# samples may be unnamed, or carry the name of a class that was not running: by perf inject --jit and by jdtool inject,
# of a file and through the pipe; and no slice of a watch has a class that did not run in it.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

phases=450 # 20,000 samples at 9,999 Hz in one run, unless the machine is busy
[ "$long" = 1 ] && phases=4000
small_cache=(-XX:+UseSerialGC -Xmx64m -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache -cp "$classes")

# judge RUN RESULT: the numbers of samples, unnamed and misnamed ones, into RESULT.judged.
judge() {
    perf script -i "$2" --ns -F comm,time,ip,sym -G 2>/dev/null >"$2.samples"
    awk -v ranges="$(code_ranges "$1/codecache" | tr '\n' ' ')" \
        -f "$tests_dir/phases.awk" "$1/log" "$2.samples" >"$2.judged"
}

# count WAY RESULT: adds what was judged to all[WAY] and wrong[WAY].
declare -A all=() wrong=()
count() {
    local total unnamed misnamed
    read -r total unnamed misnamed <"$2.judged"
    note "$1: of $total leaf samples in generated code $unnamed unnamed, $misnamed misnamed"
    all[$1]=$((${all[$1]:-0} + total)) wrong[$1]=$((${wrong[$1]:-0} + unnamed + misnamed))
}

# record_file RUN: one JVM with that many phases, recorded into a file and judged twice.
record_file() {
    local run=$1
    mkdir "$run"
    # shellcheck disable=SC2016 # for the inner shell: exec keeps the pid, so that the map can be found
    perf_record -o "$run/perf.data" -e cpu-clock -F 9999 -k mono -- \
        bash -c 'echo $$ >"$1"; shift; exec "$@"' - "$run/pid" \
        "$jdk/bin/java" "-agentpath:$agent=mode=jitdump+map,dir=$run" "${small_cache[@]}" \
        Phases "$run/log" "$phases" 8 >"$run/codecache" || fail "recording failed"
    map=/tmp/perf-$(cat "$run/pid").map
    trap 'rm -f "$map"; finish' EXIT
    verify "$(the_dump "$run")"
    overlaps "$map"
    mv "$map" "$run/map" # or perf would have two sources of names

    # The two of them at once.
    mkdir "$run/buildid"
    {
        perf --buildid-dir "$run/buildid" inject --jit -i "$run/perf.data" -o "$run/perf.jit.data" &&
            judge "$run" "$run/perf.jit.data"
    } &
    local stock=$!
    "$jdtool" inject -q -i "$run/perf.data" -o "$run/file.jit.data" || fail "jdtool inject"
    judge "$run" "$run/file.jit.data"
    wait "$stock" || fail "perf inject --jit failed"
    count "perf inject" "$run/perf.jit.data"
    count "jdtool inject" "$run/file.jit.data"
    rm -rf "$run"
}

# record_pipe RUN: the same through the pipe, named while the JVM runs.
record_pipe() {
    local run=$1
    mkdir "$run"
    # shellcheck disable=SC2016 # for the inner shell: what the JVM prints goes to stderr, perf's pipe is stdout
    perf_record -o - -e cpu-clock -F 9999 -k mono -- bash -c 'exec "$@" >&2' - \
        "$jdk/bin/java" "-agentpath:$agent=dir=$run,methods" "${small_cache[@]}" Phases "$run/log" "$phases" 8 \
        2>"$run/codecache" | "$jdtool" inject -q -i - -o "$run/pipe.jit.data" || fail "recording through the pipe failed"
    verify "$(the_dump "$run")"
    judge "$run" "$run/pipe.jit.data"
    count "through the pipe" "$run/pipe.jit.data"
    rm -rf "$run"
}

# A busy machine gives fewer samples a run; enough of them are needed to tell 1 in 10,000.
ways=(file)
! my_part 0 "through the pipe" || ways+=(pipe)
for way in "${ways[@]}"; do
    samples=0
    for run in 1 2 3 4 5 6; do
        "record_$way" "$scratch/$way$run"
        samples=${all["jdtool inject"]}
        [ "$way" = file ] || samples=${all["through the pipe"]}
        [ "$samples" -lt 20000 ] || break
    done
    [ "$samples" -ge 20000 ] || fail "only $samples samples in generated code in six runs"
done
for way in "${!all[@]}"; do
    claim "churn, $way: samples wrong" "${wrong[$way]} of ${all[$way]}"
    [ "$((${wrong[$way]} * 10000))" -le "${all[$way]}" ] || fail "$way: more than 1 in 10,000 wrong"
done

my_part 1 "slices of a watch" || exit 0
# A slice lasts a second, so its classes live longer here; what a stale name would tell of ran in an earlier slice.
command -v python3 >/dev/null || skip "python3 is not installed; all but the watch has passed"
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)

# watch_phases RUN: sets total and misnamed.
watch_phases() {
    local run=$1 watch
    mkdir "$run"
    "$jdperf" watch --match "$run/log" --name "phases-$$" --slice 1 -F 997 -o "$run/slices" --keep 1h >"$run/watch.log" 2>&1 &
    watch=$!
    children+=("$watch")
    wait_until 60 "watch" grep -q . "$run/watch.log"
    "$jdk/bin/java" "${dynamic[@]}" "${small_cache[@]}" Phases "$run/log" 45 150 >"$run/codecache" ||
        fail "the watched JVM failed"
    sliced() { compgen -G "$run/slices/*.pb.gz"; }
    wait_until 30 "slice" sliced
    kill -TERM "$watch"
    wait "$watch" || fail "the watch: $(tail -n 5 "$run/watch.log")"
    find "$run/slices" -name '*.pb.gz' -exec python3 "$tests_dir/readers/slices.py" "$run/log" {} + \
        >"$run/judged" 2>"$run/wrong" || fail "the slices cannot be read: $(tail -n 3 "$run/wrong")"
    read -r total misnamed <"$run/judged"
    claim "churn, slices of a watch: samples wrong" "$misnamed of $total"
}

# A sample waits half a second for what HotSpot's own thread tells of code (jdtool/pipeline/stream.c). On a busy machine
# that thread may not run for so long, and the JVM may have too little of a processor; one run of three in which neither
# was so shows whether names are kept for too long: then none is right.
for run in 1 2 3; do
    watch_phases "$scratch/watched$run"
    ((misnamed > 0 || total < 1000)) || break
done
[ "$misnamed" -eq 0 ] || fail "$(head -n 3 "$scratch/watched$run/wrong")"
[ "$total" -ge 1000 ] || fail "only $total samples in classes that come and go"
