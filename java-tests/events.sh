#!/usr/bin/env bash
# Allocations, contended monitors and exceptions in a profile equal what the program counted, with whole stacks, also where
# exceptions are too many to record each; and the kernel's probes are removed afterwards.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_events

# the_event PROFILE EVENT KEY: a number of the scorecard's.
the_event() {
    python3 -c 'import json, sys
for event in json.load(open(sys.argv[1] + "/scorecard.json"))["events"]:
    if event["name"] == sys.argv[2]: print(event[sys.argv[3]])' "$scratch/$1" "$2" "$3"
}

# by_leaf PROFILE EVENT: WEIGHT CLASS THREAD, of each class.
by_leaf() {
    "$jdperf" export "$scratch/$1" collapsed -o - --event "$2" -- --weights 2>/dev/null |
        awk '{ weight = $NF; sub(/ [0-9]+$/, ""); n = split($0, frames, ";"); sum[frames[n] "\t" frames[1]] += weight }
            END { for (key in sum) printf "%.0f\t%s\n", sum[key], key }' | sort -rn
}

# near WHAT VALUE TRUTH PERCENT: what perf lost on a busy machine may be missing, and is said.
near() {
    awk -v value="$2" -v truth="$3" -v most="$4" -v lost="$lost" 'BEGIN {
        off = truth ? 100 * (value - truth) / truth : 100
        printf "%.0f against %.0f, %.2f %%\n", value, truth, off
        exit off > most || (off < -most && !lost) }' >"$scratch/near" || fail "$1: $(cat "$scratch/near")"
    note "$1: $(cat "$scratch/near")"
}

# check_stacks PROFILE: every event has whole stacks, which begin with its class and hold nothing of
# the JVM's way to the event.
check_stacks() {
    local event rooted all
    for event in alloc lock exception; do
        read -r all rooted < <(rooted_stacks "$scratch/$1/perf.jit.data" "$event")
        note "$1: $event: $(the_event "$1" "$event" samples) samples, $rooted of $all stacks rooted," \
            "left out: $(the_event "$1" "$event" left_out)"
        [ "$all" -ge 5 ] || fail "$1: only $all stacks of $event" # on a busy machine a few a second
        [ $((rooted * 1000)) -ge $((all * 999)) ] || fail "$1: $event: $rooted of $all stacks are rooted"
        "$jdperf" export "$scratch/$1" collapsed -o - --event "$event" 2>/dev/null >"$scratch/stacks"
        ! grep -qE 'jdagent_event|JvmtiExport::post|JVM_FillInStackTrace|sampled_object_alloc|monitor_contended' "$scratch/stacks" ||
            fail "$1: $event: the JVM's own frames: $(grep -m 1 -E 'jdagent_event|JvmtiExport|JVM_Fill' "$scratch/stacks")"
    done
}

