#!/usr/bin/env bash
# Segments: classes that run for a few milliseconds and are unloaded, through many segments. Samples have
# the right names across each change, in files and through the pipe, where only the last ones are kept;
# the disk is bounded, and so is the JVM's memory. JDAGENT_LONG=1: through 10 GB.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile Phases
compile Churn

# judge NAME: the samples of a result against what Phases wrote; sets total, wrong.
judge() {
    local unnamed misnamed
    perf script -i "$scratch/$1.jit.data" --ns -F comm,time,ip,sym -G 2>/dev/null >"$scratch/samples"
    read -r total unnamed misnamed < <(awk -v ranges="$(code_ranges "$scratch/$1.codecache" | tr '\n' ' ')" \
        -f "$tests_dir/phases.awk" "$scratch/$1.log" "$scratch/samples")
    wrong=$((unnamed + misnamed))
    note "$1: of $total leaf samples in generated code $unnamed unnamed, $misnamed misnamed"
    [ "$total" -gt 3000 ] || fail "$1: only $total samples"
    [ "$((wrong * 1000))" -le "$total" ] || fail "$1: more than 1 in 1,000 wrong"
}
segments() { find "$1" -name 'segment-*' | sed 's/.*segment-0*//' | sort -n; }
# phases DIR OPTIONS PERF-ARGUMENT...: what the JVM prints goes to stderr, perf's pipe is stdout.
phases() {
    local name=$1 options=$2
    shift 2
    mkdir "$scratch/$name"
    # shellcheck disable=SC2016 # for the inner shell
    perf_record -e cpu-clock -F 4999 -k mono "$@" -- bash -c 'exec "$@" >&2' - \
        "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/$name,methods,$options" -XX:+UseSerialGC -Xmx64m \
        -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache -cp "$classes" Phases "$scratch/$name.log" 700 8 \
        2>"$scratch/$name.codecache"
}

phases all segment=2M -o "$scratch/all.data" || fail "recording failed: $(head -n 3 "$scratch/all.codecache")"
count=$(segments "$scratch/all" | wc -l)
[ "$count" -ge 3 ] || fail "only $count segments"
while read -r dump; do
    verify "$dump"
done < <(find "$scratch/all" -name '*.dump')
"$jdtool" inject -q -i "$scratch/all.data" -o "$scratch/all.jit.data" || fail "jdtool inject"
judge all
claim "$count segments: samples wrong" "$wrong of $total"

# perf keeps what it has to tell of a segment for a while, in which as many come as are kept.
phases piped segment=2M,keep=6 -o - | "$jdtool" inject -q -i - -o "$scratch/piped.jit.data" ||
    fail "recording through the pipe failed"
judge piped
last=$(segments "$scratch/piped" | tail -n 1)
[ "$(segments "$scratch/piped" | wc -l)" -eq 6 ] || fail "not six segments are kept: $(segments "$scratch/piped")"
[ "$last" -ge 7 ] || fail "only $last segments"
claim "$last segments, six kept, through the pipe: samples wrong" "$wrong of $total"

# The disk is bounded, and the memory after it has warmed up.
segment=4 warm=3 end=8
[ "$long" = 1 ] && segment=8 warm=20 end=1280
mkdir "$scratch/bounded"
"$jdk/bin/java" "-agentpath:$agent=dir=$scratch/bounded,methods,segment=${segment}M,keep=4" -XX:+UseSerialGC -Xmx64m \
    -Xms64m -XX:+AlwaysPreTouch -XX:ReservedCodeCacheSize=8m -XX:TieredStopAtLevel=1 -cp "$classes" Churn 100000000 \
    >"$scratch/out" 2>&1 &
child=$!
children=("$child")
most=0 at_warm=0 last=0
while [ "$last" -lt "$end" ]; do
    kill -0 "$child" 2>/dev/null || fail "the JVM has ended: $(cat "$scratch/out")"
    used=$(du -sk "$scratch/bounded" 2>/dev/null | cut -f 1)
    [ "$used" -le "$most" ] || most=$used
    last=$(segments "$scratch/bounded" | tail -n 1)
    last=${last:-0}
    rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$child/status")
    [[ $last -lt $warm || $at_warm != 0 ]] || at_warm=$rss
    sleep 0.02
done
kill -KILL "$child"
claim "disk, ${segment}M and 4 kept, through $last segments" "at most $most kB"
claim "resident memory from segment $warm on" "$((rss - at_warm)) kB more"
[ "$most" -le $((segment * 1024 * 6)) ] || fail "the disk is not bounded: $most kB"
# The JVM's own goes up and down by some MB.
[ $((rss - at_warm)) -le 8192 ] || fail "memory grows: $at_warm kB, then $rss kB"
