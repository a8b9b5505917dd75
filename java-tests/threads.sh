#!/usr/bin/env bash
# Every sample has the whole name of its thread: platform and virtual, renamed, attached, and in a container. And
# nothing is left behind.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

# A method that is inlined shares instructions with the loop of all threads.
java=("$jdk/bin/java" -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,Identity.burn*"
    -Djdk.virtualThreadScheduler.parallelism=2 -cp "$classes" Identity)

# check PROFILE LOG LEAST: who the samples of each burnN are of, against what the program printed.
check() {
    "$jdperf" export "$scratch/$1" collapsed --by virtual -o - 2>"$scratch/err" |
        awk '{ n = $NF; sub(/ [0-9]+$/, "")
            if (match($0, /Identity\.burn[0-9]\(int\)/)) {
                method = substr($0, RSTART + 9, 5); sub(/;.*/, ""); count[method "\t" $0] += n } }
            END { for (key in count) print key "\t" count[key] }' >"$scratch/found" || fail "$1: $(cat "$scratch/err")"
    awk -F'\t' -v least="$3" '
        FNR == NR {
            if ($1 == "virtual") names[$4, $3 == "" ? "virtual thread " $2 : $3] = 1
            if ($1 == "platform") names[$4, $3] = 1
            if ($4 == "burn7") names[$4, "renamed to something longer than the kernel keeps"] = 1
            next
        }
        { kind = $1 == "burn6" || $1 == "burn7" ? "platform" : "virtual" }
        ($1, $2) in names { right[kind] += $3; next }
        { wrong += $3; print "wrong: " $3 " samples of " $1 " under " $2 }
        END {
            printf "%d of %d samples right on virtual threads, %d on platform threads, %d wrong\n",
                right["virtual"], right["virtual"] + right["platform"] + wrong, right["platform"], wrong
            exit wrong || right["platform"] < least
        }' "$2" "$scratch/found" >"$scratch/said" || fail "$1: $(cat "$scratch/said")"
    claim "threads, $1" "$(cat "$scratch/said")"
    ! grep -q '"unknown": [1-9]' <(grep '"threads"' "$scratch/$1/scorecard.json") || fail "$1: the journal has gaps"
    [ "$jdk_major" -lt 21 ] || grep -q 'burn[0-5]' "$scratch/found" || fail "$1: no sample on a virtual thread"
}

seconds=2
[ "$long" = 0 ] || seconds=30
# From a file, after the end: what a thread renamed itself to is known by then. The pipe knows as much of it
# as the kernel keeps, until the thread or the session ends.
"$jdperf" record -o "$scratch/start" --stacks fp -F 1999 --threads -- "${java[@]}" "$seconds" >"$scratch/log" 2>"$scratch/err" ||
    [ $? = 3 ] || fail "record: $(tail -n 5 "$scratch/err")"
note "$(grep yields "$scratch/log")"
check start "$scratch/log" 100
grep -q 'renamed to something longer' "$scratch/found" || fail "the new name of a renamed thread was not seen: $(cat "$scratch/found")"

# Chosen and grouped by them, in what other viewers read.
"$jdperf" export "$scratch/start" collapsed --thread 'a platform thread with*number 0' -o - 2>/dev/null |
    awk '/burn6/ { found = 1 } /burn[0-57]/ { exit 2 } END { exit !found }' || fail "--thread by a whole name"
if [ "$jdk_major" -ge 21 ]; then
    "$jdperf" export "$scratch/start" firefox --by virtual -o "$scratch/firefox.json" 2>/dev/null
    grep -qE '"name":"(request handler of customer number|virtual thread) [0-9]' "$scratch/firefox.json" || fail "no track of a virtual thread"
    "$jdperf" export "$scratch/start" otlp-json -o "$scratch/otlp.json" 2>/dev/null
    grep -q 'jvm.virtual_thread.name' "$scratch/otlp.json" || fail "no virtual thread in OTLP"
fi

# until_it_burns LOG
until_it_burns() {
    for ((i = 0; i < 1000; i++)); do
        ! grep -q 'burn7' "$1" || return 0
        sleep 0.05
    done
    fail "the program did not start: $(cat "$1")"
}
# attached NAME PID LOG SECONDS: as it arrives. A JVM that gets no processor for half a second tells later than the
# reader waits.
attached() {
    local right
    for _ in 1 2 3; do
        "$jdperf" record -o "$scratch/$1" -F 1999 --threads -p "$2" -d "$4" >/dev/null 2>"$scratch/err" ||
            [ $? = 3 ] || fail "record -p, $1: $(tail -n 5 "$scratch/err")"
        kill -STOP "$2" # it need not be busy while files are read
        right=no
        ! (check "$1" "$3" 100) || right=yes
        kill -CONT "$2"
        [ "$right" = no ] || return 0
    done
    fail "$1: wrong three times"
}

# Attached, to threads that are there.
"${java[@]}" 60 >"$scratch/log2" 2>&1 &
jvm=$!
children+=("$jvm")
until_it_burns "$scratch/log2"
attached attached "$jvm" "$scratch/log2" "$seconds"
! grep -qs 'jdagent' "/proc/$jvm/task/"*/comm || fail "a thread of the agent's is left: $(cat "/proc/$jvm/task/"*/comm)"
! grep -q 'jit-.*threads' "/proc/$jvm/maps" || fail "the journal is still mapped"
! find "/proc/$jvm/fd" -lname '*.threads*' | grep . >/dev/null || fail "the journal is still open"

# What is left is about containers.
my_part 0 "a container" || exit 0
# In a container, whose threads have other numbers there. Its /tmp is its own: .java_pid1 is.
kill -KILL "$jvm"
wait "$jvm" 2>/dev/null || true
if part "a container" unshare --pid --fork --mount --mount-proc true; then
    # shellcheck disable=SC2016
    (cd "$classes" && exec unshare --pid --fork --kill-child --mount --mount-proc sh -c \
        'mount -t tmpfs tmpfs /tmp && cp -r . /tmp/classes && exec "$@"' sh "${java[@]/#$classes/\/tmp\/classes}" 60) >"$scratch/log3" 2>&1 &
    outer=$!
    children+=("$outer")
    until_it_burns "$scratch/log3"
    attached contained "$(pgrep -P "$outer")" "$scratch/log3" 2
fi
