#!/usr/bin/env bash
# Two recordings of one JVM start at the same moment and share a session until both end.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
jattach=$(command -v jattach) || skip "jattach is not installed"
compile_sample

java -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
jvm=$!
trap 'kill -9 "$jvm" 2>/dev/null || :; rm -rf "$WORK" "/tmp/perf-$jvm.map"' EXIT
wait_until 60 JVM listens "$jvm"
# Loaded before, as it is wherever somebody has recorded once.
run 0 "$JDPERF" attach "$jvm" -o "$WORK"
run 0 "$JDPERF" stop "$jvm"

# Neither finds a session, and both start one.
export WORK jattach
fakes
fake jattach <<'END_OF_FAKE'
case $* in
*dir=*lease=*)
    : >"$WORK/asked.$PPID"
    for ((i = 0; i < 80 && $(ls "$WORK"/asked.* | wc -l) < 2; i++)); do sleep 0.1; done
    ;;
esac
exec "$jattach" "$@"
END_OF_FAKE

state_is() {
    [[ $("$JDPERF" status "$jvm" 2>&1) == *"state=$1"* ]]
}
for round in 1 2; do
    rm -f asked.*
    "$JDPERF" record -o one -d 1 -p "$jvm" >one.log 2>&1 </dev/null &
    first=$!
    "$JDPERF" record -o two -p "$jvm" >two.log 2>&1 </dev/null &
    second=$!
    wait_until 60 'second one at work' grep -q 'recording .* at' two.log
    wait "$first" || fail "the first recording: $(cat one.log)"
    [[ $(find . -name 'asked.*' | wc -l) -ge 2 ]] || fail "they did not meet"
    cat one.log two.log | grep -q 'a session already runs in process' || fail "neither was told of the other: $(cat one.log two.log)"
    state_is running || fail "the first to end has ended the session of the other (round $round)"
    kill -TERM "$second"
    wait "$second" || fail "the second recording: $(cat two.log)"
    state_is stopped || fail "nobody has ended the session"
    ! grep -h 'ended before the recording did' one.log two.log || fail "the session ended early"
    [[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] || fail "a staging directory is left"
done
