#!/usr/bin/env bash
# jdperf's own sampler sees threads that live for 5 ms, and all of their time. Frame pointers work; the whole machine
# can be sampled, several JVMs, with CAP_PERFMON alone, and one's own JVMs without rights; what perf alone can is
# perf's, and said; killed, it leaves nothing behind.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
((EUID == 0)) || skip "only root may have the kernel filter samples"
compile
java=("$jdk/bin/java" -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,ShortThreads.in*" -cp "$classes" ShortThreads)

# record PROFILE ARGUMENT...
record() {
    "$jdperf" record -o "$scratch/$1" -e cpu-clock -F 499 "${@:2}" >"$scratch/log" 2>"$scratch/err" ||
        fail "$1: $(tail -n 5 "$scratch/err")"
    ! grep -q 'load a BPF program' "$scratch/err" || skip "$(grep -m 1 'load a BPF program' "$scratch/err")"
    ! grep -q 'perf samples instead' "$scratch/err" || fail "$1: $(grep 'perf samples instead' "$scratch/err")"
}

# judge PROFILE LOG WHOLE [POINTS]: shares within 4.5 sigma of so many independent samples, which one run in 150,000 misses
# by chance (6.3 points of 1,050 samples, 8.9 of 520), and POINTS; of the time of a program that was recorded as a whole 85
# to 110 %.
judge() {
    "$jdperf" export --trust "$scratch/$1" collapsed -o "$scratch/stacks" 2>"$scratch/err" || fail "$1: $(cat "$scratch/err")"
    awk -v whole="$3" -v points="${4:-0}" '
        FNR == NR { if ($1 == "truth") time[$2] = $3; next }
        { n = $NF; thread = $0; sub(/;.*/, "", thread) }
        /ShortThreads\.inMain/ { main += n; if (thread ~ /^short/) { wrong += n; print }; next }
        /ShortThreads\.inThread/ { short += n; if (thread !~ /^short/) { wrong += n; print }; next }
        # While a process changes its program its stack is gone already. Who sees no names of the kernel has one or two.
        /\[unknown\];\[kernel/ && nameless < 2 { nameless += n; next }
        /\[unknown\]/ && !/;[a-z0-9_]*execve/ { unknown += n; print }
        END {
            share = 100 * short / (main + short)
            truth = 100 * time["thread"] / (time["thread"] + time["main"])
            most = points + 4.5 * sqrt(truth * (100 - truth) / (main + short))
            accounted = 100 * (main + short) / 499 * 1e9 / (time["thread"] + time["main"])
            printf "%d + %d samples, %.1f %% of short threads, really %.1f %% (by chance up to %.1f points off)", main, short, share, truth, most
            if (whole) printf ", %.1f %% of the time", accounted
            printf ", %d wrong, %d unknown\n", wrong, unknown
            exit main + short < 300 || share < truth - most || share > truth + most || wrong || unknown ||
                (whole && (accounted < 85 || accounted > 110))
        }' "$2" "$scratch/stacks" >"$scratch/said" || fail "$1: $(cat "$scratch/said")"
    claim "own sampler, $1" "$(cat "$scratch/said")"
}

mkfifo "$scratch/input"
"${java[@]}" beside 300 <"$scratch/input" >"$scratch/program" 2>&1 &
pid=$!
children+=("$pid")
exec 7>"$scratch/input"
wait_for "$scratch/program" '^ready'
PERF=/bin/false record attached --alloc --exceptions --timeline -p "$pid" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
# However many threads there are.
sampler=$(pgrep -x jdperf-sampler -P "$(pgrep -d , -P "$recorder")") || fail "there is no sampler of $recorder"
events=$(find "/proc/$sampler/fd" -lname '*perf_event*' | wc -l)
[ "$events" -le $((12 * $(nproc))) ] || fail "$events descriptors of events"
claim "own sampler, with events" "$events descriptors of events for $(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l) threads"
# What others fork wakes nobody: it is read some times a second.
switches() { awk '/^voluntary/ { print $2 }' "/proc/$sampler/status"; }
before=$(switches)
for _ in {1..400}; do /bin/true; done
switched=$(($(switches) - before))
((switched < 200)) || fail "beside 400 forks of others the sampler wakes $switched times"
claim "own sampler, beside 400 forks of others" "wakes $switched times"
# Another's recording beside it, which must not hear of build-ids that it has not asked for.
perf record -q -e cpu-clock -o "$scratch/beside" true 2>"$scratch/log" || fail "perf record beside it: $(cat "$scratch/log")"
echo >&7
exec 7>&-
wait "$pid" || fail "the program failed: $(tail -n 3 "$scratch/program")"
wait "$recorder" || fail "the recording failed: $(cat "$scratch/err")"
judge attached "$scratch/program" 1
for event in alloc exception deopt; do
    grep -q "\"name\": \"$event\"" "$scratch/attached/scorecard.json" || fail "no $event: $(cat "$scratch/attached/scorecard.json")"
done

# Another agent takes its time before ours has its turn, and JDK 25 takes SIGQUIT by then: the JVM is not one without it.
JAVA_TOOL_OPTIONS="-agentpath:$build/java-tests/libneighbour.so=slow" record started -- "${java[@]}" beside 300 </dev/null
! grep 'started without the agent' "$scratch/err" || fail "a JVM that still loads the agent is attached to"
judge started "$scratch/log" 1
[ "$(grep -c '"pid":' "$scratch/started/scorecard.json")" = 1 ] || fail "one JVM is several: $(grep '"pid":' "$scratch/started/scorecard.json")"
record shell --keep-raw -- bash -c '"$@"; true' bash "${java[@]}" beside 150 </dev/null
judge shell "$scratch/log" 1
[ -s "$scratch/shell/perf.data" ] || fail "--keep-raw has kept nothing"

record fp --stacks fp -F 500 -- "${java[@]}" beside 50 </dev/null
grep -q 'at 499 Hz' "$scratch/err" || fail "in step with the kernel's tick: $(cat "$scratch/err")"
read -r all named < <(perf script -i "$scratch/fp/perf.jit.data" -F ip,sym,dso 2>/dev/null | generated_frames)
note "fp: $named of $all frames named"
[ "$all" -ge 100 ] || fail "only $all frames in generated code"
at_least "$named" "$all" 99 || fail "fp: frames without a name"

# Of what the kernel counts one side alone, and one sample every so many of it: not in step with its tick of 4 ms, or
# the threads of a busy machine have 5 to 45 % too much.
PERF=/bin/false "$jdperf" record -o "$scratch/user" -e cpu-clock:u -c 1960001 -- "${java[@]}" beside 150 </dev/null >"$scratch/log" 2>"$scratch/err" ||
    fail "cpu-clock:u: $(tail -n 5 "$scratch/err")"
"$jdperf" report "$scratch/user" --json >"$scratch/report" 2>"$scratch/err" || fail "cpu-clock:u: $(cat "$scratch/err")"
python3 - "$scratch/report" "$scratch/log" 2>"$scratch/err" >"$scratch/said" <<'END' || fail "cpu-clock:u: $(cat "$scratch/err" "$scratch/said")"
import json, sys
report = json.load(open(sys.argv[1]))
event = report["events"][0]
had = sum(int(line.split()[2]) for line in open(sys.argv[2]) if line.startswith("truth "))
seen = sum(row["total"][0] for row in report["methods"] if row["name"].startswith("ShortThreads.in"))
kernel = [row["name"] for row in report["methods"] if "kernel" in row["kinds"]]
print(f"{event['name']}: {event['samples']} samples, {seen / 1e9:.2f} s of the threads in user mode, which had {had / 1e9:.2f} s")
sys.exit(event["name"] != "cpu-clock:u" or event["weight"] != 1960001 * event["samples"] or bool(kernel) or
         not 0.6 * had < seen < 1.1 * had)
END
claim "own sampler, user mode alone" "$(cat "$scratch/said")"

# The kernel lowers what it allows when its interrupts took long, and refuses what is above; here it seems to.
echo 40 >"$scratch/rate"
# shellcheck disable=SC2016
unshare --mount --propagation private sh -c 'mount --bind "$0" /proc/sys/kernel/perf_event_max_sample_rate && exec "$@"' "$scratch/rate" \
    "$jdperf" record --sampler own -o "$scratch/lowered" -e cpu-clock -F 499 -- "$jdk/bin/java" -version >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
    fail "a lower rate: $(tail -n 5 "$scratch/err")"
grep -q 'allows 40 Hz .*, not 499' "$scratch/err" || fail "a lower rate is not said: $(head -n 5 "$scratch/err")"
grep -q 'recording cpu-clock at 38 Hz' "$scratch/err" || fail "a lower rate: $(head -n 5 "$scratch/err")"
! grep 'perf samples instead' "$scratch/err" || fail "a lower rate leaves the samples to perf"

# What software counts comes in bursts, of which samples at a frequency say nothing: by perf they weigh up to 40 times as
# much. There are some 20,000 faults more than the program's own; at -c 64 they are counted within 2 %, which is a sigma.
for given in "-F 499" "-c 64"; do
    read -r -a rate <<<"$given"
    PERF=/bin/false "$jdperf" record -o "$scratch/faults$given" -e page-faults "${rate[@]}" -- "$jdk/bin/java" -cp "$classes" Faults "$scratch/pages" 40 \
        </dev/null >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] || fail "page-faults, $given: $(tail -n 5 "$scratch/err")"
    "$jdperf" report "$scratch/faults$given" --json >"$scratch/report" 2>"$scratch/err" || fail "page-faults, $given: $(cat "$scratch/err")"
    python3 - "$scratch/report" "$scratch/log" >"$scratch/said" 2>"$scratch/err" <<'END' || fail "page-faults, $given: $(cat "$scratch/err" "$scratch/said")"
import json, sys
report = json.load(open(sys.argv[1]))
event = report["events"][0]
touched, had = next(map(int, line.split()[1:3]) for line in open(sys.argv[2]) if line.startswith("truth "))
touch = sum(row["total"][0] for row in report["methods"] if row["name"].startswith("Faults.touch("))
print(f"{event['samples']} samples weigh {event['weight']} faults of {had}, {touch} in touch() of {touched}")
sys.exit(event["name"] != "page-faults" or event["samples"] < 300 or not 0.8 < event["weight"] / had < 1.25 or not 0.75 < touch / touched < 1.25)
END
    claim "own sampler, page faults, $given" "$(cat "$scratch/said")"
done

# What perf alone can.
"$jdperf" record --sampler own -o "$scratch/tracepoint" -e syscalls:sys_enter_write -c 1 -- "$jdk/bin/java" -version >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
    fail "a tracepoint: $(tail -n 5 "$scratch/err")"
grep -q -- '--sampler own: .*; perf samples instead' "$scratch/err" || fail "nothing is said: $(cat "$scratch/err")"
[ "$(grep -c 'perf samples instead' "$scratch/err")" = 1 ] || fail "it is said twice"

# Not root: with CAP_PERFMON alone other processes' samples are dropped by us, which is said once.
if part "a user with CAP_PERFMON" other_user_runs && part "a user with CAP_PERFMON" setpriv --reuid=65534 --regid=65534 \
    --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon test -x "$jdtool" -a -r "$agent"; then
    mkdir -m 777 "$scratch/theirs"
    cp -r "$classes" "$scratch/theirs/classes"
    chmod -R a+rX "$scratch"
    setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon \
        "$jdperf" record --sampler own -o "$scratch/theirs/perfmon" -e cpu-clock -F 499 -- "${java[@]/#$classes/$scratch/theirs/classes}" \
        beside 300 </dev/null >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] || fail "CAP_PERFMON: $(tail -n 5 "$scratch/err")"
    ! grep -q 'perf samples instead' "$scratch/err" || fail "CAP_PERFMON: $(grep 'perf samples instead' "$scratch/err")"
    [ "$(grep -c 'CAP_BPF' "$scratch/err")" = 1 ] || fail "CAP_PERFMON: what is missing is not said once: $(cat "$scratch/err")"
    judge theirs/perfmon "$scratch/log" 0 5
