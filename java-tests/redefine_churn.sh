#!/usr/bin/env bash
# Names stay right while 100 rounds of redefined and new classes reuse the same addresses. At most 1 in 10,000 samples
# may be unnamed, or carry the name of a class that was not running; and a collector is told of the end of what was
# redefined.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

printf 'Premain-Class: RedefineChurn\nCan-Redefine-Classes: true\n' >"$scratch/manifest"
"$jdk/bin/jar" cfm "$scratch/agent.jar" "$scratch/manifest" -C "$classes" RedefineChurn.class
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)
mkfifo "$scratch/input"
exec 7<>"$scratch/input"

# start RUN FLAG...: the program, which waits before its first round; sets pid.
start() {
    local run=$1
    shift
    mkdir "$run"
    "$jdk/bin/java" "$@" "${dynamic[@]}" -XX:+UseSerialGC -Xmx64m -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache \
        "-javaagent:$scratch/agent.jar" -cp "$classes" RedefineChurn "$run/log" 100 5 <"$scratch/input" 7>&- \
        >"$run/out" 2>"$run/err" &
    pid=$!
    children+=("$pid")
    wait_for "$run/out" ready
}

# run_rounds RUN: has it go on, recorded, and judges what it did; adds to total and wrong.
total=0 wrong=0
run_rounds() {
    local run=$1 samples unnamed misnamed
    perf_record -o "$run/perf.data" -e cpu-clock -F 9999 -k mono -p "$pid" 2>"$run/perf.err" &
    local perf=$!
    children+=("$perf")
    wait_until 30 "recording" test -s "$run/perf.data"
    echo >&7
    wait "$pid" || fail "the JVM failed: $(tail -n 3 "$run/err")"
    wait "$perf" || fail "recording failed: $(tail -n 3 "$run/perf.err")"
    verify "$(the_dump "$run")"
    "$jdtool" inject -q -i "$run/perf.data" -o "$run/perf.jit.data" || fail "jdtool inject"
    perf script -i "$run/perf.jit.data" --ns -F comm,time,ip,sym -G 2>/dev/null >"$run/samples"
    read -r samples unnamed misnamed < <(awk -v ranges="$(code_ranges "$run/out" | tr '\n' ' ')" \
        -f "$tests_dir/phases.awk" "$run/log" "$run/samples")
    note "$(basename "$run"): of $samples leaf samples in generated code $unnamed unnamed, $misnamed misnamed"
    total=$((total + samples)) wrong=$((wrong + unnamed + misnamed))
    rm -f "$run"/perf.data "$run/perf.jit.data" "$run/samples"
}

for run in 1 2 3 4 5 6; do
    INTEL_JIT_PROFILER64=$build/tests/libitt_collector.so JD_ITT_LOG=$scratch/itt$run \
        start "$scratch/start$run" "-agentpath:$agent=mode=jitdump+itt,dir=$scratch/start$run"
    run_rounds "$scratch/start$run"
    start "$scratch/attached$run"
    attach "$pid" "dir=$scratch/attached$run" >"$scratch/said" || fail "attach: $(cat "$scratch/said")"
    run_rounds "$scratch/attached$run"
    [ "$total" -lt 20000 ] || break # a busy machine gives fewer samples a run
done
# Of the class that is redefined in each round, all code but that of the last is gone.
read -r loads unloads < <(awk -F '\t' '
    $1 == "load" && /Phase_900000/ { loaded[$2] } $1 == "unload" && $2 in loaded { gone++ }
    END { print length(loaded), gone + 0 }' "$scratch/itt1")
claim "redefined: ends told to a collector" "$unloads of $loads"
claim "redefined, places used again: samples wrong" "$wrong of $total"
[ "$total" -ge 20000 ] || fail "only $total samples in generated code in six runs"
[ "$loads" -gt 100 ] || fail "the class that is redefined was compiled only $loads times"
at_least "$unloads" "$loads" 80 || fail "the end of code was not told"
[ "$((wrong * 10000))" -le "$total" ] || fail "more than 1 in 10,000 wrong"
