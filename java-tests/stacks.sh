#!/usr/bin/env bash
# Copied stacks are complete without frame pointers, unwound by jdtool and by perf. And the frames that this is built
# on.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile
check=$build/java-tests/stack-check

# record NAME COMMAND...: into $scratch/NAME.
record() {
    local dir=$scratch/$1
    shift
    mkdir -p "$dir"
    perf_record -k mono -e cpu-clock -F 997 --call-graph dwarf,65528 -o "$dir/perf.data" -- \
        "$@" >"$dir/log" 2>&1 || fail "perf record $*: $(tail -n 3 "$dir/log")"
}

# rooted NAME PERCENT: of the stacks with Java frames that the kernel did not cut off (it copies
# them up to the first page that was never touched; while the JVM starts, there is one).
rooted() {
    local all root cut
    read -r all root cut < <("$check" ends "$scratch/$1/perf.data")
    claim "stacks rooted, $1" "$(share "$root" $((all - cut))) of $((all - cut))"
    note "$1: $cut stacks cut by the kernel"
    at_least "$root" $((all - cut)) "$2" || fail "$1: too few stacks reach the root"
}

# chains DATA [WITHOUT]: of the samples in m35, how many there are, how many show the whole chain, and the
# times of those with interpreted frames into $scratch/interpreted. WITHOUT: leaves out samples of the times
# in this file.
chains() {
    perf --buildid-dir "$scratch/buildid" script --no-inline --max-stack 1000 --ns -i "$1" -F time,ip,sym \
        2>/dev/null | awk -v without="${2:-/dev/null}" -v times="$scratch/interpreted" '
        function judge(  i, n, want) {
            if (stack ~ /^ DeepChain\.m35\(long\) / && !(time in left_out)) {
                all++
                want = ""
                for (i = 35; i >= 0; i--) want = want sprintf(" DeepChain.m%02d(long)", i)
                if (index(stack " ", want " DeepChain.main(java.lang.String[])") == 1) exact++
                if (interpreted) print time >times
            }
            stack = ""
            interpreted = 0
        }
        BEGIN {
            printf "" >times
            while ((getline line <without) > 0) left_out[line] = 1
        }
        NF == 0 { judge(); next }
        $1 ~ /^[0-9]+\.[0-9]+:$/ { time = $1; next }
        / \(interpreted\)$/ { interpreted = 1 }
        { sub(/\+0x[0-9a-f]*$/, "", $2); stack = stack " " $2 }
        END { judge(); print all + 0, exact + 0 }'
}

# A perf that unwinds by libdw does so with dumps in /tmp alone, see jdtool/unwind/unwind_dump.c.
deep=$scratch/deep
dumps=$deep
case $(perf version --build-options 2>/dev/null | grep '^ *libunwind:') in
*OFF*) dumps=/tmp ;;
esac
record deep "$jdk/bin/java" -XX:MaxInlineLevel=0 -XX:-Inline "-agentpath:$agent=dir=$dumps,methods=on" \
    -cp "$classes" DeepChain 2
dump=$(perf script -i "$deep/perf.data" -F comm --show-mmap-events 2>/dev/null | grep -o '/[^ ]*jit-[0-9]*\.dump' | sort -u)
if [ "$dumps" = /tmp ]; then
    trap 'rm -f "${dump%.dump}".* "${dump%/*}/jitted-$(basename "$dump" .dump | tr -dc 0-9)"-*.so; finish' EXIT
fi
rooted deep 99.5
"$jdtool" inject -q -i "$deep/perf.data" -o "$deep/once.data" || fail "jdtool inject"
counts=$(chains "$deep/once.data")
read -r all exact <<<"$counts"
mv "$scratch/interpreted" "$scratch/before"
claim "deep chains exact" "$(share "$exact" "$all") of $all"
[ "$all" -gt 200 ] || fail "only $all samples in the chain's end"
[ "$all" -eq "$exact" ] || fail "not every chain is the program's"
raw=$(stat -c %s "$deep/perf.data")
result=$(stat -c %s "$deep/once.data")
note "deep: $raw bytes became $result ($(share "$result" "$raw"))"
at_least "$raw" "$result" 3333 || fail "the result is more than 3 % of the recording"
if perf script -i "$deep/once.data" -F ip 2>&1 | grep -q 'stack.*unwind\|libunwind'; then
    fail "the result still has stacks to unwind"
