#!/usr/bin/env bash
# Names stay right while 100 rounds of redefined and new classes reuse the same addresses. At most 1 in 10,000 samples
# may be unnamed, or carry the name of a class that was not running; and a collector is told of the end of what was
# redefined. On 8 and 11 stub sections, of which HotSpot tells no agent, are counted by themselves.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

printf 'Premain-Class: RedefineChurn\nCan-Redefine-Classes: true\n' >"$scratch/manifest"
"$jdk/bin/jar" cfm "$scratch/agent.jar" "$scratch/manifest" -C "$classes" RedefineChurn.class
flags=()
[ "$jdk_major" -lt 21 ] || flags=(-XX:+EnableDynamicAgentLoading)
# Up to 19 a collection leaves code of redefined methods to the sweeper, which does nothing for most of a run on 11 while
# there is room: 32 of 109 were gone at the end. Always at work, it frees all of them, and more places are used again. On
# 17 a place may be used again before its end is told, so there it goes at its own pace; what it frees is in the log.
((jdk_major < 9 || jdk_major > 13)) || flags=(-XX:StartAggressiveSweepingAt=100)
mkfifo "$scratch/input"
exec 7<>"$scratch/input"

# start RUN FLAG...: the program, which waits before its first round; sets pid.
start() {
    local run=$1
    shift
    mkdir "$run"
    ((jdk_major < 9 || jdk_major > 19)) || set -- "$@" "-Xlog:jit+compilation=debug:file=$run/jit.log"
    "$jdk/bin/java" "$@" "${flags[@]}" -XX:+UseSerialGC -Xmx64m -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache \
        "-javaagent:$scratch/agent.jar" -cp "$classes" RedefineChurn "$run/log" 100 5 <"$scratch/input" 7>&- \
        >"$run/out" 2>"$run/err" &
    pid=$!
    children+=("$pid")
    wait_for "$run/out" ready
}

# in_stub_sections DUMP <"TIME IP"...: how many of these unnamed samples are in a stub section: at most 512 bytes behind
# the code of a method that lived at that moment, with nothing in between. Calls from compiled to interpreted methods go
# through a stub there, behind the code that HotSpot tells of (nmethod::stub_begin), and such a call's sample may be one.
in_stub_sections() {
    local time address count=0
    while read -r time address; do
        if "$jdtool" map --at "$time" "$1" | awk -v address="$address" '
            function wide(hex) { return "x" substr("0000000000000000", 1, 16 - length(hex)) hex }
            wide($1) <= wide(address) { start = $1; size = $2; method = index($0, "(") }
            END { print address, start, size, method + 0 }' | {
            read -r address start size method
            behind=$((0x$address - 0x$start - 0x$size))
            ((method && behind >= 0 && behind < 512))
        }; then
            count=$((count + 1))
        fi
    done
    echo "$count"
}

# run_rounds RUN: has it go on, recorded, and judges what it did; adds to total, stubs and wrong.
total=0 stubs=0 wrong=0
run_rounds() {
    local run=$1 samples unnamed misnamed in_stubs dump
    perf_record -o "$run/perf.data" -e cpu-clock -F 9999 -k mono -p "$pid" 2>"$run/perf.err" &
    local perf=$!
    children+=("$perf")
    wait_until 30 "recording" test -s "$run/perf.data"
    echo >&7
    wait "$pid" || fail "the JVM failed: $(tail -n 3 "$run/err")"
    wait "$perf" || fail "recording failed: $(tail -n 3 "$run/perf.err")"
    dump=$(the_dump "$run")
    verify "$dump"
    "$jdtool" inject -q -i "$run/perf.data" -o "$run/perf.jit.data" || fail "jdtool inject"
    perf script -i "$run/perf.jit.data" --ns -F comm,time,ip,sym -G 2>/dev/null >"$run/samples"
    : >"$run/missing"
    read -r samples unnamed misnamed < <(awk -v missing="$run/missing" -v ranges="$(code_ranges "$run/out" | tr '\n' ' ')" \
        -f "$tests_dir/phases.awk" "$run/log" "$run/samples")
    in_stubs=0
    ((jdk_major > 16)) || in_stubs=$(in_stub_sections "$dump" <"$run/missing")
    note "$(basename "$run"): of $samples leaf samples in generated code $unnamed unnamed ($in_stubs in stub sections)," \
        "$misnamed misnamed"
    total=$((total + samples)) stubs=$((stubs + in_stubs)) wrong=$((wrong + unnamed - in_stubs + misnamed))
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
claim "the same: samples in stub sections" "$stubs of $total"
[ "$total" -ge 20000 ] || fail "only $total samples in generated code in six runs"
[ "$loads" -gt 100 ] || fail "the class that is redefined was compiled only $loads times"
at_least "$unloads" "$loads" 80 || fail "the end of code was not told"
if [ -e "$scratch/start1/jit.log" ]; then
    freed=$(grep -c 'Phase_900000.*made zombie' "$scratch/start1/jit.log")
    claim "the same, of those that the sweeper says it freed" "$unloads of $freed"
    at_least "$unloads" "$freed" 95 || fail "the end of code was not told" # the last may still be in the queue
fi
[ "$((wrong * 10000))" -le "$total" ] || fail "more than 1 in 10,000 wrong"
[ "$((stubs * 1000))" -le "$total" ] || fail "more than 1 in 1,000 in stub sections"
