#!/usr/bin/env bash
# Jitdump, perf map, Intel's API and samply's records of javac agree on methods, lines and inlined frames. Plain perf
# names javac's samples by the map. JDAGENT_LONG=1: the inlined frames that jdtool puts into javac's call chains, too, are
# those that HotSpot reported to the oracle in the same JVM (inlined_frames.sh).
source "$(dirname "$0")/lib.sh"
begin "$@"
command -v python3 >/dev/null || skip "python3 is not installed"
javac_workload

collector=$build/tests/libitt_collector.so
[ -e "$collector" ] || fail "not built: $collector"
options=mode=jitdump+map+itt,dir=$scratch,samply=on
flags=(-XX:+PreserveFramePointer -XX:+PrintCodeCache)
[ "$long" = 0 ] || flags+=("-agentpath:$oracle=$scratch/oracle")
jvm_flags "${flags[@]}" "-agentpath:$agent=$options"
recorder=()
! (need_perf) >/dev/null || recorder=(perf_record -k mono -e cpu-clock -F 997 -g -o "$scratch/perf.data" --)
INTEL_JIT_PROFILER64=$collector JD_ITT_LOG=$scratch/itt.log \
    "${recorder[@]}" "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$scratch/log" 2>&1 ||
    fail "javac failed: $(tail -n 3 "$scratch/log")"
dump=$(the_dump "$scratch")
verify "$dump"

map=/tmp/perf-$(basename "$dump" .dump | tr -dc 0-9).map
[ -f "$map" ] || fail "no $map"
trap 'rm -f "$map"; finish' EXIT
overlaps "$map"
if ((${#recorder[@]})); then
    read -r total named < <(leaf_names "$scratch/perf.data" "$scratch/log")
    claim "javac, perf map: named" "$(share "$named" "$total") of $total"
    [ "$total" -ge 1000 ] || fail "only $total samples in generated code"
    at_least "$named" "$total" 99 || fail "less than 99 % named by the map"
    mv "$map" "$scratch/map" # or perf would have two sources of names
    [ "$long" = 0 ] || inlined_as_reported "$scratch"
fi

said=$(python3 "$tests_dir/readers/itt.py" "$scratch/itt.log" "$dump") || fail "the collector: $said"
note "collector: $said"
read -r loads trees regions _ <<<"$(tr -cs 0-9 ' ' <<<"$said")"
[[ $loads -gt 3000 && $trees -gt 3000 && $regions -gt 20000 ]] || fail "too little to count: $said"

# Sources of the compiler's classes; of the other half of what runs, the JDK's base, some classes.
src_zip=$jdk/lib/src.zip
[ -e "$src_zip" ] || src_zip=/usr/lib/jvm/openjdk-$jdk_major/lib/src.zip
quick=(-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC) # with what a short life wants
(mkdir "$scratch/sources" && cd "$scratch/sources" && "$jdk/bin/jar" "${quick[@]}" xf "$src_zip" jdk.compiler)
listed=(java.util.HashMap java.util.Arrays java.lang.String java.lang.StringLatin1)
mkdir "$scratch/base"
if [ -e "$jdk/jmods/java.base.jmod" ]; then
    base=$jdk/jmods/java.base.jmod
else # of a JDK without jmods
    base=$scratch/base
    (cd "$base" && "$jdk/bin/jimage" extract --include "regex:/java.base/java/(util/HashMap|util/Arrays|lang/String|lang/StringLatin1).class" "$jdk/lib/modules")
fi
"$jdtool" convert --samply --source-path "$scratch/sources/jdk.compiler:$base" "$dump" -o "$scratch/sources.dump" ||
    fail "sources for samply"
dump=$scratch/sources.dump
verify "$dump"
mkdir "$scratch/embedded"
said=$(python3 "$tests_dir/readers/samply.py" "$dump" "$scratch/embedded") || fail "samply's records: $said"
note "samply's records: $said"
for word in C1 C2 Stub; do
    [[ $said =~ [1-9][0-9]*\ $word ]] || fail "no code of tier $word: $said"
done
[[ $said =~ [1-9][0-9]*\ sources\ of\ [1-9] ]] || fail "no source was embedded: $said"

# What had a source came with it, to the byte; what had none came as its bytecodes.
tokenizer=com/sun/tools/javac/parser/JavaTokenizer.java
cmp "$scratch/sources/jdk.compiler/$tokenizer" "$scratch/embedded/${tokenizer//\//.}" ||
    fail "the embedded source is another one"
for class in "${listed[@]}"; do
    "$jdk/bin/javap" "${quick[@]}" -c -p -s -l "$class" >"$scratch/javap"
    said=$(python3 "$tests_dir/readers/listings.py" "$class" "$scratch/javap" \
        "$scratch/embedded/$class.bytecode") || fail "listings of $class: $said"
    note "listings of $class: $said"
done

# Without a collector: one message, and the rest goes on.
mkdir "$scratch/alone"
env -u INTEL_JIT_PROFILER64 "$jdk/bin/java" "-agentpath:$agent=mode=jitdump+itt,dir=$scratch/alone" \
    -version >"$scratch/alone/out" 2>&1 || fail "the JVM did not start without a collector"
[ "$(grep -c '^jdagent: ' "$scratch/alone/out")" -eq 1 ] ||
    fail "without a collector: $(grep '^jdagent: ' "$scratch/alone/out")"
verify "$(the_dump "$scratch/alone")"
INTEL_JIT_PROFILER64=/nonexistent.so "$jdk/bin/java" "-agentpath:$agent=mode=itt" -version \
    >"$scratch/alone/out" 2>&1 || fail "the JVM did not start with a collector that is not there"
grep '^jdagent: ' "$scratch/alone/out"

# Attached to a JVM at work: what it replays and what follows live is the same in both.
compile
mkdir "$scratch/attached"
INTEL_JIT_PROFILER64=$collector JD_ITT_LOG=$scratch/attached/log \
    "$jdk/bin/java" -cp "$classes" Streams 600 >/dev/null 2>&1 &
pid=$!
children+=("$pid")
wait_until 60 "JVM that listens" listens "$pid"
wait_until 60 "program at work" has_worked "$pid" 3
attach "$pid" "mode=jitdump+itt,dir=$scratch/attached,samply=on" >"$scratch/said" ||
    fail "attach: $(cat "$scratch/said")"
works_on "$pid" 2000
attach "$pid" stop >"$scratch/said" || fail "stop: $(cat "$scratch/said")"
kill -KILL "$pid" # what follows reads files
dump=$(the_dump "$scratch/attached")
verify "$dump"
said=$(python3 "$tests_dir/readers/itt.py" "$scratch/attached/log" "$dump") || fail "attached: $said"
note "attached, collector: $said"
said=$(python3 "$tests_dir/readers/samply.py" "$dump") || fail "attached: $said"
note "attached, samply's records: $said"