# check PROFILE LOG: against the program's own counts.
check() {
    local truths class weight share sums n
    lost=$(sed -n 's/.*"lost_samples": \([0-9]*\).*/\1/p' "$scratch/$1/scorecard.json")
    note "$1: samples lost by perf: $lost"
    check_stacks "$1"
    # Bytes: shares of the three classes. What each object takes is what the JVM says of it.
    by_leaf "$1" alloc | awk -F'\t' '$3 == "allocator"' >"$scratch/alloc"
    truths=$(awk '$1 == "alloc" { print $2, $3 }' "$2")
    sums=$(awk '{ size = /byte/ ? 1024 : /int/ ? 512 : small; sum += size * $2 } END { print sum }' \
        small="$small" <<<"$truths")
    n=$(the_event "$1" alloc samples)
    while read -r class number; do
        weight=$(awk -F'\t' -v class="$class" '$2 == class { print $1 }' "$scratch/alloc")
        [ -n "$weight" ] || fail "$1: no sample of $class: $(head -n 5 "$scratch/alloc")"
        share=$(awk -F'\t' -v weight="$weight" '{ all += $1 } END { printf "%.4f", 100 * weight / all }' "$scratch/alloc")
        awk -v share="$share" -v class="$class" -v number="$number" -v all="$sums" -v small="$small" -v n="$n" 'BEGIN {
            size = class ~ /byte/ ? 1024 : class ~ /int/ ? 512 : small
            truth = 100 * size * number / all
            chance = 450 * sqrt(truth / 100 * (1 - truth / 100) / n) # 4.5 sigma of n samples: once in 150,000, and there are some ten such comparisons
            most = chance > 0.5 ? chance : 0.5
            printf "%s: %.3f %% of bytes, really %.3f %% (%.3f; by chance up to %.2f)\n", class, share, truth, share - truth, chance
            exit share - truth > most || truth - share > most }' >"$scratch/share" || fail "$1: $(cat "$scratch/share")"
        note "$1: $(cat "$scratch/share")"
    done <<<"$truths"
    # The sampler's intervals are exponential (JEP 331), so n samples are off by chance as 1 / sqrt(n) is: 4.5 sigma.
    near "$1: bytes in all" "$(awk -F'\t' '{ sum += $1 } END { printf "%.0f", sum }' "$scratch/alloc")" "$sums" \
        "$(awk -v most="$3" -v n="$n" 'BEGIN { chance = 450 / sqrt(n); print (chance > most ? chance : most) }')"
    # Waits for the monitor, of each contender.
    by_leaf "$1" lock >"$scratch/lock"
    while read -r _ thread truth; do
        weight=$(awk -F'\t' -v thread="$thread" '$3 == thread && $2 == "Events$1" { print $1 }' "$scratch/lock")
        near "$1: $thread" "${weight:-0}" "$truth" "$4"
    done < <(grep '^lock' "$2")
    # Exceptions: each is told.
    by_leaf "$1" exception | awk -F'\t' '$3 == "thrower"' >"$scratch/exceptions"
    while read -r _ class truth; do
        weight=$(awk -F'\t' -v class="$class" '$2 == class { print $1 }' "$scratch/exceptions")
        near "$1: $class" "${weight:-0}" "$truth" "$5"
    done < <(grep '^exception' "$2")
}

# An object of two longs, with this JVM's header.
small=32
! "$jdk/bin/java" -XX:+PrintFlagsFinal -version 2>/dev/null | grep 'UseCompactObjectHeaders *= *true' >/dev/null || small=24

seconds=3
interval=256K
[ "$long" = 0 ] || { seconds=60 interval=64K; }
"$jdperf" record -o "$scratch/started" -F 49 -m 64M --alloc=$interval --locks --exceptions -- \
    "$jdk/bin/java" -cp "$classes" Events $seconds alloc locks exceptions >"$scratch/log" 2>"$scratch/err" ||
    fail "record: $(tail -n 5 "$scratch/err")"
check started "$scratch/log" 3 8 2
no_probes started

# perf's own report weighs by the same numbers, and goes by class, as we do.
perf report -i "$scratch/started/perf.jit.data" --stdio --no-children -g none --sort sym 2>/dev/null >"$scratch/report"
weighed=$(awk '/^# Samples.*:alloc/ { inside = 1 } /^# Samples/ && !/:alloc/ { inside = 0 } inside && /Event count/ { print $NF }' "$scratch/report")
weight=$(the_event started alloc weight)
[ "$weighed" = "$weight" ] || fail "perf report counts $weighed bytes, we $weight"
grep -qE '\[\.\] byte\[\]' "$scratch/report" || fail "perf report does not know classes: $(grep -v '^#' "$scratch/report" | head -n 30)"

