#!/usr/bin/env bash
# An hour of jdperf watch, while JVMs start, end and are killed, and the watch too. At the end no session, file or
# process is left, and its memory has not grown. JDAGENT_LONG=1; JDAGENT_SOAK_SECONDS=3600.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "takes an hour: JDAGENT_LONG=1"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
compile_sample
seconds=${JDAGENT_SOAK_SECONDS:-3600}
end() {
    ((${#all[@]} == 0)) || kill -KILL "${all[@]}" 2>/dev/null || :
    [[ -z ${watch:-} ]] || kill -KILL "$watch" 2>/dev/null || :
    rm -rf "$WORK"
}
trap end EXIT
all=()
start_jvm() {
    java -Xmx64m -cp classes Market 100000000 "k$$-$1" >/dev/null 2>&1 </dev/null &
    all+=($!)
}
start_watch() {
    "$JDPERF" watch --match "k$$-" --name "soak-$$" --slice 5 -o kept --keep 8M >>watch.log 2>&1 </dev/null &
    watch=$!
}
jvms() { pgrep -f "Market 100000000 k$$-" || :; }
# KiB of the watch's three processes.
memory() { ps -o rss= -p "$watch,$(pgrep -d , -P "$watch")" | awk '{ sum += $1 } END { print sum + 0 }'; }
start_jvm first
start_jvm stays
start_watch
began=$SECONDS round=0 early=0 late=0
while ((SECONDS - began < seconds)); do
    ((round += 1))
    start_jvm "$round"
    wait_until 120 "profile of JVM $!" compgen -G "kept/*-$!-*.pb.gz"
    if ((round % 3)); then
        kill "$!"
    else
        kill -KILL "$!"
    fi
    wait "$!" 2>/dev/null || :
    if ((round % 7 == 0)); then
        kill -KILL "$watch"
        wait "$watch" 2>/dev/null || :
        start_watch
        wait_until 60 "answer of the new watch" "$JDPERF" watch --status --name "soak-$$"
    fi
    kill -0 "$watch" || fail "the watch has ended: $(tail -n 5 watch.log)"
    ((round % 7 != 6)) || { late=$(memory); ((early)) || early=$late; }
    ((round % 7 != 6)) || "$JDPERF" watch --status --name "soak-$$"
done
echo "-- $round JVMs came and went; memory of the watch $early to $late KiB, files $(du -sk kept | cut -f 1) KiB"
((early == 0 || late - early < 8192)) || fail "memory grows"
# Those of a dozen JVMs that have ended are closed together.
held=$(pgrep -P "$watch" | while read -r process; do find "/proc/$process/fd" -lname '*/jit-*.dump (deleted)'; done | wc -l)
((held <= 24)) || fail "dumps of $held JVMs that have ended are open"
(($(du -sk --apparent-size kept | cut -f 1) <= 9000)) || fail "more files are kept than wanted"
kill "$watch"
wait "$watch" || fail "the watch ended with status $?"
for jvm in $(jvms); do
    ! grep -q '/jit-[0-9]*\.dump' "/proc/$jvm/maps" || fail "JVM $jvm has a session"
done
! pgrep -f "live .*watch.* --name soak-$$" || fail "processes are left"
for jvm in "${all[@]}"; do
    ! compgen -G "/tmp/jdperf-$jvm.*" >/dev/null || fail "the staging directory of JVM $jvm is left"
done
echo "all is well"
