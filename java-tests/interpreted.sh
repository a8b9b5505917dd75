#!/usr/bin/env bash
# Interpreted frames have the right names, in a program that is only interpreted. Stacks go on behind methods that the
# interpreter has in assembly, without a frame. And classes that come and go, whose methods' addresses are used again.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile
check=$build/java-tests/stack-check

# record NAME FLAGS...
record() {
    local dir=$scratch/$1
    shift
    mkdir -p "$dir"
    perf_record -k mono -e cpu-clock -F 499 --call-graph dwarf,65528 -o "$dir/perf.data" -- \
        "$jdk/bin/java" "-agentpath:$agent=dir=$dir,methods=on" -cp "$classes" "$@" \
        >"$dir/log" 2>&1 || fail "perf record $*: $(tail -n 3 "$dir/log")"
    "$jdtool" inject -q --inline off -i "$dir/perf.data" -o "$dir/once.data" \
        --scorecard "$dir/scorecard.json" || fail "jdtool inject"
}

# interpreted NAME: the interpreted frames that perf shows of a result, and how many have a name:
# "ALL NAMED". Counted here, not taken from the scorecard, which has to say the same.
interpreted() {
    perf script --max-stack 5000 --no-inline -i "$scratch/$1/once.data" -F ip,sym 2>/dev/null | awk '
        /\(interpreted\)/ { all++; named++ }
        $2 == "Interpreter" { all++ }
        END { print all + 0, named + 0 }'
}

record xint -Xint Streams 4
read -r all named < <(interpreted xint)
said=$(sed -n 's/.*"interpreted_frames\(_named\)*": \([0-9]*\).*/\2/p' "$scratch/xint/scorecard.json" | xargs)
[ "$said" = "$named $all" ] || fail "the scorecard counts $said (named, all) interpreted frames, perf shows $named, $all"
claim "interpreted named" "$(share "$named" "$all") of $all"
[ "$all" -gt 5000 ] || fail "only $all interpreted frames"
# One in 2,000 has none, as was seen: more than one in 500 of 5,000 in one run of 16,000.
at_least "$named" "$all" 99.8 || fail "too few interpreted frames have a name"

"$check" calls "$scratch/xint/perf.data" | sort | uniq -c |
    awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print $0 "\t" n }' >"$scratch/calls"
"$jdk/bin/java" -cp "$classes" Calls <"$scratch/calls" >"$scratch/checked"
read -r checked right skipped <<<"$(tail -n 1 "$scratch/checked")"
note "$right of $checked callers stand at an invocation of their callee ($(share "$right" "$checked")); $skipped lambda forms and the like left out"
claim "callers at their call" "$(share "$right" "$checked") of $checked"
[ "$checked" -gt 2000 ] || fail "only $checked calls to check"
at_least "$right" "$checked" 99.5 || fail "callers that call somebody else: $(head -n 5 "$scratch/checked")"

# Without the table the frame stays what it is, and the scorecard says so.
rm "$scratch"/xint/*.methods
"$jdtool" inject -i "$scratch/xint/perf.data" -o "$scratch/xint/once.data" >"$scratch/said" ||
    fail "jdtool inject without a table"
grep -q 'methods=on' "$scratch/said" || fail "nobody says that the table is missing"

# JDK 8 and 11 call what computes these from the method itself.
if [ "$jdk_major" -ge 17 ] && my_part 0 "methods without a frame"; then
    record entries -Xint Entries 7
    read -r entries behind < <(perf script --max-stack 1000 --no-inline -i "$scratch/entries/once.data" -F ip,sym 2>/dev/null | awk '
        NF == 0 { above = ""; next }
        above == "Interpreter" { entries++; behind += $2 ~ /^Entries\.(maths|checksum)/ || $2 ~ /^java\.util\.zip\.CRC32/ }
        { above = $2 }
        END { print entries + 0, behind + 0 }')
    claim "callers of entries without a frame" "$(share "$behind" "$entries") of $entries"
    rooted=$(sed -n 's/.*"stacks_rooted": \([0-9]*\).*/\1/p' "$scratch/entries/scorecard.json" | head -n 1)
    stacks=$(sed -n 's/.*"stacks": \([0-9]*\).*/\1/p' "$scratch/entries/scorecard.json" | head -n 1)
    [ "$entries" -gt 80 ] || fail "only $entries samples in what these entries call"
    at_least "$behind" "$entries" 97 || fail "stacks end at entries without a frame"
    at_least "$rooted" "$stacks" 97 || fail "$rooted of $stacks stacks reach their root"
    # They have no method to be named by, and nobody misses it.
    read -r named interpreted < <(sed -n 's/.*"interpreted_frames\(_named\)*": \([0-9]*\).*/\2/p' \
        "$scratch/entries/scorecard.json" | head -n 2 | xargs)
    at_least "$named" "$interpreted" 98 || fail "$((interpreted - named)) of $interpreted frames are only Interpreter"
fi

my_part 1 "classes that come and go" || exit 0
# Each class's method gN is called by nobody but the class ClassN itself, so a stack tells.
record come_and_go -Xint ComeAndGo 1000
perf script --max-stack 1000 --no-inline -i "$scratch/come_and_go/once.data" -F ip,sym 2>/dev/null |
    awk '
    function judge(  i) {
        for (i = 2; i <= depth; i++) {
            if (frame[i - 1] ~ /^Made.*\.work/ && frame[i] ~ /^Made.*\.run/) {
                pairs++
                split(frame[i - 1], a, "."); split(frame[i], b, ".")
                if (a[1] != b[1]) wrong++
            }
            if (frame[i] == "Interpreter") unnamed++
            frames++
        }
        depth = 0
    }
    NF == 0 { judge(); next }
    { frame[++depth] = $2 }
    END { judge(); print pairs + 0, wrong + 0, unnamed + 0, frames + 0 }' >"$scratch/pairs"
read -r pairs wrong unnamed frames <"$scratch/pairs"
claim "classes come and go: wrong" "$wrong of $pairs"
note "1,000 classes: $pairs pairs of frames in them, $wrong wrong; $unnamed of $frames frames unnamed"
[ "$pairs" -gt 300 ] || fail "only $pairs pairs"
[ "$wrong" -eq 0 ] || fail "frames have the names of other classes"
at_least $((frames - unnamed)) "$frames" 99.9 || fail "interpreted frames of vanished classes have no name"
