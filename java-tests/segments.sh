#!/usr/bin/env bash
# Dumps stay right through many segments while classes are loaded and unloaded. Samples have the right names across each
# change, in files and through the pipe, where only the last ones are kept; the disk is bounded, and so is the JVM's
# memory. JDAGENT_LONG=1: through 10 GB.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

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
segments() { find "$1" -maxdepth 1 -name 'segment-*' | sed 's/.*segment-0*//' | sort -n; }
# phases DIR OPTIONS PHASES PERF-ARGUMENT...: what the JVM prints goes to stderr, perf's pipe is stdout.
phases() {
    local name=$1 options=$2 phases=$3
    shift 3
    rm -rf "${scratch:?}/$name"
    mkdir "$scratch/$name"
    # shellcheck disable=SC2016 # for the inner shell
    perf_record -e cpu-clock -F 4999 -k mono "$@" -- bash -c 'exec "$@" >&2' - \
        "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/$name,methods,$options" -XX:+UseSerialGC -Xmx64m \
        -XX:ReservedCodeCacheSize=8m -XX:+PrintCodeCache -cp "$classes" Phases "$scratch/$name.log" "$phases" 8 \
        2>"$scratch/$name.codecache"
}

phases all segment=1M 400 -o "$scratch/all.data" || fail "recording failed: $(head -n 3 "$scratch/all.codecache")"
count=$(segments "$scratch/all" | wc -l)
[ "$count" -ge 3 ] || fail "only $count segments"
while read -r dump; do
    verify "$dump"
done < <(find "$scratch/all" -name '*.dump')
"$jdtool" inject -q -i "$scratch/all.data" -o "$scratch/all.jit.data" || fail "jdtool inject"
judge all
claim "$count segments: samples wrong" "$wrong of $total"

# perf keeps what it has to tell of a segment for a while, in which as many come as are kept.
# A phase ends by the clock: on a busy machine little is compiled in it, and more are needed.
for count in 900 3000; do
    phases piped segment=1200K,keep=6 "$count" -o - | "$jdtool" inject -q -i - -o "$scratch/piped.jit.data" ||
        fail "recording through the pipe failed"
    last=$(segments "$scratch/piped" | tail -n 1)
    [ "$last" -lt 7 ] || break
done
judge piped
[ "$(segments "$scratch/piped" | wc -l)" -eq 6 ] || fail "not six segments are kept: $(segments "$scratch/piped")"
[ "$last" -ge 7 ] || fail "only $last segments"
claim "$last segments, six kept, through the pipe: samples wrong" "$wrong of $total"

# The disk is bounded, and what the agent holds as well. The JVM's own memory grows with every class that
# is told of: to JDK 25 it never frees the ids of methods that its events bring (HotSpot 17:
# ClassLoaderData::~ClassLoaderData, "look like a leak"), as much for an agent that does nothing at them.
segment=4 warm=6 end=16
[ "$long" = 1 ] && segment=8 warm=40 end=1280
mkdir "$scratch/bounded"
count_allocations
"${counted[@]}" "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/bounded,methods,segment=${segment}M,keep=4" \
    -XX:+UseSerialGC -Xmx64m -Xms64m -XX:+AlwaysPreTouch -XX:ReservedCodeCacheSize=8m -Xcomp \
    -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet '-XX:CompileCommand=compileonly,Made*::*' \
    -cp "$classes" ComeAndGo 100000000 100 200 >"$scratch/out" 2>&1 &
child=$!
children=("$child")
classes_made() { tail -n 1 "$scratch/out" | grep -x '[0-9]*' || echo 0; }
most=0 warmed='' last=0 kept_up=yes
while [ "$last" -lt "$end" ]; do
    kill -0 "$child" 2>/dev/null || fail "the JVM has ended: $(tail -n 5 "$scratch/out")"
    if grep 'Compiler has been disabled' "$scratch/out" >/dev/null; then
        note "the JVM's sweeper did not keep up on this busy machine, and nothing is compiled any more"
        kept_up=no
        break
    fi
    used=$(du -sk "$scratch/bounded" 2>/dev/null | cut -f 1) || true # a segment goes meanwhile
    [ "$used" -le "$most" ] || most=$used
    last=$(segments "$scratch/bounded" | tail -n 1)
    last=${last:-0}
    read -r rss holds made < <(echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$child/status")" \
        "$(held | cut -d ' ' -f 1)" "$(classes_made)")
    if [[ $last -ge $warm && -z $warmed ]]; then
        warmed=$last rss_then=$rss holds_then=$holds made_then=$made
    fi
    sleep 0.1
done
kill -KILL "$child"
[ -n "$warmed" ] || fail "only $last segments"
claim "disk, ${segment}M and 4 kept, through $last segments" "at most $most kB"
claim "what the agent holds, from segment $warmed on, $((made - made_then)) classes" "$((holds - holds_then)) bytes more"
note "resident memory meanwhile: $((rss - rss_then)) kB more"
[ "$most" -le $((segment * 1024 * 6)) ] || fail "the disk is not bounded: $most kB"
[[ $made -gt $made_then || $kept_up == no ]] || fail "no classes came"
# The queue's two buffers, of 4 MB each, have their memory when the writing thread is late for the first time.
queue=$((8 << 20))
[ $((holds - holds_then)) -le $queue ] || fail "the agent holds more and more: $holds_then bytes, then $holds"
# The JVM's own: it was measured at 0.4 KB a class, and goes up and down by some MB.
[ $(((rss - rss_then) * 1024)) -le $((queue + (8 << 20) + 1024 * (made - made_then))) ] ||
    fail "memory grows: $rss_then kB, then $rss kB"