# Deep stacks are whole, and one event with the shallow ones, whose copies are smaller. (-Xint: 80 frames are 20 KB.)
if my_part 1 "deep stacks"; then
    "$jdperf" record -o "$scratch/depths" -F 49 -m 64M --alloc=4M -- "$jdk/bin/java" -Xint -cp "$classes" Depths 3 80 >/dev/null 2>"$scratch/err" ||
        fail "depths: $(tail -n 5 "$scratch/err")"
    [ "$(perf evlist -i "$scratch/depths/perf.jit.data" | grep -c ':alloc')" = 1 ] || fail "depths: $(perf evlist -i "$scratch/depths/perf.jit.data")"
    "$jdperf" export "$scratch/depths" collapsed -o "$scratch/stacks" --event alloc 2>/dev/null
    for thread in shallow deep; do
        awk -F';' -v thread=$thread '$1 == thread { n = split($0, parts, " "); all += parts[n]; rooted += /start_thread/ ? parts[n] : 0 }
            END { print all + 0, rooted + 0 }' "$scratch/stacks" >"$scratch/count"
        read -r all rooted <"$scratch/count"
        note "depths: $thread: $rooted of $all stacks rooted"
        [ "$all" -ge 20 ] || fail "depths: $thread: only $all samples"
        [ $((rooted * 1000)) -ge $((all * 999)) ] || fail "depths: $thread: $rooted of $all stacks are rooted"
    done
fi

# Attached to a JVM that runs; a second time, for capabilities are had once.
"$jdk/bin/java" -cp "$classes" Events 300 alloc locks exceptions >"$scratch/log" 2>&1 &
pid=$!
children+=("$pid")
for round in 1 2; do
    wait_until 60 "the JVM listens" "$jdk/bin/jcmd" "$pid" VM.version
    "$jdperf" record -p "$pid" -d 2 -o "$scratch/attached$round" -F 49 -m 64M --alloc --locks --exceptions \
        2>"$scratch/err" || fail "attached: $(tail -n 5 "$scratch/err")"
    kill -STOP "$pid" # it need not be busy while files are read
    check_stacks "attached$round"
    kill -CONT "$pid"
    no_probes attached
done

# A session that the running session lacks events has none; that is said, and the rest is recorded.
if my_part 0 "a session that lacks events"; then
    "$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" "\"dir=$scratch\"" >/dev/null
    "$jdperf" record -p "$pid" -d 1 -o "$scratch/joined" -F 49 --alloc 2>"$scratch/err" || [ $? = 3 ] ||
        fail "joined: $(tail -n 5 "$scratch/err")"
    grep -q 'the running session lacks methods' "$scratch/err" || fail "joined: nothing is said of methods: $(cat "$scratch/err")"
    grep -q 'alloc.*the running session lacks' "$scratch/err" || fail "joined: nothing is said: $(cat "$scratch/err")"
    grep -q 'the profile is .*asked for, but not recorded: --alloc' "$scratch/err" || fail "joined: it is good: $(cat "$scratch/err")"
fi
kill "$pid"

