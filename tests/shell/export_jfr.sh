#!/usr/bin/env bash
# The jfr tool of each JDK reads a .jfr export; with JDAGENT_LONG=1 also JDK Mission Control's parser and jfrconv. Each
# tells our collapsed stacks and weights to the unit.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v python3 >/dev/null || skip "python3 is not installed"
compile_sample
readers=$SOURCE/tests/exports/jfr_readers.py

# A recording of allocations and exceptions; root alone has waits and the JVM's activity.
more=()
told=(cpu=jdk.ExecutionSample alloc=jdk.ObjectAllocationSample exception=jdk.JavaExceptionThrow alloc=weight:jdk.ObjectAllocationSample)
if ((EUID == 0)) && "$JDPERF" record -o tried --off-cpu --timeline --no-inject -- true >/dev/null 2>&1; then
    more=(--off-cpu --timeline)
    told+=(off-cpu=jdagent.OffCPU off-cpu=weight:jdagent.OffCPU)
fi
run 0 "$JDPERF" record -o p -o now.jfr --alloc --exceptions "${more[@]}" --threads -- java -cp classes Market 2
p=$PWD/now.jfr
comparisons=()
for pair in "${told[@]}"; do
    event=${pair%%=*} weights=()
    [[ $pair != *weight:* ]] || weights=(--weights)
    file=${pair//[=:]/.}
    [[ $event != cpu ]] || event=cpu-clock
    run 0 "$JDAGENT_BUILD/jdtool" export -i p --event "$event" "${weights[@]}" --format collapsed -o "$file"
    comparisons+=("$file=${pair#*=}")
done

quick=(-J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC) # with what a short life wants
tried=0
for jfr in /usr/lib/jvm/*/bin/jfr; do
    [[ -x $jfr && ! -L ${jfr%/bin/jfr} ]] || continue
    tried=$((tried + 1))
    run 0 "$jfr" summary "${quick[@]}" "$p"
    says jdk.ExecutionSample
    run 0 "$jfr" print "${quick[@]}" --json --stack-depth 5000 "$p"
    mv output printed.json
    run 0 python3 "$readers" print printed.json "${comparisons[@]}"
    cat output
    run 0 "$jfr" print "${quick[@]}" --events Compilation,GCPhasePause,ThreadStart,CPULoad,ActiveSetting,JVMInformation,jdagent.Recording "$p"
    ((!${#more[@]})) || says 'jdk.Compilation {'
    "$jfr" help view >view.help 2>&1 || continue
    # Of what is in it views find each event and field that they ask for; all of them by one JVM. What else there is
    # they do not find.
    run 0 "$jfr" view "${quick[@]}" --width 160 all-views "$p"
    says "Can't find event type named"
    ! grep "Can't find" output | grep -v "'jdk\.Shutdown\." | grep -E '\b(ExecutionSample|NativeMethodSample|ObjectAllocationSample|CPULoad|ActiveSetting|JVMInformation|Compilation|Deoptimization|GCPhasePause|ExecuteVMOperation|Java(Exception|Error)Throw|JavaMonitorEnter)\b' ||
        fail "a view does not find what is there"
    run 0 "$jfr" view "${quick[@]}" --width 160 hot-methods "$p"
    says 'Market.drift(double, int)'
done
((tried)) || skip "no JDK has jfr"
# It can fail: a stack less.
sed '1d' "${comparisons[0]%%=*}" >less
run 1 python3 "$readers" print printed.json less

# Locks, labels as fields, whole names of threads, and which of them is virtual: of the newest JDK.
newest=$(printf '%s\n' /usr/lib/jvm/*/bin/jfr | sort -V | tail -n 1)
jar=$JDAGENT_BUILD/jdagent-labels.jar
if ((${#more[@]})) && part "locks and labels" test -e "$jar"; then
    cat >Held.java <<'END'
import io.jdagent.Labels;

/** Two threads with labels and long names, and a virtual one, that wait for one monitor by turns. */
public final class Held {
    static synchronized void hold() {
        long end = System.nanoTime() + 5_000_000L;
        while (System.nanoTime() < end) {
            Thread.onSpinWait();
        }
    }

    static Runnable shop(String name, long end) {
        return () -> {
            Labels.set(Labels.of("shop.name", name));
            while (System.nanoTime() < end) {
                hold();
                Thread.yield();
            }
        };
    }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + 2_000_000_000L;
        new Thread(shop("north", end), "order-processing-worker-north").start();
        new Thread(shop("south", end), "order-processing-worker-south").start();
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder");
            type.getMethod("name", String.class).invoke(builder, "visitor-of-the-online-shop");
            type.getMethod("start", Runnable.class).invoke(builder, shop("online", end));
        } catch (NoSuchMethodException e) {
            System.out.println("no virtual threads");
        }
    }
}
END
    run 0 "${newest%jfr}javac" "${quick[@]}" -nowarn -cp "$jar" -d held Held.java
    run 0 "$JDPERF" record -o l -o locks.jfr --locks=1ms --threads -- "${newest%jfr}java" -cp "held:$jar" Held
    virtual=yes
    ! grep -q 'no virtual threads' output || virtual=no
    run 0 "$JDAGENT_BUILD/jdtool" export -i l --event lock --format collapsed -o lock
    run 0 "$JDAGENT_BUILD/jdtool" export -i l --event lock --weights --format collapsed -o lock.weight
    run 0 "$newest" print "${quick[@]}" --json --stack-depth 5000 locks.jfr
    mv output printed.json
    run 0 python3 "$readers" print printed.json lock=jdk.JavaMonitorEnter lock.weight=weight:jdk.JavaMonitorEnter
    cat output
    run 0 python3 "$readers" labels printed.json label_shop_name "$virtual"
    cat output
fi

# The other way round: the JVM's own recording beside the samples, as the JDK's jfr prints it.
for java in /usr/lib/jvm/*/bin/java; do
    jfr=${java%java}jfr
    [[ -x $jfr && ! -L ${jfr%/bin/jfr} ]] || continue
    rm -rf q own.jfr
    run 0 "$JDPERF" record -o q --jfr own.jfr -- "$java" -XX:StartFlightRecording=filename=own.jfr,settings=profile -Xmn1m -cp classes Market 1
    run 0 "$jfr" print "${quick[@]}" --json --events GarbageCollection,GCPhasePause,ThreadStart,Deoptimization own.jfr
    mv output printed.json
    run 0 "$JDPERF" timeline q --json -o timeline.json
    run 0 python3 "$readers" joined printed.json timeline.json
    cat output
    run 0 "$JDPERF" timeline q
    says "Events of the JVM's own recording (JFR):"
    # It can be joined later, too, and is markers of the Firefox Profiler: of one JDK, since it is read as above.
    [[ ! -e firefox.json ]] || continue
    run 0 "$JDPERF" record -o q -- "$java" -XX:StartFlightRecording=filename=own.jfr,settings=profile -Xmn4m -cp classes Market 1
    run 0 "$JDPERF" export q firefox --jfr own.jfr -o firefox.json
    run 0 python3 - firefox.json <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
names = {profile["shared"]["stringArray"][name] if "shared" in profile else thread["stringArray"][name]
         for thread in profile["threads"] for name in thread["markers"]["name"]}
assert {"GarbageCollection", "GCPhasePause"} <= names, names
END
    run 0 "$JDPERF" timeline q --jfr "$p"
    says 'has no events of the recorded JVMs and time'
    head -c 5000 own.jfr >torn.jfr
    run 0 "$JDPERF" timeline q --jfr torn.jfr
    says 'not a complete recording of a JVM'
done

[[ ${JDAGENT_LONG:-} == 1 ]] || exit 0
command -v mvn >/dev/null || skip "mvn is not installed, which fetches JMC's parser and jfrconv"
cat >pom.xml <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>t</groupId><artifactId>t</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.openjdk.jmc</groupId><artifactId>flightrecorder</artifactId><version>9.1.1</version></dependency>
    <dependency><groupId>tools.profiler</groupId><artifactId>jfr-converter</artifactId><version>4.1</version></dependency>
  </dependencies>
</project>
END
mvn -q -B dependency:copy-dependencies -DoutputDirectory="$PWD/jars" >mvn.log 2>&1 || skip "mvn cannot fetch the readers: $(tail -1 mvn.log)"
javac -cp 'jars/*' -d jmc "$SOURCE/tests/exports/JmcStacks.java"
java -cp 'jmc:jars/*' JmcStacks "$p" >lines 2>jmc.log || fail "JMC's parser: $(cat jmc.log)"
run 0 python3 "$readers" jmc lines "${comparisons[@]}"
cat output
run 0 java -jar jars/jfr-converter-4.1.jar --dot -o collapsed "$p" stacks
run 0 python3 "$readers" jfrconv stacks "${comparisons[0]%%=*}"
cat output
run 0 java -jar jars/jfr-converter-4.1.jar --dot --alloc --total -o collapsed "$p" bytes
[[ $(awk '{ sum += $NF } END { print sum }' bytes) == $(awk '{ sum += $NF } END { print sum }' alloc.weight.jdk.ObjectAllocationSample) ]] ||
    fail "jfrconv counts other bytes"