fi

# With no rights at all threads are sampled by themselves. On a busy machine periods that end with a thread shift shares by
# up to 5 points, to its favour or not.
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if part "a user without rights" other_user_runs && part "a user without rights" "${nobody[@]}" "$JDAGENT_BUILD/tests/can-sample" &&
    part "a user without rights" "${nobody[@]}" test -x "$jdtool" -a -r "$agent"; then
    mkdir -p "$scratch/theirs"
    chmod 777 "$scratch/theirs"
    cp -r "$classes" "$scratch/theirs/"
    chmod -R a+rX "$scratch"
    theirs=("${nobody[@]}" "${java[@]/#$classes/$scratch/theirs/$(basename "$classes")}" beside 300)
    # by_thread PROFILE ARGUMENT...
    by_thread() {
        PERF=/bin/false "${nobody[@]}" "$jdperf" record -o "$scratch/theirs/$1" -e cpu-clock -F 499 "${@:2}" >"$scratch/log" 2>"$scratch/err" ||
            [ $? = 3 ] || fail "nobody, $1: $(tail -n 5 "$scratch/err")"
        [ "$(grep -c 'each thread is sampled by itself' "$scratch/err")" = 1 ] || fail "nobody, $1: what is missing is not said once: $(cat "$scratch/err")"
    }
    # Each page fault would come here, without a filter in the kernel.
    PERF=/bin/false "${nobody[@]}" "$jdperf" record -o "$scratch/theirs/faults" -e page-faults -- "$jdk/bin/java" -version >"$scratch/log" 2>"$scratch/err" || :
    grep -q 'is the kernel.s guess' "$scratch/err" || fail "nobody, page faults: not perf's: $(cat "$scratch/err")"
    by_thread started -- "${theirs[@]:${#nobody[@]}}" </dev/null
    judge theirs/started "$scratch/log" 0 5
    rm -f "$scratch/program" "$scratch/err" # who waits for a line must not find the last program's
    "${theirs[@]}" <"$scratch/input" >"$scratch/program" 2>&1 &
    pid=$!
    children+=("$pid")
    exec 7>"$scratch/input"
    wait_for "$scratch/program" '^ready'
    by_thread attached -p "$pid" &
    recorder=$!
    wait_for "$scratch/err" 'recording cpu-clock'
    echo >&7
    exec 7>&-
    wait "$pid" || fail "the program failed: $(tail -n 3 "$scratch/program")"
    wait "$recorder" || exit 1
    judge theirs/attached "$scratch/program" 0 5
