#!/usr/bin/env bash
# Stacks from the JVM's start are complete, although HotSpot leaves a page of them untouched.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf

mkdir -p "$scratch/classes"
cat >"$scratch/Hello.java" <<'JAVA'
public class Hello {
    public static void main(String[] arguments) {
        System.out.println("Hello");
    }
}
JAVA
"$jdk/bin/javac" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -d "$scratch/classes" "$scratch/Hello.java"

# A start has few samples: of several.
for ((run = 0; run < 4; run++)); do
    "$jdperf" record -o "$scratch/p" -F 1999 --stacks dwarf -e cpu-clock -- "$jdk/bin/java" -cp "$scratch/classes" Hello \
        >"$scratch/log" 2>&1 || [ $? = 3 ] || fail "$(tail -n 3 "$scratch/log")"
    perf script -f -i "$scratch/p/perf.jit.data" --max-stack 1000 --no-inline -F ip,sym 2>/dev/null
done >"$scratch/samples"
read -r all lost < <(awk '
    NF { last = $2; next }
    { all++; lost += last == "Threads::create_vm"; last = "" }
    END { print all + 0, lost + 0 }' "$scratch/samples")
note "$all samples, $lost of which end in the JVM's creation"
[ "$all" -ge 100 ] || fail "only $all samples"
[ $((lost * 100)) -le $((all * 10)) ] || fail "$lost of $all stacks end in the JVM's creation"

# Nor does a program wait for the table of all methods there are: its own first class is told of before them, on some
# start of these where the processors are busy. What its event has told of is not found once more, but in the moment
# between the listing of classes and the event.
late=0 doubled=0
for ((run = 0; run < 20 && (run < 5 || late < 50); run++)); do
    rm -rf "$scratch/table"
    mkdir "$scratch/table"
    "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/table,methods=on" -cp "$scratch/classes" Hello >"$scratch/log" 2>&1 ||
        fail "$(tail -n 3 "$scratch/log")"
    read -r found twice < <(python3 "$tests_dir/readers/methods_table.py" "$scratch"/table/*.methods)
    late=$((found > late ? found : late)) doubled=$((doubled + (twice > 0)))
done
note "the table tells of $late classes after the program's first; in $doubled of $run it tells of a class twice"
[ "$late" -ge 50 ] || fail "the table was always there before the program's first class"
[ $((doubled * 2)) -lt "$run" ] || fail "tables tell of classes twice"
