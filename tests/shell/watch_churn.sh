#!/usr/bin/env bash
# Memory and descriptors of jdperf watch stay flat for 45 minutes of classes that come and go. JDAGENT_LONG=1;
# JDAGENT_CHURN_SECONDS=2700.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
[[ ${JDAGENT_LONG:-} == 1 ]] || skip "takes three quarters of an hour: JDAGENT_LONG=1"
need_real_profile
command -v jattach >/dev/null || skip "jattach is not installed"
seconds=${JDAGENT_CHURN_SECONDS:-2700}
end() {
    [[ -z ${jvm:-} ]] || kill -KILL "$jvm" 2>/dev/null || :
    [[ -z ${watch:-} ]] || kill -KILL "$watch" 2>/dev/null || :
    rm -rf "$WORK"
}
trap end EXIT
"$(oldest_javac)" -d classes "$SOURCE/java-tests/programs/ComeAndGo.java"
java -XX:+UseSerialGC -Xmx64m -Xms64m -XX:+AlwaysPreTouch -Xcomp -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet \
    '-XX:CompileCommand=compileonly,Made*::*' -cp classes ComeAndGo 1000000000 2000 200 "churn-$$" >made 2>&1 </dev/null &
jvm=$!
"$JDPERF" watch --match "churn-$$" --name "churn-$$" --slice 5 -o kept --keep 8M >watch.log 2>&1 </dev/null &
watch=$!
wait_until 120 "the first profile" compgen -G "kept/*-$jvm-*.pb.gz"

# Of the three processes: KiB of memory, descriptors, and KiB of files that are open and removed.
look() {
    local processes process
    processes=$(echo "$watch"; pgrep -P "$watch")
    for process in $processes; do
        awk '/^VmRSS/ { print "rss", $2 }' "/proc/$process/status"
        find "/proc/$process/fd" -mindepth 1 -printf 'fd 1\n'
        # Files without a name, once each: several processes and descriptors may have one.
        find "/proc/$process/fd" -mindepth 1 -lname '* (deleted)' ! -lname '/memfd:*' -exec stat -L -c 'held %i %b' {} + || :
    done 2>/dev/null | awk '
        $1 == "held" { if (!($2 in seen)) { seen[$2] = 1; held += $3 / 2 } next }
        { sum[$1] += $2 }
        END { printf "%d %d %d\n", sum["rss"], sum["fd"], held }'
}
began=$SECONDS
: >looks
while ((SECONDS - began < seconds)); do
    sleep 5
    kill -0 "$watch" || fail "the watch has ended: $(tail -n 5 watch.log)"
    kill -0 "$jvm" || fail "the JVM has ended: $(tail -n 5 made)"
    look >>looks
done
classes=$(grep -x '[0-9]*' made | tail -n 1)
segment=$(find "/tmp/jdperf-$jvm".* -name 'segment-*' 2>/dev/null | sed 's/.*segment-0*//' | sort -n | tail -n 1)
# The most of the second third against the most of the last: what is flat goes up and down, with how many segments ten
# seconds have. A leak of one a segment is thousands.
awk -v classes="${classes:-0}" -v segment="${segment:-0}" '
    { for (i = 1; i <= 3; i++) value[NR, i] = $i }
    END {
        split("memory descriptors held", name); split("KiB - KiB", unit); split("16384 32 131072", allowed)
        printf "-- %d classes came and went, %d segments\n", classes, segment
        for (i = 1; i <= 3; i++) {
            before = after = 0
            for (k = 1; k <= NR; k++) {
                if (k > NR / 3 && k <= NR * 2 / 3 && value[k, i] > before) before = value[k, i]
                if (k > NR * 2 / 3 && value[k, i] > after) after = value[k, i]
            }
            printf "-- %s: at most %d in the second third, %d in the last\n", name[i], before, after
            if (after - before > allowed[i]) { print "FAILED: " name[i] " grows"; bad = 1 }
        }
        exit bad || classes < 1000 || segment < 5
    }' looks || fail "not flat, or nothing came"
kill "$watch"
wait "$watch" || fail "the watch ended with status $?"
watch=
echo "all is well"
