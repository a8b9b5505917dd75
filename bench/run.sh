#!/usr/bin/env bash
# Measures the agent, the writer and the injector beside what people would use instead. Everything
# that is compared runs interleaved; what counts are medians and their ratios.
#
# usage: bench/run.sh [OPTIONS] [PART...]     parts: replay live growth writer inject; all by default
#   --jdk HOME    the JDK (default: that of javac on PATH)
#   --peer        also perf's own agent, built from Debian's linux-source-6.1
#   --rounds N    rounds of each measurement (default 7)
#   --small       little work, for a look whether it all runs
#   -o DIR        where results.tsv, results.json and table.txt go (default: build/bench/results)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${JDAGENT_BUILD:-$here/../build}" && pwd)
jdtool=$build/jdtool
agent=$build/libjdagent.so
out=$build/bench/results
rounds=7 small=0 peer=0 jdk="" parts=()

usage() {
    sed -n 's/^# \{0,1\}//; 4,12p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --jdk) jdk=$2 && shift ;;
    --peer) peer=1 ;;
    --rounds) rounds=$2 && shift ;;
    --small) small=1 rounds=2 ;;
    -o) out=$2 && shift ;;
    replay | live | growth | writer | inject) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(replay live growth writer inject)
[ -n "$jdk" ] || jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")

fail() {
    echo "bench: $*" >&2
    exit 1
}
progress() {
    echo "bench: $*" >&2
}
[ -x "$jdk/bin/javac" ] || fail "no JDK at '$jdk'"
for needed in "$agent" "$jdtool" "$build/bench/writer_bench"; do
    [ -e "$needed" ] || fail "not built: $needed"
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/jdagent-bench.XXXXXX")
jvm=""
finish() {
    [ -z "$jvm" ] || kill -KILL "$jvm" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
mkdir -p "$out"
results=$out/results.tsv
: >"$results"

# result WHAT WHO VALUE: one measurement; several of the same become a median.
result() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$results"
}

# perf's own agent, out of the kernel's sources.
build_peer() {
    local archive=/usr/src/linux-source-6.1.tar.xz root=linux-source-6.1/tools
    [ -e "$archive" ] || fail "--peer needs $archive (Debian: linux-source-6.1)"
    peer_agent=$build/bench/libperf-jvmti.so
    [ -e "$peer_agent" ] && return
    progress "building perf's own agent"
    mkdir -p "$scratch/src"
    tar -C "$scratch/src" -xf "$archive" $root/perf/jvmti $root/perf/util/jitdump.h $root/lib/string.c \
        $root/lib/ctype.c $root/include
    (
        cd "$scratch/src/$root"
        gcc -O2 -g -fPIC -shared -D_GNU_SOURCE -DHAVE_GETTID -DHAVE_JVMTI_CMLR -w -Iinclude -Iperf/util -Iperf \
            -I"$jdk/include" -I"$jdk/include/linux" perf/jvmti/jvmti_agent.c perf/jvmti/libjvmti.c \
            lib/string.c lib/ctype.c -o "$peer_agent"
    ) || fail "perf's own agent does not build"
}

# The workload: java.xml out of the JDK's src.zip, or a part of it.
sources() {
    local zip=$jdk/lib/src.zip major
    major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$jdk/release")
    [ -e "$zip" ] || zip=/usr/lib/jvm/openjdk-$major/lib/src.zip
    [ -e "$zip" ] || fail "no src.zip of JDK $major (Debian: openjdk-$major-source)"
    [ -d "$scratch/java.xml" ] || (cd "$scratch" && "$jdk/bin/jar" xf "$(readlink -f "$zip")" java.xml)
    root=$scratch/java.xml
    if [ "$small" = 1 ]; then
        local part=com/sun/org/apache/xerces/internal/util
        mkdir -p "$scratch/part/$part"
        cp -r "$root/$part/." "$scratch/part/$part"
        root=$scratch/part
    fi
    find "$root" -name '*.java' >"$scratch/files"
    mkdir -p "$scratch/out" "$scratch/classes"
}