# Virtual threads leave their carriers while they wait for a monitor: their waits have whole stacks as well, of which copies
# lack the callers that are in the heap.
if [ "$jdk_major" -ge 24 ]; then
    for kind in copy kernel; do
        "$jdperf" record -o "$scratch/virtual$kind" -F 49 -m 64M --stacks $kind --locks=1us --threads -- \
            "$jdk/bin/java" -XX:+UseParallelGC -cp "$classes" Events $seconds virtual-locks >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
            fail "virtual locks: $(tail -n 5 "$scratch/err")"
        lost=$(sed -n 's/.*"lost_samples": \([0-9]*\).*/\1/p' "$scratch/virtual$kind/scorecard.json")
        "$jdperf" export "$scratch/virtual$kind" collapsed -o "$scratch/stacks" --event lock --by virtual -- --weights 2>"$scratch/err" ||
            fail "virtual locks: $(cat "$scratch/err")"
        while read -r _ thread truth; do
            near "virtual locks, $kind: $thread" \
                "$(awk -v thread="$thread;" 'index($0, thread) == 1 { sum += $NF } END { printf "%.0f", sum }' "$scratch/stacks")" "$truth" 8
        done < <(grep '^lock' "$scratch/log")
        read -r all whole < <(awk '/^virtual-contender/ { all += $NF; n = gsub(/Events\.deep\(/, ""); if (/Events\.contend\([^;]*;Events\$1 / && n == 31) whole += $NF
            if (!/Events\.contend\(/) print >"/dev/stderr" } END { printf "%.0f %.0f\n", all / 1e6, whole / 1e6 }' "$scratch/stacks" 2>"$scratch/without")
        claim "locks of virtual threads, $kind" "$whole of $all ms with all callers, $(grep -c . "$scratch/without") stacks without the Java frame that waits"
        [ ! -s "$scratch/without" ] || fail "virtual locks, $kind: the Java frame is missing: $(head -n 3 "$scratch/without")"
        [[ $kind = copy || $((4 * whole)) -ge $((3 * all)) ]] || fail "virtual locks: callers are missing: $(head -n 5 "$scratch/stacks")"
    done
fi

# More exceptions than can be recorded: some are, by chance, whose weights count for all, by class; and none is lost. Copied
# and walked stacks.
flood_seconds=3
floods=()
! my_part 0 "too many exceptions, walked" || floods+=(auto)
! my_part 1 "too many exceptions, copied" || floods+=(copy)
if part "limits" test "$(echo -e "5.15\n$(uname -r)" | sort -V | head -n 1)" = 5.15; then
    for kind in "${floods[@]}"; do
        "$jdperf" record -o "$scratch/flood$kind" -F 49 --stacks "$kind" --exceptions -- \
            "$jdk/bin/java" -cp "$classes" Events $flood_seconds flood >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
            fail "flood: $(tail -n 5 "$scratch/err")"
        lost=$(sed -n 's/.*"lost_samples": \([0-9]*\).*/\1/p' "$scratch/flood$kind/scorecard.json")
        n=$(the_event "flood$kind" exception samples)
        note "flood, $kind: $n of $(the_event "flood$kind" exception weight) exceptions recorded, $lost lost"
        # 5,000 a second, and until that is reached; on a machine of more than 25 processors 200 a second on each.
        ((n >= 500 && n <= 5000 * (flood_seconds + 3))) || fail "flood: $n exceptions are recorded"
        ((lost * 100 <= n)) || fail "flood: $lost samples are lost"
        lost=0
        by_leaf "flood$kind" exception | awk -F'\t' '$3 == "flooder"' >"$scratch/exceptions"
        while read -r _ class truth; do
            weight=$(awk -F'\t' -v class="$class" '$2 == class { print $1 }' "$scratch/exceptions")
            # 5 sigma, as if all weighed the same; one of the classes has a fifth of them.
            near "flood, $kind: $class" "${weight:-0}" "$truth" \
                "$(awk -v n="$n" -v class="$class" 'BEGIN { print 500 / sqrt(n * (class ~ /Fourth/ ? 0.2 : 0.8)) }')"
        done < <(grep '^exception' "$scratch/log")
        grep -q 'events exception were recorded, chosen at random' "$scratch/err" || fail "flood: it is not said: $(cat "$scratch/err")"
    done
fi

# Where not all may be had it is told what is missing, and the rest is recorded.
all=(--alloc=64K --locks --exceptions --off-cpu --wakers --timeline)
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if my_part 0 "an ordinary user" && part "an ordinary user" other_user_runs && part "an ordinary user" "${other[@]}" test -x "$jdtool" -a -r "$agent"; then
    mkdir -m 777 "$scratch/others"
    chmod 711 "$scratch"
    "${other[@]}" env HOME="$scratch/others" "$jdperf" record -o "$scratch/others/profile" -e cpu-clock:u -F 49 "${all[@]}" \
        -- "$jdk/bin/java" -cp "$classes" Events 1 alloc >/dev/null 2>"$scratch/err" || true
    grep -q -e '--alloc, --locks, --exceptions, --timeline: it needs uprobes.*as root' "$scratch/err" || fail "not root: $(cat "$scratch/err")"
    grep -q -e '--off-cpu: it needs .*as root' "$scratch/err" || fail "not root: $(cat "$scratch/err")"
    grep -q 'recording cpu-clock' "$scratch/err" || fail "not root: nothing is recorded: $(cat "$scratch/err")"
    grep -q 'asked for, but not recorded: --alloc --locks --exceptions --off-cpu' "$scratch/err" || fail "not root: $(cat "$scratch/err")"
fi

# confined NAME WITHOUT COMMAND...: jdperf record as root without these capabilities, as in a container; COMMAND goes
# before it. Some of the profile's samples are the clock's.
confined() {
    local name=$1 drop=-${2//,/,-} status=0
    shift 2
    "$@" setpriv --bounding-set "$drop" --inh-caps "$drop" "$jdperf" record -o "$scratch/$name" -e cpu-clock -F 499 "${all[@]}" -- \
        "$jdk/bin/java" -cp "$classes" Events 1 alloc locks exceptions >/dev/null 2>"$scratch/err" || status=$?
    ((status == 0 || status == 3)) || fail "$name: status $status: $(cat "$scratch/err")" # 3: so few samples may be bad
    python3 -c 'import json, sys
event = json.load(open(sys.argv[1]))["events"][0]
sys.exit(not event["name"].startswith("cpu-clock") or event["samples"] == 0)' "$scratch/$name/scorecard.json" ||
        fail "$name: nothing is recorded: $(cat "$scratch/err")"
}

if my_part 0 "without tracefs" && part "without tracefs" own_mounts; then
    # shellcheck disable=SC2016
    confined container sys_admin unshare -m --propagation private bash -c '
        mount -t tmpfs tmpfs /sys/kernel/tracing
        [ ! -d /sys/kernel/debug ] || mount -t tmpfs tmpfs /sys/kernel/debug
        exec "$@"' sh
    grep -q -e '--alloc, --locks, --exceptions, --timeline: it needs uprobes.*has none.*from the host' "$scratch/err" ||
        fail "without tracefs: $(cat "$scratch/err")"
    grep -q -e '--off-cpu: it needs .*has none.*from the host' "$scratch/err" || fail "without tracefs: $(cat "$scratch/err")"
fi

# Uprobes are had without leave to sample the kernel, under other names of perf's (trace_uprobe.c: TRACE_EVENT_FL_CAP_ANY).
if my_part 1 "without leave to sample the kernel" && part "without leave to sample the kernel" other_user_runs &&
    part "without leave to sample the kernel" test "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2; then
    confined unprivileged sys_admin,perfmon
    weight=$(the_event unprivileged alloc weight)
    [ "${weight:-0}" -gt 1000000 ] || [ "$(the_event unprivileged alloc samples)" = 0 ] || fail "unprivileged: $weight bytes allocated"
    note "unprivileged: $weight bytes allocated, $(the_event unprivileged exception samples) exceptions"
    "$jdperf" timeline "$scratch/unprivileged" >"$scratch/text" 2>&1 || fail "unprivileged: $(cat "$scratch/text")"
    grep -q '^Threads: [1-9]' "$scratch/text" || grep -q 'has no marks' "$scratch/err" || fail "unprivileged: no time line: $(cat "$scratch/text")"
    no_probes unprivileged
fi

# Killed: the guardian takes the probes away.
my_part 1 "a recorder that is killed" || exit 0
"$jdperf" record -o "$scratch/killed" -F 49 --exceptions -- \
    "$jdk/bin/java" -cp "$classes" Events 30 exceptions >/dev/null 2>&1 &
recorder=$!
wait_until 60 "probes" grep -q "jdagent_${recorder}_" "$tracing/uprobe_events"
mapfile -t java < <(pgrep -P "$recorder" java || true)
kill -KILL "$recorder"
for child in "${java[@]}"; do kill -KILL "$child" 2>/dev/null || true; done
gone() { ! grep -q "jdagent_${recorder}_" "$tracing/uprobe_events"; }
wait_until 60 "the probes gone" gone
