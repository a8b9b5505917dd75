#!/usr/bin/env bash
# jdperf watch retries a failing JVM less and less often, and keeps watching the others. Fewer samples are taken of one
# that has used up its share of a processor, its profiles say so and their weights do not change, and what has grown too
# large is begun anew. With perf: it is told to stop, and to go on later, and one is enough for all JVMs.
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

# A perf that samples nothing, and notes when it was started, for whom, and what it was told.
fakes
fake perf <<'END'
[[ $* != *--version* ]] || { echo 'perf version 6.1.192'; exit; }
while (($#)); do
    case $1 in
    -p) pid=${2%%,*}; echo "for $2" >>"$WORK/told.$pid"; shift ;;
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
    [[ ! -e $WORK/busy.$pid ]] || for ((i = 0; i < 5000; i++)); do :; done
done
END

# start_jvm NAME CLASS [FLAG]: its number stands in `jvm`. A dozen of them would keep two processors busy with short pauses.
start_jvm() {
    java "${IDLE_JVM[@]}" ${3:+"$3"} -cp classes "$2" 100000000 "l$$-$1" >/dev/null 2>&1 </dev/null &
    jvm=$!
    jvms+=($!)
    ln -sf "told.$!" "told.$1"
}
asleep=-Dpause=1000000 # of those that nobody samples
# watch_one NAME OPTION…: a watch of that JVM alone.
watch_one() {
    local name=$1
    shift
    # The shell has what it puts behind itself ignore SIGINT, which ends the perf above.
    env --default-signal=INT "$JDPERF" watch --match "l$$-$name" --name "$name-$$" --slice 1 -o "kept-$name" "$@" >"$name.log" 2>&1 </dev/null &
    watches+=($!)
}
told() { # NAME WORD COUNT
    (($(grep -cx "$2" "told.$1" 2>/dev/null) >= $3))
}
# over WATCH JVM…: they would work on while others are measured.
over() {
    local at
    kill "$@"
    wait "$1" || fail "a watch ended with status $?"
    { wait "${@:2}"; } 2>/dev/null || :
    for at in "${!watches[@]}"; do [[ ${watches[at]} != "$1" ]] || unset "watches[at]"; done
}
status() { "$JDPERF" watch --status --name "$1-$$"; }

# A session without a dump, which no watch can use.
start_jvm refuses Calm "$asleep"
wait_until 60 "JVM that listens" "$JDPERF" attach "$jvm" --agent-options "mode=map"
watch_one refuses
start_jvm thinned-other Calm "$asleep"
thinned_other=$jvm
start_jvm thinned Calm -Dpause=20 # a third of a processor has as many samples at three times the rate
thinned=$jvm
watch_one thinned -F 8999 --max-cpu-user 1
# The jdtool of tests/planted.c crashes at the dump of one of two, and tries before what an attacker would.
hostile=$JDAGENT_BUILD/tests/planted
if part "a dump that crashes its reader" test -x "$hostile"; then
    start_jvm crash-a Calm
    bad=$jvm
    start_jvm crash-b Calm
    good=$jvm
    JDAGENT_PLANTED=$WORK/escaped JDAGENT_PLANTED_CRASH=jit-$bad. "$hostile" live --agent "$JDAGENT_BUILD/libjdagent.so" watch --match "l$$-crash" \
        --name "crash-$$" --slice 1 -o kept-crash >crash.log 2>&1 </dev/null &
    crash_watch=$!
    watches+=($!)
    # And at one it takes much memory, of which the watch has enough for the other one.
    start_jvm much-a Calm
    much=$jvm
    start_jvm much-b Calm
    little=$jvm
    JDAGENT_PLANTED_GROWS=jit-$much. "$hostile" live --agent "$JDAGENT_BUILD/libjdagent.so" watch --match "l$$-much" \
        --max-memory 250M --name "much-$$" --slice 1 -o kept-much >much.log 2>&1 </dev/null &
    watches+=($!)
    much_watch=$!
fi
start_jvm grows Calm
growing=$jvm
watch_one grows --max-memory 1K
grows=${watches[-1]}
start_jvm calm Calm
watch_one calm
calm=${watches[-1]}

# With perf; all at once, since most of what follows is waiting.
PATH=$WORK/bin:$PATH
start_jvm fails Calm "$asleep"
touch "fails.$jvm"
watch_one fails --sampler perf -e page-faults
fails=${watches[-1]}
start_jvm busy Calm "$asleep"
touch "busy.$jvm"
watch_one busy --sampler perf --max-cpu 1
start_jvm two-a Calm "$asleep"
first=$jvm
watch_one two --sampler perf

# ---- Our own sampler ----

# What works, and is over soon, while the others wait.
if [[ ${bad:-} ]]; then
    others_go_on() { (($(find kept-crash -name "*-$good-*.pb.gz" 2>/dev/null | wc -l) >= 12)); }
    wait_until 120 "slices of the JVM that does not crash its reader" others_go_on
    grep -q "JVM $bad is not watched now: the process that reads what it has written died (Aborted)" crash.log ||
        fail "the crash is not told: $(cat crash.log)"
    ! grep "JVM $good is not watched\|nothing is watched" crash.log || fail "the other JVM was dropped"
    grower_is_told() { grep -q "JVM $much is not watched now: what it has written takes more than" much.log; }
    wait_until 120 "the JVM whose data takes much is dropped" grower_is_told
    have=$(find kept-much -name "*-$little-*.pb.gz" | wc -l)
    goes_on() { (($(find kept-much -name "*-$little-*.pb.gz" | wc -l) >= have + 5)); }
    wait_until 120 "slices of the JVM whose data takes little" goes_on
    ! grep "JVM $little is not watched\|nothing is watched" much.log || fail "the JVM whose data takes little was dropped"
    [[ -z $(compgen -G 'escaped*') && -z $(compgen -G "kept-crash/*-$bad-*") ]] || fail "something came of it: $(ls . kept-crash)"
    over "$crash_watch" "$bad" "$good"
    over "$much_watch" "$much" "$little"
fi

slicer_is_another() { [[ $(pgrep -P "$grows" -f ' watch-slicer ') != "$1" ]]; }
for _ in 1 2; do
    wait_until 60 "a slicer" pgrep -P "$grows" -f ' watch-slicer '
    wait_until 60 "new start of what grew" slicer_is_another "$(pgrep -P "$grows" -f ' watch-slicer ')"
done
! grep 'not watched now' grows.log || fail "what grew is called failed"
over "$grows" "$growing"

# The first window is left out: the JVM's files are read in it.
is_thinned() { status thinned | grep -q "^JVM $thinned .*, one sample in [0-9]* taken"; }
wait_until 120 "thinning" is_thinned
# The slice before it may still be on its way.
says_thinned() { grep -aq 'thinned: one in' <(zcat kept-thinned/*-"$thinned"-*.pb.gz 2>/dev/null); }
wait_until 60 "a slice that says so" says_thinned
rm -rf kept-thinned/*
cpu() { awk '{ print $14 + $15 }' <(sed 's/.*) /x x /' "/proc/$thinned/stat"); }
kept_for() { (($(find kept-thinned -name "*-$thinned-*.pb.gz" | wc -l) >= $1)); }
wait_until 60 "slices" kept_for 2
from=$(cpu) have=$(find kept-thinned -name "*-$thinned-*.pb.gz" | wc -l)
wait_until 60 "slices of ten seconds" kept_for $((have + 10))
took=$(($(cpu) - from)) tick=$(getconf CLK_TCK)
PYTHONPATH=$SOURCE/tests/exports python3 - "$have" "$took" "$tick" kept-thinned/*-"$thinned"-*.pb.gz <<'END' || fail "what thinned slices say"
import sys
import stacks
have, took, tick = map(int, sys.argv[1:4])
weights, samples = 0, 0
for number, path in enumerate(sorted(sys.argv[4:])):
    profile = stacks.message(stacks.load(path), stacks.PPROF)
    notes = [profile["strings"][at] for at in profile.get("comment", [])]
    if not any("thinned: one in" in note for note in notes):
        raise SystemExit(f"{path} says {notes}")
    if have <= number < have + 10:
        weights += sum(sample["value"][1] for sample in profile["sample"])
        samples += sum(sample["value"][0] for sample in profile["sample"])
weights, took = weights / 1e9, took / tick
print(f"{samples} samples weigh {weights:.2f} s, the JVM has used {took:.2f} s")
# A slice more or less at both ends, and what chance does with so many samples.
sys.exit(abs(weights / took - 1) > 0.15 + 4 / samples ** 0.5)
END
over "${watches[1]}" "$thinned" "$thinned_other"

# After 5 s, after 10, and so on.
waits_longer() { status refuses | grep -qE 'tried again in ([6-9]|10) s: a session without a dump'; }
wait_until 60 "longer pause after the second failure" waits_longer
[[ $(grep -c 'is not watched now: a session without a dump' refuses.log) == 1 ]] || fail "the reason is not told once: $(cat refuses.log)"

! status calm | grep 'one sample in' || fail "a calm JVM is thinned"

# ---- perf ----

wait_until 60 "failure" told fails start 2
grep -q "how many page-faults a sample stands for is the kernel's guess" fails.log || fail "weights are not told wrong: $(cat fails.log)"
grep -q 'nothing is watched now: failed on purpose' fails.log || fail "the reason is not told: $(cat fails.log)"
[[ $(grep -c 'watched now' fails.log) == 1 ]] || fail "the same is told twice: $(cat fails.log)"
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
(($(ticks "$fails") < 3 * $(ticks "$calm") + 2 * tick)) ||
    fail "a watch whose perf has failed took $(ticks "$fails") ticks of a processor, one that has samples $(ticks "$calm")"

wait_until 60 "start of perf" told two-a start 1
start_jvm two-b Calm "$asleep"
both() { grep -qxE "for ($first,$jvm|$jvm,$first)" told.*; }
wait_until 60 "perf for both" both

# In the first window perf has the JVM's files to read; the share is held from the second on.
wait_until 90 "word to perf to stop" told busy disable 1
wait_until 60 "word to perf to go on" told busy enable 1
sed -n '/^disable/,/^enable/p' told.busy >between
(($(grep -c ping between) >= 5)) || fail "it was stopped for a moment only: $(cat between)"
! grep -E 'able' told.two-a || fail "perf was told to stop without need"
kill "${watches[@]}"
for watch in "${watches[@]}"; do
    wait "$watch" || fail "a watch ended with status $?"
done
watches=()