# start_jvm FLAG... : a JVM in the background that prints "idle" when it is ready to be looked at.
start_jvm() {
    JITDUMPDIR=$scratch/peer "$jdk/bin/java" -XX:+EnableDynamicAgentLoading "$@" >"$scratch/jvm.out" 2>"$scratch/jvm.err" &
    jvm=$!
    until grep -q '^idle' "$scratch/jvm.out"; do
        kill -0 "$jvm" 2>/dev/null || fail "the JVM failed: $(cat "$scratch/jvm.err")"
        sleep 0.2
    done
    sleep 2 # the compiler's queue and the deferred events
}
stop_jvm() {
    kill -KILL "$jvm" 2>/dev/null || true
    wait "$jvm" 2>/dev/null || true
    jvm=""
}

# load LIBRARY OPTIONS: into the JVM.
load() {
    if command -v jattach >/dev/null; then
        jattach "$jvm" load "$1" true "$2" >"$scratch/attach.out" 2>&1
    else
        "$jdk/bin/jcmd" "$jvm" JVMTI.agent_load "$1" "\"$2\"" >"$scratch/attach.out" 2>&1
    fi || fail "attaching $1: $(cat "$scratch/attach.out" "$scratch/jvm.err")"
}

# replays WHAT: in the JVM that runs, everything that is there described anew by each agent in turn.
replays() {
    local what=$1 round size
    rm -rf "$scratch/sizes" && mkdir "$scratch/sizes"
    load "$agent" "start,dir=$scratch/sizes"
    load "$agent" stop
    cp "$scratch"/sizes/jit-*.dump "$scratch/sizes.dump"
    size=$(stat -c %s "$scratch/sizes.dump")
    result "$what bytes of the dump" jdagent "$size"
    events=$("$jdtool" stat --json "$scratch/sizes.dump" | sed -n 's/.*"LOAD": *{"count": *\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$events" ] || events=$("$jdtool" stat "$scratch/sizes.dump" | awk '$1 == "LOAD" { print $2; exit }')
    result "$what events" jdagent "$events"
    result "$what bytes of code" jdagent "$("$jdtool" stat "$scratch/sizes.dump" | awk '/bytes of code/ { print $NF }')"
    for ((round = 0; round < rounds; round++)); do
        : >"$scratch/times"
        load "$build/bench/libbench-driver.so" "$scratch/times,floor,$build/bench/libbench-floor.so,1,"
        load "$build/bench/libbench-driver.so" \
            "$scratch/times,limit,$build/bench/libbench-floor.so,1,$scratch/sizes.dump,$scratch/limit"
        rm -f "$scratch/limit" "$scratch"/sizes/*.dump
        load "$build/bench/libbench-driver.so" "$scratch/times,jdagent,$agent,1,start,dir=$scratch/sizes"
        if [ "$peer" = 1 ]; then
            rm -rf "$scratch/peer" && mkdir "$scratch/peer"
            load "$build/bench/libbench-driver.so" "$scratch/times,perf,$peer_agent,1,"
            [ "$round" -gt 0 ] ||
                result "$what bytes of the dump" perf "$(find "$scratch/peer" -name 'jit-*.dump' -printf '%s\n' | sort -n | tail -n 1)"
        fi
        while read -r who wall cpu; do
            result "$what wall us" "$who" "$wall"
            result "$what cpu us" "$who" "$cpu"
        done <"$scratch/times"
    done
}

part_replay() {
    "$jdk/bin/javac" -nowarn -d "$scratch/classes" "$here/../java-tests/programs/Warm.java"
    local flags
    for flags in "" "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"; do
        local what="replay"
        [ -z "$flags" ] || what="replay, DebugNonSafepoints,"
        progress "$what"
        # shellcheck disable=SC2086 # several flags
        start_jvm $flags -cp "$scratch/classes" Warm "$root" "$scratch/out" 3600 2
        replays "$what"
        stop_jvm
    done
}

part_live() {
    local round who
    declare -A flag=([none]="" [floor]="-J-agentpath:$build/bench/libbench-floor.so"
        [jdagent]="-J-agentpath:$agent=dir=$scratch/live")
    [ "$peer" = 0 ] || flag[perf]="-J-agentpath:$build/bench/libperf-jvmti.so"
    for ((round = 0; round < rounds; round++)); do
        for who in none floor jdagent perf; do
            [ -n "${flag[$who]+set}" ] || continue
            progress "live: round $((round + 1)) of $rounds, $who"
            rm -rf "$scratch/live" "$scratch/peer" && mkdir "$scratch/live" "$scratch/peer"
            run_javac "${flag[$who]}"
            result "live javac cpu s" "$who" "$cpu"
            result "live javac wall s" "$who" "$wall"
            result "live Service Thread ms" "$who" "$service"
            if [ "$who" = jdagent ] && [ "$round" = 0 ]; then
                result "live bytes of the dump" jdagent "$(cat "$scratch"/live/*.dump | wc -c)"
            elif [ "$who" = perf ] && [ "$round" = 0 ]; then
                result "live bytes of the dump" perf "$(find "$scratch/peer" -name 'jit-*.dump' -exec cat {} + | wc -c)"
            fi
        done
    done
}

# run_javac FLAG: javac over the workload; sets wall and cpu (seconds) and service (the CPU time, in
# ms, of the thread on which HotSpot calls agents, as last seen before the end).
run_javac() {
    local flag=$1 file name task="" seen
    TIMEFORMAT='%R %U %S'
    {
        time env JITDUMPDIR="$scratch/peer" "$jdk/bin/javac" ${flag:+"$flag"} -nowarn -Xlint:none -XDignore.symbol.file \
            -d "$scratch/out" --patch-module "java.xml=$root" "@$scratch/files" >"$scratch/run.out" 2>&1
    } 2>"$scratch/run.time" &
    local runner=$!
    service=0
    while kill -0 "$runner" 2>/dev/null; do
        if [ -z "$task" ]; then
            for file in $(pgrep -P "$runner" | sed 's|.*|/proc/&/task/*/comm|'); do
                name=$(cat "$file" 2>/dev/null) || continue
                [ "$name" != "Service Thread" ] || task=$(dirname "$file")
            done
        elif seen=$(cut -d ' ' -f 1 "$task/schedstat" 2>/dev/null); then
            [ -z "$seen" ] || service=$((seen / 1000))
        fi
        sleep 0.1
    done
    wait "$runner" || fail "javac failed: $(tail -n 3 "$scratch/run.out")"
    read -r wall user system <"$scratch/run.time"
    cpu=$(awk "BEGIN { print $user + $system }")
    service=$(awk "BEGIN { print $service / 1000 }")
}

part_growth() {
    local copies i flags
    {
        echo "public class Many_xxxxxx {"
        for ((i = 0; i < 500; i++)); do
            echo "    static int m$i(int a) { int b = a * $((i + 3)); for (int i = 0; i < 3; i++) {"
            echo "        b ^= a >> i;"
            echo "    }"
            echo "    return b; }"
        done
        echo "    public static int all(int a) { int sum = 0;"
        for ((i = 0; i < 500; i++)); do
            echo "        sum += m$i(sum + a);"
        done
        echo "        return sum; }"
        echo "}"
    } >"$scratch/Many_xxxxxx.java"
    "$jdk/bin/javac" -nowarn -d "$scratch/classes" "$here/programs/Many.java" "$scratch/Many_xxxxxx.java"
    local sizes=(2 20 200)
    [ "$small" = 0 ] || sizes=(2)
    for copies in "${sizes[@]}"; do
        progress "growth: $((copies * 500)) methods"
        start_jvm -Xcomp -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m \
            '-XX:CompileCommand=quiet' '-XX:CompileCommand=compileonly,Many_*::m*' \
            '-XX:CompileCommand=dontinline,Many_*::m*' -cp "$scratch/classes" Many "$copies"
        replays "growth, $((copies * 500)) methods,"
        stop_jvm
    done
}

part_writer() {
    local threads records=60000 methods round
    [ "$small" = 0 ] || records=6000
    mkdir -p "$scratch/writer"
    for ((round = 0; round < rounds; round++)); do
        for threads in 1 2 4 8; do
            for methods in 1000 "$records"; do
                local written seconds bytes
                read -r written seconds bytes < <("$build/bench/writer_bench" "$scratch/writer" $records $threads "$methods")
                rm -f "$scratch"/writer/*.dump
                result "writer, $threads threads, $methods methods, records/s" jdagent \
                    "$(awk "BEGIN { printf \"%.0f\", $written / $seconds }")"
                [ "$round" -gt 0 ] || [ "$threads" -gt 1 ] ||
                    result "writer, $methods methods, bytes a record" jdagent "$((bytes / written))"
            done
        done
    done
    command -v valgrind >/dev/null || return 0
    progress "writer: instructions a record"
    local few many
    few=$(instructions 1000)
    many=$(instructions 3000)
    result "writer instructions a record" jdagent "$(((many - few) / 2000))"
}
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/bench/writer_bench" "$scratch/writer" "$1" 1 500 \
        2>&1 >/dev/null | sed -n 's/.*Collected : //p'
    rm -f "$scratch"/writer/*.dump
}

# timed WHAT WHO COMMAND...: its wall time in seconds.
timed() {
    local what=$1 who=$2 start
    shift 2
    start=${EPOCHREALTIME/./}
    "$@" >"$scratch/run.out" 2>"$scratch/run.err" || fail "$what, $who: $(tail -n 3 "$scratch/run.err")"
    result "$what s" "$who" "$(awk "BEGIN { print (${EPOCHREALTIME/./} - $start) / 1e6 }")"
}

part_inject() {
    if ! command -v perf >/dev/null; then
        progress "inject: left out, perf is not installed"
        return
    fi
    local blobs dir sizes=(8000 24000 100000) times=3 round
    [ "$small" = 0 ] || sizes=(500)
    for blobs in "${sizes[@]}"; do
        progress "inject: $blobs blobs"
        dir=$scratch/inject
        rm -rf "$dir" && mkdir -p "$dir/theirs" "$dir/ours"
        if ! perf record -q -o "$dir/perf.data" -e cpu-clock -F 2999 -k mono -g -- \
            "$build/bench/synthetic" "$dir" "$blobs" 4 >"$scratch/run.out" 2>&1; then
            progress "inject: left out, perf cannot record here: $(tail -n 1 "$scratch/run.out")"
            return
        fi
        [ "$blobs" -lt 50000 ] || times=1
        for ((round = 0; round < times && round < rounds; round++)); do
            rm -rf "$dir/theirs" "$dir/ours" "$dir"/jitted-*.so && mkdir "$dir/theirs" "$dir/ours"
            timed "inject $blobs" jdtool "$jdtool" inject -q -i "$dir/perf.data" -o "$dir/ours/perf.jit.data"
            timed "inject $blobs, all code," jdtool \
                "$jdtool" inject -q --keep-all -i "$dir/perf.data" -o "$dir/ours/all.jit.data"
            rm -f "$dir"/ours/all*
            timed "inject $blobs" perf perf --buildid-dir "$dir/theirs" inject --jit -i "$dir/perf.data" -o "$dir/theirs/perf.jit.data"
        done
        result "inject $blobs, files" jdtool "$(find "$dir/ours" -type f | wc -l)"
        result "inject $blobs, bytes" jdtool "$(du -sb "$dir/ours" | cut -f 1)"
        result "inject $blobs, files" perf "$(find "$dir/theirs" "$dir"/jitted-*.so 2>/dev/null | wc -l)"
        result "inject $blobs, bytes" perf "$(find "$dir/theirs" "$dir"/jitted-*.so -type f -printf '%s\n' 2>/dev/null | awk '{ n += $1 } END { print n + 0 }')"
        local who
        for who in ours theirs; do
            local name=jdtool
            [ $who = ours ] || name=perf
            for ((round = 0; round < 3 && round < rounds; round++)); do
                timed "report after inject $blobs" $name perf --buildid-dir "$dir/$who" report --stdio -g none -i "$dir/$who/perf.jit.data"
                timed "script after inject $blobs" $name perf --buildid-dir "$dir/$who" script -i "$dir/$who/perf.jit.data"
            done
        done
    done
    rm -rf "$scratch/inject"
}

[ "$peer" = 0 ] || build_peer
for part in "${parts[@]}"; do
    case $part in
    replay | live) [ -n "${root:-}" ] || sources ;;
    *) mkdir -p "$scratch/classes" ;;
    esac
    "part_$part"
done

awk -F '\t' -v json="$out/results.json" -f "$here/table.awk" "$results" | tee "$out/table.txt"