fi

# Killed: the sampler, the naming and the session end by themselves.
rm -f "$scratch/program" "$scratch/err" # who waits for a line must not find the last program's
"${java[@]}" beside 1000000 </dev/null >"$scratch/program" 2>&1 &
pid=$!
children+=("$pid")
wait_for "$scratch/program" '^ready'
# All of the machine, also who is no JVM. (This one has no agent: the profile is a bad one, 3.)
while :; do :; done &
busy=$!
children+=("$busy")
"$jdperf" record --sampler own -o "$scratch/machine" -e cpu-clock -F 499 -a -d 1s 2>"$scratch/err" || [ $? = 3 ] || fail "-a: $(tail -n 5 "$scratch/err")"
kill "$busy"
perf script -i "$scratch/machine/perf.jit.data" -F pid >"$scratch/pids" 2>/dev/null
for process in "$pid" "$busy"; do
    grep -qw "$process" "$scratch/pids" || fail "-a: process $process is not in the profile"
done

# Several JVMs, by perf as well; the recording ends with the last of them.
"${java[@]}" beside 1000000 second-of-$pid </dev/null >"$scratch/second" 2>&1 &
second=$!
children+=("$second")
wait_for "$scratch/second" '^ready'
# both PROFILE: both are in it, and their dumps.
both() {
    [ "$(find "$scratch/$1" -name 'jit-*.dump' | wc -l)" = 2 ] || fail "$1: not two dumps: $(ls "$scratch/$1")"
    perf script -i "$scratch/$1/perf.jit.data" -F pid >"$scratch/pids" 2>/dev/null
    for process in "$pid" "$second"; do
        grep -qw "$process" "$scratch/pids" || fail "$1: process $process is not in the profile"
    done
}
"$jdperf" record --sampler perf -o "$scratch/perfs" -e cpu-clock -F 499 -p "$pid,$second" -d 1 >"$scratch/log" 2>"$scratch/err" || [ $? = 3 ] ||
    fail "two by perf: $(tail -n 5 "$scratch/err")"
