#!/usr/bin/env bash
# What holds jdperf watch back: a JVM whose part fails is tried again ever more rarely, one whose part grows too large
# is started anew at once, and perf is told to stop when a JVM's share of a processor is used up, and to go on later.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
compile_sample
make_empty_recording
export WORK
jvms=() watches=()
end() {
    { kill -KILL "${watches[@]}" "${jvms[@]}" && wait "${watches[@]}" "${jvms[@]}"; } 2>/dev/null || :
    rm -rf "$WORK"
}
trap end EXIT

# A perf that samples nothing, and notes for each process when it was started and what it was told.
fakes
fake perf <<'END'
[[ $* != *--version* ]] || { echo 'perf version 6.1.192'; exit; }
while (($#)); do
    case $1 in
    -p) pid=$2; shift ;;
    --control) control=${2#fd:}; shift ;;
    esac
    shift
done
echo start >>"$WORK/told.$pid"
[[ ! -e $WORK/fails.$pid ]] || { echo 'failed on purpose' >&2; exit 255; }
cat "$WORK/empty.pipe"
trap 'exit 0' INT TERM
while read -r -u "${control%,*}" word; do
    echo "$word" >>"$WORK/told.$pid"
    echo ack >&"${control#*,}"
    printf '\104\0\0\0\0\0\10\0' # the end of a round
    [[ ! -e $WORK/busy.$pid ]] || for ((i = 0; i < 20000; i++)); do :; done
done
END
PATH=$WORK/bin:$PATH

# watch_one NAME OPTION…: a JVM, and a watch of it alone; what it is told stands in told.NAME.
watch_one() {
    local name=$1
    shift
    java -cp classes Calm 1000000 "l$$-$name" >/dev/null 2>&1 </dev/null &
    jvms+=($!)
    ln -s "told.$!" "told.$name"
    [[ $name != fails && $name != busy ]] || touch "$name.$!"
    # The shell has what it puts behind itself ignore SIGINT, which ends the perf above.
    env --default-signal=INT "$JDPERF" watch --match "l$$-$name" --name "$name-$$" -o "kept-$name" "$@" >"$name.log" 2>&1 </dev/null &
    watches+=($!)
}
told() { # NAME WORD COUNT
    (($(grep -cx "$2" "told.$1" 2>/dev/null) >= $3))
}
watch_one fails
watch_one busy --max-cpu 1
watch_one grows --max-memory 1K
watch_one calm

# After 5 s, after 10, and so on.
wait_until 60 "first failure" told fails start 1
waits_longer() {
    "$JDPERF" watch --status --name "fails-$$" | grep -qE 'tried again in ([6-9]|10) s: .*failed on purpose'
}
wait_until 60 "longer pause after the second failure" waits_longer
! told fails start 3 || fail "it is tried again too soon: $(cat told.fails fails.log)"
grep -q 'is not watched now: .*failed on purpose' fails.log || fail "the reason is not told: $(cat fails.log)"
[[ $(grep -c 'is not watched now' fails.log) == 1 ]] || fail "the same is told twice: $(cat fails.log)"

wait_until 60 "new start of what grew" told grows start 3
! grep 'is not watched now' grows.log || fail "what grew is called failed"

# In the first window perf has the JVM's files to read; the share is held from the second on.
wait_until 90 "word to perf to stop" told busy disable 1
wait_until 60 "word to perf to go on" told busy enable 1
sed -n '/^disable/,/^enable/p' told.busy >between
(($(grep -c ping between) >= 5)) || fail "it was stopped for a moment only: $(cat between)"

# Whatever is not over its limits is left alone.
[[ $(sort -u told.calm | paste -sd ' ') == 'ping start' && $(grep -c start told.calm) == 1 ]] || fail "perf was told $(sort told.calm | uniq -c)"
kill "${watches[@]}"
for watch in "${watches[@]}"; do
    wait "$watch" || fail "a watch ended with status $?"
done
watches=()
