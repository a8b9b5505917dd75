#!/usr/bin/env bash
# How the agent gets into a command's JVMs, and how commands end.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
fakes
fake_perf
fake java <<'END'
printf 'argument: %s\n' "$@"
printf 'tool options: %s\n' "${JAVA_TOOL_OPTIONS-}"
END
fake mvn <<'END'
exec java from-mvn
END
agent=-agentpath:$JDAGENT_BUILD/libjdagent.so=dir=$WORK

# A java command: as its first arguments.
run 0 "$JDPERF" record --sampler perf -o p --stacks fp -- java -Xmx1g Main x
says "argument: $agent/p,methods=off"
says 'argument: -XX:+PreserveFramePointer'
grep -q -- '-k mono -e cpu-clock -F 997.* --call-graph fp' perf.arguments || fail "perf's arguments for fp"
run 0 "$JDPERF" record --sampler perf -o p -- java -Xmx1g Main x
says "argument: $agent/p,methods=on,lines=tree"
says_not PreserveFramePointer
says 'argument: -XX:+DebugNonSafepoints'
says_not "tool options: -"
awk '/argument: -XX:\+UnlockDiagnosticVMOptions/ { u = NR } /DebugNonSafepoints/ { d = NR }
    /argument: -agentpath/ { a = NR } /argument: -Xmx1g/ { x = NR }
    END { exit !(u && u < d && d < a && a < x) }' output || fail "the order of the arguments"
says 'sampling the timer cpu-clock instead'
grep -q -- '-k mono -e cpu-clock -F 99 ' perf.arguments || fail "perf's arguments"
grep -q -- '--proc-map-timeout 20000' perf.arguments || fail "perf is in a hurry to read mappings"
grep -qE -- "--buildid-dir /proc/[0-9]+/fd/[0-9]+/buildid record" perf.arguments || fail "the build-id directory"

run 0 "$JDPERF" record --sampler perf -o p -- "$WORK/bin/java" @arguments
says "argument: $agent/p"
run 0 "$JDPERF" record --sampler perf -o p -- env A=B C=D java Main
says "argument: $agent/p"

# HotSpot ends at a native agent where it writes a CDS archive, and ignores it with AOTMode=create.
for writes in -Xshare:dump -XX:ArchiveClassesAtExit=a.jsa -XX:+AutoCreateSharedArchive -XX:AOTMode=create; do
    run 0 "$JDPERF" record --sampler perf -o p -- java "$writes" Main
    says_not 'argument: -agentpath'
    says "argument: $writes"
    says 'HotSpot loads no agent into a JVM that writes a CDS archive or an AOT cache'
done

# Anything else: through the environment, behind the user's own.
run 0 "$JDPERF" record --sampler perf -o p -- mvn
says 'argument: from-mvn'
says "$agent/p"
says 'tool options: -XX:+UnlockDiagnosticVMOptions'
says 'no JVM loaded the agent'
JAVA_TOOL_OPTIONS='-Dmine=1' run 0 "$JDPERF" record --sampler perf -o p -- mvn
says 'tool options: -Dmine=1 -XX:+Unlock'
run 0 "$JDPERF" record --sampler perf -o 'a b' -- mvn
says "\"$agent/a b,"

# Stacks, events, options.
run 0 "$JDPERF" record --sampler perf -o p --stacks dwarf -- java Main
says_not PreserveFramePointer
says "$agent/p,methods=on"
grep -q -- '--call-graph dwarf,65528' perf.arguments || fail "dwarf stacks"
run 0 "$JDPERF" record --sampler perf -o p --stacks none --agent-options=tier=on -- java Main
says "=tier=on,dir=$WORK/p"
run 0 "$JDPERF" record --sampler perf -o p --stacks dwarf --agent-options=methods=off -- java Main
says "=methods=off,dir=$WORK/p"
run 0 "$JDPERF" record --sampler perf -o p -e page-faults -F 50 -- java Main
grep -q -- '-e page-faults -F 50' perf.arguments || fail "event and frequency"
says 'how many page-faults a sample stands for is the kernel'
PERF_RECORD_FREQ=77 run 0 "$JDPERF" record --sampler perf -o p -- java Main
grep -q -- '-F 77' perf.arguments || fail "PERF_RECORD_FREQ"
run 0 "$JDPERF" record --sampler perf -o p -c 100000 -C 0,1 --cgroup=a,b -b --per-thread --all-user -- java Main
grep -q -- '-c 100000 .*-C0,1 --cgroup=a,b -b --per-thread --all-user' perf.arguments || fail "perf's own options: $(tail -n 1 perf.arguments)"
! tail -n 1 perf.arguments | grep -q -- ' -F ' || fail "a frequency beside a period"
run 2 "$JDPERF" record --sampler perf -o p --overwrite -- java Main
says 'unknown option: --overwrite'

# What -m, --no-inject and -d make of it.
run 0 "$JDPERF" record --sampler perf -o p -m 7M -- java Main
grep -qE -- ' -m 7M( |$)' perf.arguments || fail "perf's buffer: $(cat perf.arguments)"
run 0 "$JDPERF" record --sampler perf -o n --no-inject --keep-raw -- java Main
[[ -s n/perf.data && ! -e n/perf.jit.data && ! -e n/scorecard.json ]] || fail "--no-inject has named something: $(ls n)"
# The agent ends by itself soon after, whatever becomes of jdperf.
run 0 "$JDPERF" record --sampler perf -o p -d 7 -- java Main
says "$agent/p,methods=on,lines=tree,duration=9"
run 0 "$JDPERF" record --sampler perf -o p -- java Main
says_not 'duration='