both perfs
rm "$scratch/err"
"$jdperf" record -o "$scratch/matched" -e cpu-clock -F 499 --match "second-of-$pid" --match "third-of-$pid" 2>"$scratch/err" &
matched=$!
"$jdperf" record -o "$scratch/two" -e cpu-clock -F 499 -p "second-of-$pid" "$pid" "$second" 2>"$scratch/two.err" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
wait_for "$scratch/two.err" 'recording cpu-clock'
sleep 0.5 # to be sampled for
kill "$second"
wait "$matched" || fail "--match: $(tail -n 5 "$scratch/err")"
kill -0 "$recorder" || fail "the recording ends with the first of two JVMs"
kill "$pid"
wait "$recorder" || fail "two: $(tail -n 5 "$scratch/two.err")"
both two
[ "$(sed -n 's/^pid=//p' "$scratch/matched/profile")" = "$second" ] || fail "--match took others: $(cat "$scratch/matched/profile")"

rm -f "$scratch/program" "$scratch/err"
"${java[@]}" beside 1000000 </dev/null >"$scratch/program" 2>&1 &
pid=$!
children+=("$pid")
wait_for "$scratch/program" '^ready'
# Who is killed while he samples has not recorded all, which is said; the profile has what there was.
"$jdperf" record -o "$scratch/cut" -e cpu-clock -F 499 -d 120 -p "$pid" 2>"$scratch/err" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
sleep 0.5 # to be sampled for
pkill -KILL -P "$recorder" -x jdperf-sampler || fail "no sampler of ours runs: $(cat "$scratch/err")"
status=0
wait "$recorder" || status=$?
[ "$status" = 1 ] || fail "status $status of a recording whose sampler was killed"
grep -q 'signal 9 ended the process that takes the samples: the profile ends here' "$scratch/err" ||
    fail "it is not said that the sampler was killed: $(cat "$scratch/err")"
