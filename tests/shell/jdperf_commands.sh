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
run 0 "$JDPERF" record -o p -- java -Xmx1g Main x
says "argument: $agent/p"
says 'argument: -XX:+PreserveFramePointer'
says 'argument: -XX:+DebugNonSafepoints'
says_not "tool options: -"
awk '/argument: -XX:\+UnlockDiagnosticVMOptions/ { u = NR } /DebugNonSafepoints/ { d = NR }
    /argument: -agentpath/ { a = NR } /argument: -Xmx1g/ { x = NR }
    END { exit !(u && u < d && d < a && a < x) }' output || fail "the order of the arguments"
says 'sampling the timer cpu-clock instead'
grep -q -- '-k mono -e cpu-clock -F 997' perf.arguments || fail "perf's arguments"
grep -q -- "--buildid-dir $WORK/p/buildid record" perf.arguments || fail "the build-id directory"

run 0 "$JDPERF" record -o p -- "$WORK/bin/java" @arguments
says "argument: $agent/p"
run 0 "$JDPERF" record -o p -- env A=B C=D java Main
says "argument: $agent/p"

# Anything else: through the environment, behind the user's own.
run 0 "$JDPERF" record -o p -- mvn
says 'argument: from-mvn'
says "$agent/p"
says 'tool options: -XX:+UnlockDiagnosticVMOptions'
JAVA_TOOL_OPTIONS='-Dmine=1' run 0 "$JDPERF" record -o p -- mvn
says 'tool options: -Dmine=1 -XX:+Unlock'
run 0 "$JDPERF" record -o 'a b' -- mvn
says "\"$agent/a b\""

# Stacks, events, options.
run 0 "$JDPERF" record -o p --stacks dwarf -- java Main
says_not PreserveFramePointer
says "$agent/p,methods=on"
grep -q -- '--call-graph dwarf,65528' perf.arguments || fail "dwarf stacks"
run 0 "$JDPERF" record -o p --stacks none --agent-options=tier=on -- java Main
says "=tier=on,dir=$WORK/p"
run 0 "$JDPERF" record -o p --stacks dwarf --agent-options=methods=off -- java Main
says "=methods=off,dir=$WORK/p"
run 0 "$JDPERF" record -o p -e page-faults -F 50 -- java Main
grep -q -- '-e page-faults -F 50' perf.arguments || fail "event and frequency"
PERF_RECORD_FREQ=77 run 0 "$JDPERF" record -o p -- java Main
grep -q -- '-F 77' perf.arguments || fail "PERF_RECORD_FREQ"
FAKE_COUNTERS=yes run 0 "$JDPERF" record -o p -- java Main
says 'recording cycles'

# The command's status is told; its standard input and signals are its own.
run 5 "$JDPERF" record -o p -- sh -c 'exit 5'
says 'the command ended with status 5'
[[ $(echo typed | "$JDPERF" record -o p -- head -n 1 2>/dev/null) == typed ]] || fail "standard input"

# A time limit ends the recording, not the command.
run 0 "$JDPERF" record -o p -d 1 -- sh -c 'sleep 2; echo whole'
says whole
says 'the command goes on'
PERF_RECORD_SECONDS=1 run 0 "$JDPERF" record -o p -- sh -c 'sleep 2; echo whole'
says 'for 1 s'

# What perf complains of is passed on.
FAKE_COMPLAINT='failed to write perf data, error: No space left on device' run 0 "$JDPERF" record -o p -- true
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

# A jdtool that fails, or cannot inject: perf inject --jit serves.
# shellcheck disable=SC2016
failing='#!/bin/sh\n[ "$1" = --help ] && echo "  jdtool inject" && exit\n'
mkdir broken
cp "$JDAGENT_BUILD/libjdagent.so" broken/
printf '%b' "$failing"'echo cannot do that >&2\nexit 1\n' >broken/jdtool
chmod +x broken/jdtool
JDAGENT_BUILD=$WORK/broken run 0 "$JDPERF" record -o p -- true
says 'cannot do that'
says 'falling back to perf inject --jit'
grep -q 'inject --jit -i' perf.arguments || fail "perf inject did not run"
printf '#!/bin/sh\nexit 0\n' >broken/jdtool
JDAGENT_BUILD=$WORK/broken run 0 "$JDPERF" record -o p -- true
says 'using perf inject --jit'
rm broken/jdtool
JDAGENT_BUILD=$WORK/broken run 0 "$JDPERF" record -o p -- true
says 'using perf inject --jit'

# Ctrl-C while the code is being named ends that; the recording is kept.
printf '%b' "$failing"'touch injecting\nexec sleep 60\n' >broken/jdtool
chmod +x broken/jdtool
JDAGENT_BUILD=$WORK/broken env --default-signal=INT setsid "$JDPERF" record -o c -- true >output 2>&1 </dev/null &
session=$!
for ((i = 0; i < 600; i++)); do
    [[ -e injecting ]] && break
    sleep 0.1
done
kill -INT -- "-$session"
status=0
wait "$session" || status=$?
((status == 1)) || fail "status $status after Ctrl-C while injecting"
says 'jdperf inject'
[[ -s c/perf.data ]] || fail "the recording is gone"
! pgrep -s "$session" >/dev/null || fail "something goes on: $(pgrep -as "$session")"