# What was named well may go.
run 0 "$JDPERF" record --sampler perf -o n --stacks fp --discard-raw -- java Main
[[ ! -e n/perf.data && -s n/perf.jit.data ]] || fail "--discard-raw has kept the recording, or nothing: $(ls n)"

# Raw recordings that may not fit are told of, others are not.
run 0 "$JDPERF" record --sampler perf -o p --keep-raw -F 100000 -d 100000000 -- java Main
says 'this may fill the disk'
run 0 "$JDPERF" record --sampler perf -o p -F 100000 -d 100000000 -- java Main
says_not 'this may fill the disk'
run 0 "$JDPERF" record --sampler perf -o p --keep-raw -F 1 -d 1 -- java Main
says_not 'this may fill the disk'

# Old dumps and perf maps are others' to want: only --all takes them.
mkdir -p home/.debug/jit/java-jit-20200101.abcdefgh home/.debug/jit/mine
gone=$(sh -c 'echo $$')
touch "/tmp/perf-$gone.map" home/.debug/jitted-1-2.so
HOME=$WORK/home run 0 "$JDPERF" clean
[[ -e home/.debug/jit/java-jit-20200101.abcdefgh && -e /tmp/perf-$gone.map ]] || fail "clean took what --all is for"
HOME=$WORK/home run 0 "$JDPERF" clean --all
[[ ! -e home/.debug/jit/java-jit-20200101.abcdefgh && ! -e /tmp/perf-$gone.map && ! -e home/.debug/jitted-1-2.so ]] ||
    fail "clean --all left: $(find home/.debug) $(ls "/tmp/perf-$gone.map" 2>/dev/null)"
[[ -e home/.debug/jit/mine ]] || fail "clean --all took what nobody's agent made"

# The command's status is told; its standard input and signals are its own.
run 5 "$JDPERF" record --sampler perf -o p -- sh -c 'exit 5'
says 'the command ended with status 5'
[[ $(echo typed | "$JDPERF" record --sampler perf -o p -- head -n 1 2>/dev/null) == typed ]] || fail "standard input"

# Behind the command's first word all is the command's: -h is no question to us.
for option in -h --help; do
    run 0 "$JDPERF" record --sampler perf -o p java $option localhost
    says "argument: $option"
    says 'argument: localhost'
    run 0 "$JDPERF" record --sampler perf -o p $option java
    says 'usage: jdperf record'
    says_not 'argument: '
done

# Under sudo the profile is for whoever typed it, and nothing else is: a library that perf has linked into it stays
# root's, and so does a directory that was put in its place: what was made is what is written into and given.
if part "sudo" is_root; then
    mkdir beside
    touch beside/library
    chmod 700 beside
    SUDO_UID=65534 SUDO_GID=65533 run 0 "$JDPERF" record --sampler perf -o s -- ln "$WORK/beside/library" s/linked
    [[ $(find s ! -uid 65534 -o ! -gid 65533) == s/linked ]] || fail "of root still: $(find s -ls)"
    [[ $(stat -c %u beside/library) == 0 ]] || fail "a file with another name was given away"
    # At one stroke: who names the samples meanwhile finds a directory at any time.
    SUDO_UID=65534 SUDO_GID=65533 run 0 "$JDPERF" record --sampler perf -o t -- python3 -c '
import ctypes, shutil
RENAME_EXCHANGE = 2
assert ctypes.CDLL(None).renameat2(-100, b"t", -100, b"beside", RENAME_EXCHANGE) == 0
shutil.copy("beside/profile", "t/")'
    [[ -z $(find t -uid 65534) ]] || fail "another directory was given away: $(find t -ls)"
    [[ -s beside/perf.jit.data && $(stat -c %u beside) == 65534 ]] || fail "the profile is not where it was made: $(ls beside)"
    run 0 "$JDPERF" record --sampler perf -o u -- true
    [[ -z $(find u ! -uid 0) ]] || fail "without sudo it is not root's: $(find u -ls)"
fi

# A time limit ends the recording, not the command.
# shellcheck disable=SC2016
run 0 "$JDPERF" record --sampler perf -o p -d 1 -- \
    sh -c 'i=0; until grep -q "the command continues" output || [ $((i += 1)) = 1200 ]; do sleep 0.1; done; echo whole'
says whole
says 'the command continues'
PERF_RECORD_SECONDS=1 run 0 "$JDPERF" record --sampler perf -o p -- true
says 'for 1 s'
run 0 "$JDPERF" record --sampler perf -o p -d 60s -- true
says 'for 60 s'
run 0 "$JDPERF" record --sampler perf -o p -d 2m -- true
says 'for 120 s'

# What perf complains of is passed on.
FAKE_COMPLAINT='failed to write perf data, error: No space left on device' run 0 "$JDPERF" record --sampler perf -o p -- true
says 'perf: failed to write perf data, error: No space left'

# Ctrl-C reaches the command, and the profile is still made.
env --default-signal=INT setsid bash -c "exec '$JDPERF' record -o c -- sh -c 'trap \"echo told; exit 9\" INT; touch started; while :; do sleep 0.1; done'" \
    >output 2>&1 </dev/null &
session=$!
for ((i = 0; i < 600; i++)); do
    [[ -e started ]] && break
    sleep 0.1
done
[[ -e started ]] || fail "the command did not start"
kill -INT -- "-$session"
status=0
wait "$session" || status=$?
((status == 0)) || fail "status $status after Ctrl-C"
says told
says 'interrupted'
says 'look at it with'
