#!/usr/bin/env bash
# The JMH profiler finds the region and the line that a benchmark is about, the same in a second run and the same as
# perfasm. Wrong options are told. Maven fetches JMH, so only with JDAGENT_LONG=1.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$long" = 1 ] || skip "long: fetches JMH and builds its profiler with Maven (JDAGENT_LONG=1)"
command -v mvn >/dev/null || skip "mvn is not installed (Debian: maven)"
need_perf

cp -r "$tests_dir/../jmh" "$scratch/jmh"
JAVA_HOME=$jdk mvn -q -B -f "$scratch/jmh" clean package >"$scratch/log" 2>&1 ||
    skip "Maven cannot build jmh-jdagent: $(grep -m 1 ERROR "$scratch/log")"
cat >"$scratch/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>none</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-samples</artifactId>
<version>1.37</version></dependency></dependencies></project>
POM
mvn -q -B -f "$scratch" dependency:build-classpath "-Dmdep.outputFile=$scratch/path" >"$scratch/log" 2>&1 ||
    skip "Maven cannot fetch jmh-samples: $(grep -m 1 ERROR "$scratch/log")"
jar=("$scratch"/jmh/target/jmh-jdagent-*.jar)
hsdis=${JDAGENT_HSDIS:-$build/java-tests/hsdis} # where the JVM looks for it: in LD_LIBRARY_PATH

# benchmark NAME PROFILER: its output in $scratch/out.
benchmark() {
    LD_LIBRARY_PATH=$hsdis JDAGENT_HOME=$build "$jdk/bin/java" -cp "${jar[0]}:$(cat "$scratch/path")" org.openjdk.jmh.Main \
        "org.openjdk.jmh.samples.$1\$" -f 1 -wi 3 -w 2 -i 3 -r 1 -foe true -prof "$2" \
        >"$scratch/out" 2>&1
}

# hottest WHAT: the first entry below "Hottest WHAT:", with its percentage in front.
hottest() {
    sed -n "/^Hottest $1:/{n;s/^ *//;p;q}" "$scratch/out"
}

if benchmark JMHSample_08_DeadCode.measureRight jdagent:frequence=99; then
    fail "a wrong option is taken"
fi
grep -q "unknown option 'frequence'" "$scratch/out" || fail "a wrong option is not named: $(tail -n 3 "$scratch/out")"

# Benchmark, what its hottest region is called, and its hottest line.
while read -r name region line; do
    for round in 1 2; do
        benchmark "$name" "jdagent:event=cpu-clock;top=1" || fail "$name failed: $(tail -n 5 "$scratch/out")"
        read -r share kind is _ < <(hottest regions | sed 's/%  / /; s/, OSR//')
        [[ $is == *"$region"* ]] || fail "$name, round $round: the hottest region is $is"
        [ "$kind" = C2 ] || fail "$name, round $round: the hottest region is of $kind"
        [[ $(hottest lines) == *"$line)"* ]] || fail "$name, round $round: the hottest line is $(hottest lines)"
        at_least "${share%.*}" 100 40 || fail "$name, round $round: only $share % there"
        grep -qE '^ +[0-9.]+%  0x[0-9a-f]+: [a-z]+ ' "$scratch/out" || fail "$name: no instruction with a share"
        grep -q 'jdagent.compiled' "$scratch/out" || fail "$name: no share of compiled code"
        note "$name: $(hottest regions | cut -c 1-90); $(hottest lines)"
        [ -e "$hsdis/hsdis-amd64.so" ] || continue
        benchmark "$name" perfasm:events=cpu-clock || fail "perfasm of $name failed: $(tail -n 5 "$scratch/out")"
        IFS=$'\t' read -r is where share < <(awk -f "$tests_dir/readers/perfasm.awk" "$scratch/out")
        note "perfasm: $is, $where with $share %"
        [[ $is == *"$region"* ]] || fail "$name, round $round: perfasm's hottest region is $is"
        [ "${where##*:}" = "${line##*:}" ] || fail "$name, round $round: perfasm's hottest line is $where"
    done
done <<'BENCHMARKS'
JMHSample_08_DeadCode.measureRight measureRight_avgt_jmhStub JMHSample_08_DeadCode_measureRight_jmhTest.java:192
JMHSample_11_Loops.measureWrong_1000 measureWrong_1000_avgt_jmhStub JMHSample_11_Loops.java:79
JMHSample_37_CacheAccess.colFirst JMHSample_37_CacheAccess.colFirst JMHSample_37_CacheAccess.java:79
BENCHMARKS

benchmark JMHSample_37_CacheAccess.rowFirst "jdagent:dir=$scratch/kept;export=collapsed;stacks=dwarf;flame" ||
    fail "export failed"
grep -q 'JMHSample_37_CacheAccess.rowFirst' "$scratch"/kept/*.fork1/profile.collapsed || fail "no stacks exported"
grep -q 'JMHSample_37_CacheAccess.rowFirst' "$scratch"/kept/*.fork1/flamegraph.html || fail "no flame graph"
benchmark JMHSample_37_CacheAccess.rowFirst "jdagent:event=context-switches;stacks=none" || fail "another event failed"
grep -q 'samples of context-switches in the measured iterations' "$scratch/out" || fail "no samples of another event"
