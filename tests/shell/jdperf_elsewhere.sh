#!/usr/bin/env bash
# Root profiles JVMs of other users and in other namespaces.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
export PERF_RECORD_FREQ=997 # many samples in a short time
((EUID == 0)) || skip "only root can profile other users' JVMs"
unshare --pid --fork --mount --mount-proc true 2>/dev/null || skip "unshare cannot make namespaces here"
compile_sample
chmod 755 "$WORK"
java=$(readlink -f "$(command -v java)")
quick=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC) # where C2 is not what is asked about

jvm=''
trap '[[ -z $jvm ]] || kill "$jvm" 2>/dev/null || :; rm -rf "$WORK"' EXIT

wait_for_jvm() {
    wait_until 60 "JVM that listens" listens "$jvm"
    wait_until 60 "JVM at work" has_worked "$jvm" 1
}

named() {
    local all named
    read -r all named < <(perf script -f -i p/perf.jit.data -G -F ip,sym,dso 2>/dev/null | generated_frames)
    note "$named of $all leaf samples named"
    ((all > 100 && named * 1000 >= all * 999)) || fail "unnamed samples"
}

echo "== another user's JVM"
"${AS_NOBODY[@]}" "$java" -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
jvm=$!
wait_for_jvm
run 0 "$JDPERF" record -o p -p "$jvm" -d 2
named
[[ $(stat -c %u "p/jit-$jvm.dump") == 0 ]] || fail "the dump in root's profile is not root's"
[[ -z $(find /tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] || fail "a staging directory was left behind"
run 0 "$JDPERF" attach "$jvm"
staging=$(sed -n 's|.*file=\(/tmp/jdperf-[^/]*\)/.*|\1|p' output)
[[ $(stat -c %u:%a "$staging") == 65534:700 ]] || fail "the staging directory is not the user's own"
[[ -z $(find "$staging" ! -user 65534) ]] || fail "something in the user's directory is not his"
run 0 "$JDPERF" clean -n
says_not "$staging"
run 0 "$JDPERF" stop "$jvm"
run 0 "$JDPERF" clean -n
says "would remove $staging"
[[ -d $staging ]] || fail "--dry-run removed something"
run 0 "$JDPERF" clean
[[ ! -e $staging ]] || fail "clean left $staging"
# The agent's file is gone; the agent is not.
run 0 "$JDPERF" attach "$jvm"
run 0 "$JDPERF" stop "$jvm"
run 0 "$JDPERF" clean
kill "$jvm"
wait "$jvm" 2>/dev/null || :

echo "== a JVM in namespaces of its own, with a /tmp of its own"
mkdir elsewhere
# As a container: the program's files are there, and nothing else of ours.
# shellcheck disable=SC2016
unshare --pid --fork --mount --mount-proc sh -c '
    mount --rbind / "$1/elsewhere" && mount -t tmpfs tmpfs "$1/elsewhere/tmp" && mkdir "$1/elsewhere/tmp/app" &&
    cp -r "$1/classes" "$1/elsewhere/tmp/app/" && cd "$1/elsewhere/tmp/app" && mount -t proc proc "$1/elsewhere/proc" &&
    exec chroot "$1/elsewhere" sh -c "cd /tmp/app && exec $2 -cp classes Calm 600"' sh "$WORK" "$java" >jvm.out 2>&1 </dev/null &
outer=$!
inside() { jvm=$(pgrep -P "$outer") && listens "$jvm"; }
wait_until 60 "JVM in the namespaces" inside
wait_for_jvm
[[ $(awk '/^NSpid:/ { print $NF }' "/proc/$jvm/status") == 1 ]] || fail "it does not see itself as 1"
# Its files are not ours: perf has to note what all of them are, hit or not.
fakes
fake noting-perf <<'END'
printf '%s\n' "$*" >>"$WORK/noted"
exec perf "$@"
END
export WORK
PERF=noting-perf run 0 "$JDPERF" record -o p --sampler perf --keep-raw -p "$jvm" -d 2
named
grep -q -- '--buildid-all' noted || fail "perf was not asked for all build-ids: $(cat noted)"
[[ -f p/jit-1.dump ]] || fail "the dump was not fetched"
[[ -z $(find "/proc/$jvm/root/tmp" -maxdepth 1 -name 'jdperf-*') ]] || fail "a staging directory was left behind"
# The agent's file went with that session, the JVM has it still: an event's probe has its place all the same.
may_probe() { : >>/sys/kernel/tracing/uprobe_events; }
if part "an event's probe" may_probe; then
    PERF_RECORD_FREQ=99 run 0 "$JDPERF" record -o e --alloc -p "$jvm" -d 1
    says_not 'for a probe'
    says 'allocations'
fi
run 0 "$JDPERF" attach "$jvm"
says 'file=/tmp/jdperf-1.'
run 0 "$JDPERF" stop "$jvm"
run 0 "$JDPERF" clean
says '/root/tmp/jdperf-1.'
[[ -z $(find "/proc/$jvm/root/tmp" -maxdepth 1 -name 'jdperf-*') ]] || fail "clean left a directory"
# While it lives perf looks for files in the JVM's namespace.
run 0 "$JDPERF" report p --limit 0
says 'Market.takeOrders()'
run 0 "$JDPERF" map "$jvm"
grep -q Market.takeOrders "/tmp/perf-$jvm.map" || fail "no map on this side"
run 1 "$JDPERF" status "$jvm"
# What the agent writes at its end is on this side, too: between it and the last copy there is something else.
export jvm
jattach=$(command -v jattach) || skip "jattach is not installed"
export jattach
fake jattach <<'END'
status=0
"$jattach" "$@" || status=$?
if [[ $* == *stop* ]]; then
    printf '1000 10 what the last copy has to replace\n' >"/tmp/perf-$jvm.map"
    touch "$WORK/stopped"
fi
exit "$status"
END
env --default-signal=INT "$JDPERF" map "$jvm" --follow >map.log 2>&1 &
follower=$!
wait_until 60 'map that is kept' grep -qs 'keeping it' map.log
kill -INT "$follower"
wait "$follower" || fail "map --follow: $(cat map.log)"
[[ -e stopped ]] || fail "the session was ended by other means than jattach: this tests nothing"
rm bin/jattach
grep -q Market.takeOrders "/tmp/perf-$jvm.map" || fail "no copy of the map at its end"
cmp "/tmp/perf-$jvm.map" "/proc/$jvm/root/tmp/perf-1.map" || fail "the last copy is not what the agent left"
kill -9 "$jvm"
wait "$outer" 2>/dev/null || :
run 0 "$JDPERF" clean -n --all
says "would remove /tmp/perf-$jvm.map"
rm -f "/tmp/perf-$jvm.map"
jvm=''
# And after its life.
run 0 "$JDPERF" inject p
named
run 0 "$JDPERF" report p --limit 0
says 'Market.takeOrders()'

# start_on OPTION DIRECTORY...: a JVM of another user that sees these mounted with that option, /tmp first.
start_on() {
    # shellcheck disable=SC2016
    unshare --mount sh -c '
        cd "$1" && java=$2 && on=$3 && shift 3 && for d; do mount -t tmpfs -o "mode=1777,$on" tmpfs "$d"; done &&
        cp -r classes /tmp && cd /tmp &&
        exec setpriv --reuid=65534 --regid=65534 --clear-groups "$java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dbusy=0 -cp classes Calm 600' \
        sh "$WORK" "$java" "$@" >jvm.out 2>&1 </dev/null &
    jvm=$!
    wait_until 60 "JVM that listens" listens "$jvm"
    wait_until 60 "JVM that is up" is_up "$jvm"
}

echo "== a command whose JVMs lose the agent"
# attached COMMAND…: it is recorded, its JVM gets the agent all the same.
attached() {
    local status=0
    "$JDPERF" record -o lost -- "$@" >output 2>&1 || status=$?
    ((status == 0 || status == 3)) || fail "status $status"
    says 'started without the agent: attaching to it'
    says_not 'no JVM loaded the agent'
    awk -F '[:,]' '/"unnamed_frames_share"/ { print "-- unnamed:" $2; exit $2 > 0.2 }' lost/scorecard.json ||
        fail "frames have no names: $(cat lost/scorecard.json)"
    compgen -G "lost/jit-*.dump" >/dev/null || fail "the dump is not in the profile"
    [[ -z $(find /tmp -maxdepth 1 -name "jdperf-[0-9]*.*" -newer lost/profile) ]] || fail "a staging directory was left behind"
}
attached env -i "$java" "${quick[@]}" -cp classes Calm 2
attached sh -c '"$@"; true' sh "${AS_NOBODY[@]}" env -i "$java" "${quick[@]}" -cp classes Calm 2
attached "${AS_NOBODY[@]}" "$java" "${quick[@]}" -cp classes Calm 2 # who may not write there
# One that cannot be attached to is no reason to leave out those that follow.
jattach=$(command -v jattach)
fake jattach <<END
[[ \$2 != load || -e $WORK/refused ]] || { : >$WORK/refused; echo no; exit 1; }
exec $jattach "\$@"
END
# shellcheck disable=SC2016
"$JDPERF" record -o both -- sh -c 'env -i "$@" 1; env -i "$@" 2' sh "$java" "${quick[@]}" -cp classes Market >output 2>&1 || (($? == 3)) ||
    fail "status $?: $(cat output)"
rm bin/jattach
[[ $(grep -c 'its generated code has no names' output) == 1 && $(compgen -G 'both/jit-*.dump' | wc -l) == 1 ]] ||
    fail "not one of two JVMs was attached to: $(cat output)"
mkdir root
export -f attached says says_not fail
# shellcheck disable=SC2016
WORK=$WORK JDPERF=$JDPERF run 0 unshare --mount bash -euc 'mount --rbind / root && mount -t tmpfs tmpfs root/tmp && cp -r classes root/tmp/
    attached chroot root "$@" -cp /tmp/classes Calm 2' bash "$java" "${quick[@]}"

echo "== a /tmp from which nothing may be run"
start_on noexec /tmp
run 0 "$JDPERF" attach "$jvm"
says 'file=/var/tmp/jdperf-'
run 0 "$JDPERF" stop "$jvm"
run 0 "$JDPERF" clean -n
says 'would remove /var/tmp/jdperf-'
[[ $(grep -c 'would remove .*/var/tmp/jdperf-' output) == 1 ]] || fail "a directory that two namespaces share is told of twice"
run 0 "$JDPERF" clean
kill "$jvm"
wait "$jvm" 2>/dev/null || :
# One that ends while it is recorded leaves nothing there.
start_on noexec /tmp
(wait_until 60 recording grep -qs 'recording ' output; works_on "$jvm" 300; kill "$jvm") &
run 0 "$JDPERF" record -o p -p "$jvm" -d 60
[[ -z $(find /var/tmp -maxdepth 1 -name "jdperf-$jvm.*") ]] || fail "a staging directory was left behind"
start_on noexec /tmp /var/tmp /dev/shm
run 1 "$JDPERF" record -o q -p "$jvm" -d 1
says 'mounted noexec'
run 1 "$JDPERF" status "$jvm"
says 'state=absent'
[[ ! -e q && -z $(find "/proc/$jvm/root/tmp" -maxdepth 1 -name 'jdperf-*') ]] || fail "something was left behind"
kill "$jvm"
wait "$jvm" 2>/dev/null || :

echo "== another clock"
if unshare --time true 2>/dev/null; then
    run 0 "$JDPERF" record -o clock -- unshare --time --monotonic 1000000 "$java" "${quick[@]}" -cp classes Calm 2
    says_not 'before the agent was loaded'
    run 1 unshare --time --monotonic -7 "$JDPERF" record -o q -- "$java" "${quick[@]}" -cp classes Market 2
    says 'this time namespace has another clock'
    run 1 unshare --time --monotonic -7 timeout 60 "$JDPERF" watch -o q
    says 'this time namespace has another clock'
fi

echo "== a /tmp without room"
start_on size=1M /tmp
run 0 "$JDPERF" attach "$jvm"
says 'file=/var/tmp/jdperf-'
run 0 "$JDPERF" stop "$jvm"
run 0 "$JDPERF" doctor "$jvm"
says 'its dump goes into its /var/tmp'
run 0 "$JDPERF" clean
kill "$jvm"
wait "$jvm" 2>/dev/null || :
start_on size=1M /tmp /var/tmp /dev/shm
run 1 "$JDPERF" record -o q -p "$jvm" -d 1
says 'free some space in its /tmp, /var/tmp or /dev/shm'
[[ ! -e q && -z $(find "/proc/$jvm/root/tmp" -maxdepth 1 -name 'jdperf-*') ]] || fail "something was left behind"
kill "$jvm"
wait "$jvm" 2>/dev/null || :
start_on mode=755 /tmp
run 1 "$JDPERF" record -o q -p "$jvm" -d 1
says 'it cannot listen in its /tmp, which its user may not write to'
kill "$jvm"
wait "$jvm" 2>/dev/null || :

# And where the JVM sees what we see: it can load the agent from its place, but has none for the dump.
# shellcheck disable=SC2016
run 1 unshare --mount bash -c 'for d in /var/tmp /dev/shm; do mount -t tmpfs -o noexec,mode=1777 tmpfs "$d"; done
    cp -r classes /var/tmp && mount --bind /var/tmp /tmp && cd /var/tmp || exit
    setpriv --reuid=65534 --regid=65534 --clear-groups "$2" -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
    for ((i = 0; i < 600; i++)); do grep -qs "^VM Peri" "/proc/$!/task/"*/comm && break; sleep 0.1; done
    "$1" record -o q -p "$!" -d 1
    status=$?
    kill "$!"
    exit $status' bash "$JDPERF" "$java"
says 'mounted noexec'

echo "== many processes that are no JVMs"
# shellcheck disable=SC2016
run 0 "$JDPERF" record -o many --stacks kernel -- bash -c 'for ((i = 0; i < 80; i++)); do sleep 2 & done; "$@" -cp classes Calm 1; wait' sh "$java" "${quick[@]}"
! grep 'walks stacks of at most' output || fail "they took the places of JVMs"

echo "== names of the kernel are kept until the next boot"
# shellcheck disable=SC2016
run 0 unshare --mount bash -c 'set -e
    mount -t tmpfs -o mode=755 tmpfs /run
    "$1" record -o first -- "${@:2}" -cp classes Calm 1
    kept=$(echo /run/jdagent/kernel-names-*)
    [[ $(stat -c %a.%u "$kept") == 600.0 ]]
    awk "\$2 ~ /^[tTwW]\$/ && \$1 !~ /^0+\$/ && \$3 !~ /^[\$]/ && n++ < 1000 { print \$3 }" /proc/kallsyms >names
    tr "\0" "\n" <"$kept" | grep -a -A 999 -m 1 -Fx "$(head -n 1 names)" | cmp - names
    # They are those that the next recording has.
    perl -pi -e "s/\0(?!_text\0)[a-z_]([a-z0-9_]{5})/\0009\$1/g" "$kept"
    "$1" record -o second --export collapsed=second.txt -- "${@:2}" -cp classes Calm 1
    chown 65534 "$kept" # and then it is not believed
    "$1" record -o third --export collapsed=third.txt -- "${@:2}" -cp classes Calm 1
    # What another version has left there is replaced.
    chown 0 "$kept"
    perl -pi -e "s/^......../an older/ if 1 .. 1" "$kept"
    "$1" record -o fourth -- "${@:2}" -cp classes Calm 1
    [[ $(head -c 8 "$kept") != "an older" ]]' \
    sh "$JDPERF" "$java" "${quick[@]}"
grep -q ';9[a-z0-9_]' second.txt || fail "the kept names are not read"
! grep -q ';9[a-z0-9_]' third.txt || fail "names that another user may have written are read"

echo "== a disk that gets full"
mkdir small
# shellcheck disable=SC2016
run 1 unshare --mount sh -c 'mount -t tmpfs -o size=300k tmpfs small && "$1" record -o small/p -- "$2" -cp classes Market 2' \
    sh "$JDPERF" "$java"
says 'customers and statements'
says 'the disk is full: free some space'
