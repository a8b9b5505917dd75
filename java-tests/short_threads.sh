#!/usr/bin/env bash
# Threads that live for milliseconds have samples, each under the method that ran. And a JVM whose threads come and go,
# those that were there before among them, stays known to the last sample.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile
java=("$jdk/bin/java" -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,ShortThreads.in*" -cp "$classes" ShortThreads)

# started MODE: the program, up to where it is ready; sets pid, and its input is descriptor 7.
started() {
    rm -f "$scratch/input" "$scratch/log"
    mkfifo "$scratch/input"
    "${java[@]}" "$1" <"$scratch/input" >"$scratch/log" 2>&1 &
    pid=$!
    children+=("$pid")
    exec 7>"$scratch/input"
    wait_for "$scratch/log" '^ready'
}

# record PROFILE OPTION...: jdperf record, which may find that the profile is bad.
record() {
    "$jdperf" record --sampler perf -o "$scratch/$1" -e cpu-clock "${@:2}" >>"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
        fail "$1: $(tail -n 5 "$scratch/err")"
}

# judge PROFILE LEAST: of the samples of the program's own threads hardly one is another one's (of a thread whose name
# was lost, when perf had no room on a busy machine), none is of a process that nobody knows, and of short threads there are at least so many, and some of the main thread.
judge() {
    "$jdperf" export "$scratch/$1" collapsed -o "$scratch/stacks" 2>"$scratch/err" || fail "$1: $(cat "$scratch/err")"
    awk -v least="$2" '
        { n = $NF; thread = $0; sub(/;.*/, "", thread) }
        /ShortThreads\.inMain/ { main += n; wrong += thread ~ /^(short|waiting)/ ? n : 0; next }
        /ShortThreads\.inThread/ { short += n; wrong += thread ~ /^(java|main)$/ ? n : 0; next }
        /\[unknown\]/ && !/;(clone|_start|start_thread)/ { unknown += n; example = $0 }
        END {
            if (unknown) print "unknown: " example
            printf "%d samples of the main thread, %d of short ones, %d wrong, %d unknown\n", main, short, wrong, unknown
            exit main < 3 || short < least || 100 * wrong > main + short || unknown
        }' "$scratch/stacks" >"$scratch/said" || fail "$1: $(cat "$scratch/said")"
    claim "short threads, $1" "$(cat "$scratch/said"); really $(awk '
        { time[$2] = $3 } END { printf "%.0f %%", 100 * time["thread"] / (time["thread"] + time["main"]) }' <(grep ^truth "$scratch/log"))"
}

# A period is longer than such a thread's life: one in 30 had a sample once, so here none to three. 37 were seen on a
# busy machine; of 24 that are to be expected fewer than 8 are there once in 10,000 runs.
started beside
record attached -F 149 -p "$pid" -d 3
exec 7>&-
wait "$pid" || fail "the program failed: $(tail -n 3 "$scratch/log")"
judge attached 8

# Of threads that are there perf tells by their names alone.
started churn
record churn -F 499 -p "$pid" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
echo >&7
wait "$pid" || fail "the program failed: $(tail -n 3 "$scratch/log")"
exec 7>&-
wait "$recorder" || fail "the recording failed"
judge churn 30

# From the start.
: >"$scratch/log"
record started -F 149 -- "${java[@]}" beside 300 </dev/null
judge started 15
: >"$scratch/log"
record started-churn -F 499 -- "${java[@]}" churn <<<go
judge started-churn 30
