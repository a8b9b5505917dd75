#!/usr/bin/env bash
# Stacks unwound through a pipe while the JVM runs equal those unwound afterwards.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
javac_workload
check=$build/java-tests/stack-check

# untold DUMP: the bounds of these stubs, the last that the dump tells of, as in "7f5b9faca860 7f5b9faca877".
untold() {
    local address size
    "$jdtool" dump --brief "$1" | awk '
        $2 == "LOAD" && /name [vi]table stub$/ {
            for (i = 3; i < NF; i++) { if ($i == "address") address = $(i + 1); if ($i == "size") size = $(i + 1) }
            last = last address " " size "\n"
            next
        }
        $2 == "LOAD" || $2 == "CODE_UNLOAD" { last = "" }
        END { printf "%s", last }' |
        while read -r address size; do
            printf '%x %x\n' "$((address))" "$((address + size))"
        done
}

# in_untold BOUNDS STACKS: "TID SECONDS.NANOSECONDS:" of the stacks that lead through one of them.
in_untold() {
    awk -F '\t' -v bounds="$1" '
        BEGIN {
            while ((getline line <bounds) > 0) {
                split(line, pair, " ")
                begins[++count] = pair[1]
                ends[count] = pair[2]
            }
        }
        function hit(address, k) {
            # Of one length, so that their order is that of the numbers.
            for (k = 1; k <= count; k++) {
                if (length(address) == length(begins[k]) && address >= begins[k] && address <= ends[k]) { return 1 }
            }
            return 0
        }
        {
            for (i = 2; i <= NF; i++) {
                split($i, frame, " ")
                if (hit(frame[2])) {
                    split($1, head, " ")
                    print head[2], substr(head[3], 1, length(head[3]) - 9) "." substr(head[3], length(head[3]) - 8) ":"
                    next
                }
            }
        }' "$2"
}

# without KEYS FILE: FILE, stacks or what perf script shows, without those of KEYS.
without() {
    awk -v keys="$1" '
        BEGIN { while ((getline line <keys) > 0) { left_out[line] } }
        /^ *[0-9]+ +[0-9]+\.[0-9]+: *$/ { shown = !(($1 " " $2) in left_out) }
        /^[0-9]/ && NF >= 4 {
            shown = !(($2 " " substr($3, 1, length($3) - 9) "." substr($3, length($3) - 8) ":") in left_out)
        }
        shown' "$2"
}

# differing FILE FILE: how many lines of the two are not the same, one by one.
differing() {
    [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] || fail "$1 and $2 have not as many lines"
    paste -d '\n' "$1" "$2" | awk 'NR % 2 { line = $0; next } $0 != line { n++ } END { print n + 0 }'
}

# pipe NAME "PERF-ARGUMENT..." JVM-FLAG...: records it, named and unwound as it comes.
pipe() {
    local name=$1 dir=$scratch/$1 arguments=$2 reader
    shift 2
    mkdir -p "$dir"
    mkfifo "$dir/fifo"
    "$check" stacks - <"$dir/fifo" >"$dir/live" 2>"$dir/live.log" &
    reader=$!
    children+=("$reader")
    jvm_flags "-agentpath:$agent=dir=$dir,methods=on" "$@"
    # shellcheck disable=SC2086 # several arguments
    perf_record -k mono -e cpu-clock $arguments -o - -- \
        "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" 2>"$dir/log" |
        tee "$dir/raw" "$dir/fifo" |
        "$jdtool" inject -q -i - -o "$dir/live.data" 2>"$dir/inject.log" ||
        fail "$name: $(tail -n 3 "$dir/log" "$dir/inject.log")"
    wait "$reader" || fail "$name: $(tail -n 3 "$dir/live.log")"
}

# judge NAME: what came of it against what the same bytes are when all is over.
judge() {
    local name=$1 dir=$scratch/$1 way total same left_out allowed
    "$check" stacks "$dir/raw" >"$dir/file" || fail "$name: what went through the pipe cannot be read"
    untold "$dir"/jit-*.dump >"$dir/untold"
    in_untold "$dir/untold" "$dir/file" >"$dir/left_out"
    for way in live file; do
        total=$(wc -l <"$dir/$way")
        without "$dir/left_out" "$dir/$way" >"$dir/$way.stacks"
    done
    [ "$(wc -l <"$dir/live")" -eq "$total" ] || fail "$name: $total samples, $(wc -l <"$dir/live") through the pipe"
    [ "$total" -gt 1000 ] || fail "$name: only $total samples: $(cat "$dir/log")"
    left_out=$(wc -l <"$dir/left_out")
    [ $((left_out * 200)) -lt "$total" ] || fail "$name: HotSpot kept silent of stubs in $left_out of $total stacks"
    [ "$left_out" = 0 ] || note "$name: $left_out stacks with stubs of which HotSpot told at the end"
    total=$((total - left_out))
    allowed=$((1 + total / 10000))
    same=$((total - $(differing "$dir/live.stacks" "$dir/file.stacks")))
    claim "stacks through the pipe as from the file, $name" "$(share "$same" "$total") of $total"
    [ "$same" -eq "$total" ] || diff "$dir/live.stacks" "$dir/file.stacks" | cut -c 1-300 | head -n 8 || :
    [ $((total - same)) -le "$allowed" ] ||
        fail "$name: $same of $total stacks are the same: $(cat "$dir/live.log")"

    "$jdtool" inject -q -i "$dir/raw" -o "$dir/file.data" || fail "$name: jdtool inject of a kept pipe"
    for way in live file; do
        perf script -i "$dir/$way.data" -F tid,time,ip,sym --ns 2>"$dir/perf.log" >"$dir/script" ||
            fail "$name: perf cannot read the result: $(tail -n 3 "$dir/perf.log")"
        without "$dir/left_out" "$dir/script" >"$dir/$way.script"
    done
    [ "$(grep -c . "$dir/file.script")" -gt 10000 ] || fail "$name: perf shows next to nothing"
    if ! cmp "$dir/live.script" "$dir/file.script"; then
        for way in live file; do
            awk 'NF == 0 { print ""; next } { printf "%s\t", $0 }' "$dir/$way.script" >"$dir/$way.lines"
        done
        [ "$(differing "$dir/live.lines" "$dir/file.lines")" -le "$allowed" ] ||
            fail "$name: perf shows other frames through the pipe"
    fi
    rm -f "$dir/raw"
}

ways=()
if my_part 0 "frame pointers"; then
    pipe fp "-F 999 -g" -XX:+PreserveFramePointer
    ways+=(fp)
fi
if my_part 1 "stack copies"; then
    pipe copies "-F 599 --call-graph dwarf,65528" -XX:-PreserveFramePointer
    ways+=(copies)
fi
# Nothing depends on when things happen any more: all at once.
judges=() status=0
for way in "${ways[@]}"; do
    judge "$way" &
    judges+=("$!")
done
for judge in "${judges[@]}"; do
    wait "$judge" || status=$?
done
exit "$status"
