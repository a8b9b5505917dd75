#!/usr/bin/env bash
# Whole stacks without frame pointers: of a recording with stack copies, unwound by jdtool inject and
# by perf's own unwinder after jdtool unwind. And the frames that this is built on.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile DeepChain
check=$build/java-tests/stack-check

# record NAME COMMAND...: into $scratch/NAME.
record() {
    local dir=$scratch/$1
    shift
    mkdir -p "$dir"
    perf_record -k mono -e cpu-clock -F 499 --call-graph dwarf,65528 -o "$dir/perf.data" -- \
        "$@" >"$dir/log" 2>&1 || fail "perf record $*: $(tail -n 3 "$dir/log")"
}

# rooted NAME PERCENT: of the stacks with Java frames that the kernel did not cut off (it copies
# them up to the first page that was never touched; while the JVM starts, there is one).
rooted() {
    local all root cut
    read -r all root cut < <("$check" ends "$scratch/$1/perf.data")
    note "$1: $root of $((all - cut)) stacks reach the root ($(share "$root" $((all - cut)))), $cut cut by the kernel"
    at_least "$root" $((all - cut)) "$2" || fail "$1: too few stacks reach the root"
}

# chains DATA: of the samples in m35, how many there are, and how many show the whole chain.
chains() {
    perf --buildid-dir "$scratch/buildid" script --no-inline --max-stack 1000 -i "$1" -F ip,sym \
        2>/dev/null | sed 's/ (inlined)//; s/+0x[0-9a-f]*$//' | awk '
        function judge(  i, n, want) {
            if (stack ~ /^ DeepChain\.m35\(long\) /) {
                all++
                want = ""
                for (i = 35; i >= 0; i--) want = want sprintf(" DeepChain.m%02d(long)", i)
                if (index(stack " ", want " DeepChain.main(java.lang.String[])") == 1) exact++
            }
            stack = ""
        }
        NF == 0 { judge(); next }
        { stack = stack " " $2 }
        END { judge(); print all + 0, exact + 0 }'
}

deep=$scratch/deep
record deep "$jdk/bin/java" -XX:MaxInlineLevel=0 -XX:-Inline "-agentpath:$agent=dir=$deep,methods=on" \
    -cp "$classes" DeepChain 6
rooted deep 99.5
"$jdtool" inject -q -i "$deep/perf.data" -o "$deep/once.data" || fail "jdtool inject"
read -r all exact < <(chains "$deep/once.data")
note "deep: $exact of $all chains exactly the program's"
[ "$all" -gt 200 ] || fail "only $all samples in the chain's end"
[ "$all" -eq "$exact" ] || fail "not every chain is the program's"
raw=$(stat -c %s "$deep/perf.data")
result=$(stat -c %s "$deep/once.data")
note "deep: $raw bytes became $result ($(share "$result" "$raw"))"
at_least "$raw" "$result" 3333 || fail "the result is more than 3 % of the recording"
if perf script -i "$deep/once.data" -F ip 2>&1 | grep -q 'stack.*unwind\|libunwind'; then
    fail "the result still has stacks to unwind"
fi

# perf's own way, with the information put into the dump.
dump=$(the_dump "$deep")
"$jdtool" unwind "$dump" -o "$dump" >"$scratch/unwind.log" || fail "jdtool unwind"
verify "$dump"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$deep/perf.data" -o "$deep/stock.data" \
    >"$scratch/inject.log" 2>&1 || fail "perf inject --jit: $(tail -n 1 "$scratch/inject.log")"
read -r all exact < <(chains "$deep/stock.data")
note "deep, unwound by perf: $exact of $all chains exactly the program's"
at_least "$exact" "$all" 97 || fail "perf's own unwinder does not get through"

# Frames of parked virtual threads are in the heap; those on the stack go on to the carrier's.
if [ "$jdk_major" -ge 21 ]; then
    compile VirtualThreads
    record virtual "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/virtual,methods=on" \
        -cp "$classes" VirtualThreads 5
    rooted virtual 98
fi

# The analysis, over javac.
javac_recording
"$check" frames "$(the_dump "$recording")" >"$scratch/frames" ||
    fail "the analysis does not agree with the JVM: $(head -n 5 "$scratch/frames")"
note "$(tail -n 1 "$scratch/frames")"