"$jdperf" report "$scratch/cut" >"$scratch/said" 2>&1 || fail "no profile of what there was: $(cat "$scratch/said")"

# What a ring has no room for behind its last record no record tells: the one that is held back reads nothing while the
# program runs, and the program no longer runs when it reads again.
if part "samples lost behind the last record" test "$(echo -e "6.0\n$(uname -r)" | sort -V | head -n 1)" = 6.0; then
    rm -f "$scratch/err"
    "$jdperf" record -o "$scratch/lost" --stacks copy -m 128K -e cpu-clock -F 499 -p "$pid" 2>"$scratch/err" &
    recorder=$!
    wait_for "$scratch/err" 'recording cpu-clock'
    sampler=$(pgrep -x jdperf-sampler -P "$recorder") || fail "there is no sampler of $recorder"
    ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
    kill -STOP "$sampler"
    before=$(ticks)
    wait_until 60 "a second of the program's" eval "((\$(ticks) - $before > 100))"
    kill -STOP "$pid"
    kill -CONT "$sampler"
    kill -INT "$recorder"
    wait "$recorder" || [ $? = 3 ] || fail "lost: $(tail -n 5 "$scratch/err")"
    kill -CONT "$pid"
    lost=$(sed -n 's/.*"lost_samples": \([0-9]*\).*/\1/p' "$scratch/lost/scorecard.json")
    claim "own sampler, samples lost behind the last record" "$lost"
    ((lost > 200)) || fail "of some 499 samples that there was no room for $lost are told: $(cat "$scratch/err")"
fi

# A processor that comes online and cannot be sampled is said, and the others are sampled. Here it seems to come, when no
# more descriptors may be had.
if part "a processor that comes online" test "$(nproc)" -gt 1; then
    rm -f "$scratch/err"
    echo 0 >"$scratch/online"
    # shellcheck disable=SC2016
    unshare --mount --propagation private sh -c 'mount --bind "$0" /sys/devices/system/cpu/online && exec "$@"' "$scratch/online" \
        "$jdperf" record -o "$scratch/late" -e cpu-clock -F 499 -p "$pid" 2>"$scratch/err" &
    recorder=$!
    wait_for "$scratch/err" 'recording cpu-clock'
    sampler=$(pgrep -x jdperf-sampler -P "$recorder") || fail "there is no sampler of $recorder"
    prlimit --pid "$sampler" --nofile=3:
    echo 0-1 >"$scratch/online"
    wait_until 60 "a word about the processor" eval "! kill -0 $sampler || grep -q 'processor 1' /proc/$sampler/fd/2"
    kill -0 "$sampler" || fail "the recording ends when a processor comes online: $(cat "$scratch/err")"
    kill -INT "$recorder"
    wait "$recorder" || [ $? = 3 ] || fail "late: $(tail -n 5 "$scratch/err")"
    [ "$(grep -c 'processor 1 came online and is not sampled: Too many open files' "$scratch/err")" = 1 ] ||
        fail "late: it is not said once: $(cat "$scratch/err")"
fi

rm -f "$scratch/err"
"$jdperf" record -o "$scratch/killed" -e cpu-clock -p "$pid" 2>"$scratch/err" &
recorder=$!
wait_for "$scratch/err" 'recording cpu-clock'
mapfile -t left < <(pgrep -P "$recorder")
pgrep -P "$recorder" -x jdperf-sampler >"$scratch/said" || fail "no sampler of ours runs: $(cat "$scratch/err")"
kill -KILL "$recorder"
for process in "${left[@]}"; do
    wait_until 60 "process $process is gone" eval "! kill -0 $process 2>/dev/null"
done
kill "$pid"
