#!/usr/bin/env bash
# Running JVMs: attach, status, stop, record, map. With every JDK there is.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
export PERF_RECORD_FREQ=997 # many samples in a short time
command -v jattach >/dev/null || command -v jcmd >/dev/null || skip "neither jattach nor jcmd is installed"
compile_sample

jvm=''
trap '[[ -z $jvm ]] || kill "$jvm" 2>/dev/null || :; rm -rf "$WORK" "/tmp/perf-$jvm.map"' EXIT

# One with -Xrs does not listen to SIGQUIT, and has its socket from the start.
can_be_asked() {
    listens "$jvm" || [[ -S /tmp/.java_pid$jvm ]]
}

launch() {
    "$@" >jvm.out 2>jvm.err </dev/null &
    jvm=$!
    wait_until 60 JVM can_be_asked
}

start_jvm() {
    launch "$@"
    wait_until 60 "JVM that is up" is_up "$jvm"
}

stop_jvm() {
    kill "$jvm"
    wait "$jvm" 2>/dev/null || :
    rm -f "/tmp/perf-$jvm.map"
    jvm=''
}

# self METHOD: its share of the last report's samples, in percent.
self() {
    awk -v method="$1" 'index($3, method) == 1 { sum += $1 } END { printf "%d\n", sum }' output
}

share_named() {
    local all named
    read -r all named < <(perf script -f -i "$1/perf.jit.data" -G -F ip,sym,dso 2>/dev/null | generated_frames)
    note "$named of $all leaf samples named"
    ((all > 100 && named * 1000 >= all * 999))
}