fi

# The copies left for perf, which finds the information in the images.
"$jdtool" inject -q --keep-stacks -i "$deep/perf.data" -o "$deep/kept.data" ||
    fail "jdtool inject --keep-stacks"
# Of those whose callers are still interpreted, the first of a run, perf cannot know the methods: it has no
# table of them.
read -r all exact < <(chains "$deep/kept.data" "$scratch/before")
claim "deep chains exact, unwound by perf from the images" "$(share "$exact" "$all") of $all"
[ "$all" -gt 200 ] || fail "--keep-stacks: only $all samples in the chain's end"
at_least "$exact" "$all" 99 || fail "perf's own unwinder does not get through the images' frames"
rm -f "$deep/kept.data"

# What our own sampler keeps for perf: perf's unwinder comes to the same stacks as ours.
if my_part 1 "our own sampler's recording" && part "our own sampler's recording" test "$EUID" = 0; then
    "$jdperf" record -o "$scratch/own" --keep-raw -e cpu-clock -F 997 -- "$jdk/bin/java" -XX:MaxInlineLevel=0 -XX:-Inline \
        -cp "$classes" DeepChain 2 >"$scratch/log" 2>"$scratch/said" || fail "jdperf record: $(tail -n 5 "$scratch/said")"
    ! grep 'too few samples' "$scratch/said" || fail "perf has taken the samples"
    told=$(sed -n 's/^  "samples": \([0-9]*\),$/\1/p' "$scratch/own/scorecard.json")
    taken=$(perf script -i "$scratch/own/perf.data" -G -F time 2>/dev/null | wc -l)
    [ "$told" = "$taken" ] || fail "perf reads $taken of our $told samples"
    read -r all exact < <(chains "$scratch/own/perf.jit.data")
    mv "$scratch/interpreted" "$scratch/own/before"
    [ "$all" -gt 200 ] || fail "ours: only $all samples in the chain's end"
    [ "$all" -eq "$exact" ] || fail "ours: not every chain is the program's"
    "$jdtool" inject -q --keep-stacks -i "$scratch/own/perf.data" -o "$scratch/own/kept.data" || fail "jdtool inject --keep-stacks"
    read -r all exact < <(chains "$scratch/own/kept.data" "$scratch/own/before")
    claim "deep chains of our own sampler exact, unwound by perf" "$(share "$exact" "$all") of $all"
    [ "$all" -gt 200 ] || fail "ours: only $all samples in the chain's end without interpreted callers"
    at_least "$exact" "$all" 99 || fail "perf's own unwinder does not get through our own sampler's recording"
    rm -r "$scratch/own"
fi

# perf's own way, with the information put into the dump.
"$jdtool" unwind "$dump" -o "$dump" >"$scratch/unwind.log" || fail "jdtool unwind"
verify "$dump"
perf --buildid-dir "$scratch/buildid" inject --jit -i "$deep/perf.data" -o "$deep/stock.data" \
    >"$scratch/inject.log" 2>&1 || fail "perf inject --jit: $(tail -n 1 "$scratch/inject.log")"
counts=$(chains "$deep/stock.data" "$scratch/before")
read -r all exact <<<"$counts"
note "$(cat "$scratch/unwind.log")"
note "$(wc -l <"$scratch/before") chains have interpreted callers"
claim "deep chains exact, unwound by perf" "$(share "$exact" "$all") of $all"
[ "$all" -gt 200 ] || fail "only $all samples in the chain's end without interpreted callers"
at_least "$exact" "$all" 99 || fail "perf's own unwinder does not get through"

# Frames of parked virtual threads are in the heap; those on the stack go on to the carrier's.
if [ "$jdk_major" -ge 21 ]; then
    record virtual "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/virtual,methods=on" \
        -cp "$classes" VirtualThreads 2
    rooted virtual 98
fi

# The analysis, over javac.
javac_recording
"$check" frames "$(the_dump "$recording")" >"$scratch/frames" ||
    fail "the analysis does not agree with the JVM: $(head -n 5 "$scratch/frames")"
note "$(tail -n 1 "$scratch/frames")"
