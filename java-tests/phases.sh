#!/usr/bin/env bash
# Truth by phases: classes that run for a few milliseconds and are unloaded, in a code cache of 8 MB.
# At most 1 in 10,000 samples may be unnamed, or carry the name of a class that was not running.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile Phases

phases=1400
[ "$long" = 1 ] && phases=4000

# record_phases NAME: one JVM with that many phases; sets total, unnamed, misnamed.
record_phases() {
    local run=$scratch/$1 dump
    mkdir "$run"
    # shellcheck disable=SC2016 # for the inner shell: exec keeps the pid, so that the map can be found
    perf_record -o "$run/perf.data" -e cpu-clock -F 4999 -k mono -- \
        bash -c 'echo $$ >"$1"; shift; exec "$@"' - "$run/pid" \
        "$jdk/bin/java" "-agentpath:$agent=mode=jitdump+map,dir=$run" -XX:+UseSerialGC -Xmx64m \
        -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache -cp "$classes" \
        Phases "$run/log" "$phases" 8 >"$run/codecache" || fail "recording failed"
    map=/tmp/perf-$(cat "$run/pid").map
    trap 'rm -f "$map"; finish' EXIT
    dump=$(the_dump "$run")
    verify "$dump"
    overlaps "$map"
    mv "$map" "$run/map" # or perf would have two sources of names

    mkdir "$run/buildid"
    perf --buildid-dir "$run/buildid" inject --jit -i "$run/perf.data" -o "$run/perf.jit.data" ||
        fail "perf inject --jit failed"
    perf script -i "$run/perf.jit.data" --ns -F comm,time,ip,sym -G 2>/dev/null >"$run/samples"
    read -r total unnamed misnamed < <(awk -v ranges="$(code_ranges "$run/codecache" | tr '\n' ' ')" \
        -f "$tests_dir/phases.awk" "$run/log" "$run/samples")
    rm -rf "$run"
}

# A busy machine gives fewer samples a run; enough of them are needed to tell 1 in 10,000.
all=0 wrong=0
for run in 1 2 3 4; do
    record_phases "$run"
    note "phases: of $total leaf samples in generated code $unnamed unnamed, $misnamed misnamed"
    all=$((all + total)) wrong=$((wrong + unnamed + misnamed))
    [ "$all" -lt 20000 ] || break
done
claim "churn: samples wrong" "$wrong of $all"
[ "$((wrong * 10000))" -le "$all" ] || fail "more than 1 in 10,000 wrong"
[ "$all" -ge 20000 ] || fail "only $all samples in generated code in four runs"