for jdk in $(find /usr/lib/jvm -maxdepth 1 -type d | sort); do
    [[ -x $jdk/bin/java ]] || continue
    echo "== $jdk"
    start_jvm "$jdk/bin/java" -cp classes Calm 600 unique-name-of-this-jvm
    wait_until 60 "JVM at work" has_worked "$jvm" 1

    run 0 "$JDPERF" jvms
    version=$("$jdk/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p;q')
    grep -qE "^ *$jvm +$(id -un) +$version +[0-9]+% +- +yes +Calm 600 unique-name-of-this-jvm" output ||
        fail "jvms does not list $jvm of JDK $version: $(cat output)"

    # A session by hand.
    run 1 "$JDPERF" status "$jvm"
    says 'state=absent'
    mkdir -p dumps
    run 0 "$JDPERF" attach unique-name-of-this -o dumps
    says 'state=running mode=jitdump'
    says "file=$WORK/dumps/jit-$jvm.dump"
    ! grep -q '^JAVA_VERSION="2[1-9]' "$jdk/release" || says '-XX:+EnableDynamicAgentLoading'
    run 0 "$JDPERF" attach "$jvm"
    says 'nothing changed'
    run 0 "$JDPERF" map "$jvm"
    says 'making the map from its dump'
    grep -q 'Market' "/tmp/perf-$jvm.map" || fail "the map lacks the program's methods"
    run 0 "$JDPERF" stop "$jvm"
    says 'state=stopped'
    run 1 "$JDPERF" status "$jvm"
    run 0 "$JDAGENT_BUILD/jdtool" verify "dumps/jit-$jvm.dump"

    JITDUMPDIR=$WORK/dumps run 0 "$JDPERF" attach "$jvm"
    says "file=$WORK/dumps/.debug/jit/java-jit-$(date +%Y%m%d)"
    run 0 "$JDPERF" stop "$jvm"

    # What the agent refuses is told in its own words.
    run 1 "$JDPERF" attach "$jvm" --agent-options frobnicate=yes
    says "unknown option 'frobnicate'"

    # All in one.
    run 0 "$JDPERF" record -o "p" -p "$jvm" -d 2
    share_named p || fail "unnamed samples"
    [[ -f p/jit-$jvm.dump ]] || fail "the dump is not in the profile"
    run 1 "$JDPERF" status "$jvm"
    says 'state=stopped'
    run 0 "$JDPERF" report p --limit 0
    says 'Market.takeOrders()'
    run 0 "$JDPERF" flame p
    grep -q '^<title>jdperf record Market$\|^<title>.*perf record ' p/flamegraph.html || fail "the page is called: $(grep '^<title>' p/flamegraph.html)"
    # Stacks are copied, with or without frame pointers in the JVM.
    run 0 "$JDPERF" record --stacks copy -o p -p "$jvm" -d 1
    says 'stacks: copy'

    # A perf map: a snapshot, then followed.
    # perf-map-agent's users part its options by blanks.
    PERF_MAP_OPTIONS=' names=short   tier=on ' run 0 "$JDPERF" map "$jvm"
    grep -q ' Market.takeOrders \[C[12]\]' "/tmp/perf-$jvm.map" || fail "no method in the map, or not as PERF_MAP_OPTIONS says"
    run 0 "$JDPERF" map "$jvm" --agent-options names=short
    grep -q ' Market.takeOrders$' "/tmp/perf-$jvm.map" || fail "no method in the map"
    : >map.log # the last JDK's would say at once what is waited for
    env --default-signal=INT "$JDPERF" map "$jvm" --follow >map.log 2>&1 &
    follower=$!
    wait_until 60 "map that is kept" grep -q 'keeping it' map.log
    run 0 "$JDPERF" status "$jvm"
    says 'mode=map'
    kill -INT "$follower"
    wait "$follower" || fail "map --follow: $(cat map.log)"
    run 1 "$JDPERF" status "$jvm"
    stop_jvm

    # Half of the time goes to a loop, Market.price, that is inlined and calls nothing. HotSpot gives its instructions
    # to what is called behind it, ArrayList.grow, as the code was there before the agent.
    launch "$jdk/bin/java" -cp classes Market 600
    wait_until 60 "code that is hot" has_worked "$jvm" 3
    run 0 "$JDPERF" record -o p -p "$jvm" -d 2
    says 'only at calls'
    kill -STOP "$jvm" # it need not be busy while files are read
    run 0 "$JDPERF" report p --limit 0
    note "$(self Market.) % of the samples are Market's, $(self java.util.ArrayList.grow) % ArrayList.grow"
    (($(self Market.) >= 35 && $(self java.util.ArrayList.grow) <= 10)) || fail "$(head -n 12 output)"
    run 0 "$JDPERF" annotate p Market.takeOrders
    ! grep -q 'ArrayList.grow' <(head -n 60 output) || fail "instructions of ArrayList.grow: $(head -n 60 output)"
    kill -CONT "$jvm"
    stop_jvm
done

# Where there is no jattach, jcmd serves.
if part "attaching with jcmd" command -v jcmd; then
    commands_but jattach
    mkdir -p dumps
    start_jvm java "${IDLE_JVM[@]}" -cp classes Calm 600
    PATH=$WORK/few run 0 "$JDPERF" attach "$jvm" -o dumps
    says 'state=running'
    PATH=$WORK/few run 0 "$JDPERF" stop "$jvm"
    PATH=$WORK/few run 1 "$JDPERF" attach "$jvm" --agent-options frobnicate
    says "unknown option 'frobnicate'"
    stop_jvm
fi

# A JVM that ends while it is recorded leaves a profile; so does Ctrl-C, and the JVM lives on.
launch java -cp classes Market 2
run 0 "$JDPERF" record -o p -p "$jvm"
share_named p || fail "unnamed samples"
wait "$jvm" || fail "the JVM did not end well"
start_jvm java -cp classes Calm 600
: >output
env --default-signal=INT setsid "$JDPERF" record -o p -p "$jvm" >output 2>&1 </dev/null &
session=$!
wait_until 60 recording grep -q 'Ctrl-C ends' output
works_on "$jvm" 300
kill -INT -- "-$session"
wait "$session" || fail "status $? after Ctrl-C"
says 'interrupted'
run 0 "$JDPERF" report p --limit 0
says 'Market'
run 1 "$JDPERF" status "$jvm"
says 'state=stopped'

# One that outlives the command which started it, as a build tool's daemon does, does not write on into the profile.
mkfifo go
"$JDPERF" record -o d -- sh -c 'java -cp classes Calm 600 >calm.out 2>&1 <&- & echo $! >daemon; cat go' >output 2>&1 </dev/null &
session=$!
stop_jvm
wait_until 60 "the command's JVM" test -s daemon
jvm=$(cat daemon)
wait_until 60 "JVM that is up" is_up "$jvm"
echo >go
wait "$session" || fail "of a command with a daemon: $(cat output)"
says "process $jvm lives on without the agent"
run 1 "$JDPERF" status "$jvm"
says 'state=stopped'
kill "$jvm"
start_jvm java -cp classes Calm 600

# Killed, jdperf leaves no perf behind, and no session for good.
export WORK
: >output
"$JDPERF" record --sampler perf -o k -p "$jvm" >output 2>&1 </dev/null &
session=$!
wait_until 60 recording grep -q 'recording' output
recorder=$(pgrep -P "$session" -x perf)
kill -9 "$session"
wait "$session" 2>/dev/null || :
for ((i = 0; i < 100; i++)); do
    kill -0 "$recorder" 2>/dev/null || break
    sleep 0.1
done
! kill -0 "$recorder" 2>/dev/null || fail "perf goes on"
is_over() {
    [[ $("$JDPERF" status "$jvm" 2>&1 || :) == *state=stopped* ]]
}
is_stopped() {
    is_over && [[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]]
}
wait_until 10 'end of the session' is_stopped

# With its guardian killed first, the JVM itself ends the session; clean knows what lives.
: >output
"$JDPERF" record -o k -p "$jvm" >output 2>&1 </dev/null &
session=$!
wait_until 60 recording grep -q 'recording ' output
guardian=$(pgrep -P "$session" -x jdperf-guardian)
run 0 "$JDPERF" clean
says_not "/jdperf-$jvm."
run 0 "$JDPERF" status "$jvm"
says "lease=/tmp/jdperf-$jvm."
kill -9 "$guardian" "$session"
wait "$session" 2>/dev/null || :
wait_until 20 'end of the session' is_over
run 0 "$JDPERF" clean
says "/tmp/jdperf-$jvm."

# Two recordings of one JVM: neither ends the other's session, the last one ends it.
"$JDPERF" record -o one -p "$jvm" >one.log 2>&1 </dev/null &
first=$!
wait_until 60 recording grep -q 'recording ' one.log
"$JDPERF" record -o two -p "$jvm" >two.log 2>&1 </dev/null &
second=$!
wait_until 60 'second recording' grep -q 'recording ' two.log
grep -q 'a session already runs' two.log || fail "the second recording is not told of the first: $(cat two.log)"
kill -TERM "$first"
wait "$first" || fail "the first recording: $(cat one.log)"
run 0 "$JDPERF" status "$jvm"
says 'state=running'
size=$(stat -c %s one/jit-*.dump)
kill -TERM "$second"
wait "$second" || fail "the second recording: $(cat two.log)"
run 1 "$JDPERF" status "$jvm"
says 'state=stopped'
[[ $(stat -c %s one/jit-*.dump) == "$size" ]] || fail "the first profile's dump grew after its end"
for profile in one two; do
    [[ -s $profile/jit-$jvm.dump && -s $profile/jit-$jvm.methods ]] || fail "$profile has no dump"
done
[[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] || fail "a staging directory was left behind"

# Ended while the JVM is being attached to, it takes the session back.
if part "the end while it attaches" command -v jattach; then
    jattach=$(command -v jattach)
    export jattach
    fakes
    # shellcheck disable=SC2154
    fake jattach <<'END'
"$jattach" "$@" || exit
[[ $* == *dir=* ]] || exit 0
touch "$WORK/loaded"
for ((i = 0; i < 300; i++)); do [[ ! -e $WORK/killed ]] || break; sleep 0.1; done
END
    "$JDPERF" record -o q -p "$jvm" >output 2>&1 </dev/null &
    session=$!
    wait_until 60 "attach" test -e loaded
    kill "$session"
    touch killed
    ! wait "$session" || fail "it went on"
    rm bin/jattach
    wait_until 60 "end of the session, which ends itself" is_over
    [[ ! -e q ]] || fail "a directory of nothing was left behind"
fi

# perf that cannot start leaves the JVM as it was, and no directory.
fakes
fake perf <<'END'
[[ "$*" != *--control* ]] || { echo 'Error: Permission denied' >&2; exit 255; }
while (($#)); do [[ $1 != -o ]] || echo data >"$2"; shift; done
END
run 1 "$JDPERF" record --sampler perf -o q -p "$jvm" -d 5
rm "$WORK/bin/perf"
run 1 "$JDPERF" status "$jvm"
says 'state=stopped'
stop_jvm

# A process that would die of SIGQUIT is not asked: a JVM that has just been started is such a one.
start_jvm java -Xrs "${IDLE_JVM[@]}" -cp classes Calm 600
run 0 "$JDPERF" attach "$jvm" -o dumps
kill -0 "$jvm" || fail "a JVM with -Xrs was ended"
run 0 "$JDPERF" stop "$jvm"
stop_jvm
cat >Sleeper.c <<'END'
#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    return argc == 2 && dlopen(argv[1], RTLD_LAZY) && write(1, "loaded\n", 7) == 7 ? (int)sleep(600) : 1;
}
END
if part "a libjvm.so in no JVM" command -v cc && cc -o sleeper Sleeper.c -ldl; then
    ./sleeper "$(find -L "$(dirname "$(readlink -f "$(command -v java)")")/.." -name libjvm.so | head -n 1)" >sleeper.out &
    jvm=$!
    # Its first mapping is there before it can be run.
    wait_until 60 "library in the process" grep -q loaded sleeper.out
    run 1 "$JDPERF" attach "$jvm"
    says "does not accept attach requests"
    kill -0 "$jvm" || fail "the process was ended"
    stop_jvm
fi

# A JVM that cannot be attached to says so, and soon.
start_jvm java -XX:-EnableDynamicAgentLoading "${IDLE_JVM[@]}" -cp classes Calm 600
run 1 "$JDPERF" record -o q -p "$jvm" -d 5
says 'start it with -XX:+EnableDynamicAgentLoading'
stop_jvm
[[ ! -e q ]] || fail "a directory of nothing was left behind"
run 1 "$JDPERF" attach no-such-jvm-anywhere
says "no JVM's name contains"
run 1 "$JDPERF" attach $$
says 'is not a HotSpot JVM'
