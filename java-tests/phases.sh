#!/usr/bin/env bash
# Truth by phases: classes that run for a few milliseconds and are unloaded, in a code cache of 8 MB.
# At most 1 in 10,000 samples may be unnamed, or carry the name of a class that was not running.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile Phases

phases=1400
[ "$long" = 1 ] && phases=4000
# shellcheck disable=SC2016 # for the inner shell: exec keeps the pid, so that the map can be found
perf_record -o "$scratch/perf.data" -e cpu-clock -F 4999 -k mono -- \
    bash -c 'echo $$ >"$1"; shift; exec "$@"' - "$scratch/pid" \
    "$jdk/bin/java" "-agentpath:$agent=mode=jitdump+map,dir=$scratch" -XX:+UseSerialGC -Xmx64m \
    -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache -cp "$classes" \
    Phases "$scratch/log" "$phases" 8 >"$scratch/codecache" || fail "recording failed"
map=/tmp/perf-$(cat "$scratch/pid").map
trap 'rm -f "$map"; finish' EXIT
dump=$(the_dump "$scratch")
verify "$dump"
overlaps "$map"
mv "$map" "$scratch/map" # or perf would have two sources of names

mkdir "$scratch/buildid"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/perf.data" -o "$scratch/perf.jit.data" ||
    fail "perf inject --jit failed"
perf script -i "$scratch/perf.jit.data" --ns -F time,ip,sym -G 2>/dev/null >"$scratch/samples"
read -r total unnamed misnamed < <(awk -v ranges="$(code_ranges "$scratch/codecache" | tr '\n' ' ')" \
    -f "$tests_dir/phases.awk" "$scratch/log" "$scratch/samples")
note "phases: of $total leaf samples in generated code $unnamed unnamed, $misnamed misnamed"
[ "$(((unnamed + misnamed) * 10000))" -le "$total" ] || fail "more than 1 in 10,000 wrong"
[ "$total" -ge 20000 ] || skip "only $total samples in generated code, too few to tell: the machine is busy"
