#!/usr/bin/env bash
# Through perf's pipe, while the JVM runs and tells of its code, every stack of javac is what it is
# when all is over: with frame pointers and with stack copies.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
javac_workload
head -n 700 "$scratch/files" >"$scratch/some"
mv "$scratch/some" "$scratch/files"
check=$build/java-tests/stack-check

# pipe NAME "PERF-ARGUMENT..." JVM-FLAG...
pipe() {
    local name=$1 dir=$scratch/$1 arguments=$2 reader total same
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
    "$check" stacks "$dir/raw" >"$dir/file" || fail "$name: what went through the pipe cannot be read"
    total=$(wc -l <"$dir/file")
    same=$(paste -d '\n' "$dir/live" "$dir/file" | awk 'NR % 2 { line = $0; next } $0 == line { n++ } END { print n + 0 }')
    claim "stacks through the pipe as from the file, $name" "$(share "$same" "$total") of $total"
    [ "$total" -gt 1000 ] || fail "$name: only $total samples: $(cat "$dir/log")"
    if [ "$same" -ne "$total" ] || [ "$(wc -l <"$dir/live")" -ne "$total" ]; then
        fail "$name: $same of $total stacks are the same: $(cat "$dir/live.log")"
    fi

    "$jdtool" inject -q -i "$dir/raw" -o "$dir/file.data" || fail "$name: jdtool inject of a kept pipe"
    for way in live file; do
        perf script -i "$dir/$way.data" -F tid,time,ip,sym --ns 2>"$dir/perf.log" >"$dir/$way.script" ||
            fail "$name: perf cannot read the result: $(tail -n 3 "$dir/perf.log")"
    done
    [ "$(grep -c . "$dir/file.script")" -gt 10000 ] || fail "$name: perf shows next to nothing"
    cmp "$dir/live.script" "$dir/file.script" || fail "$name: perf shows other frames through the pipe"
    rm -f "$dir/raw"
}

pipe fp "-F 997 -g" -XX:+PreserveFramePointer
pipe copies "-F 397 --call-graph dwarf,65528" -XX:-PreserveFramePointer
