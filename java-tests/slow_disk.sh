#!/usr/bin/env bash
# On a disk that is slow or hangs, the program runs as fast as without the agent, and lost records are reported.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
slow=$build/java-tests/libslow_disk.so
dir=$scratch/dump hang=$scratch/hang
# C1 has told of enough soon.
java=("$jdk/bin/java" -XX:TieredStopAtLevel=3 -XX:+UseSerialGC -Xmx64m -cp "$classes")
rounds=400

# ms COMMAND...: how long it takes; sets took.
ms() {
    local from
    from=$(date +%s%3N)
    "$@"
    took=$(($(date +%s%3N) - from))
}
disk=(env "SLOW_DISK_DIR=$dir" "LD_PRELOAD=$slow")

ms "${java[@]}" Churn $rounds >"$scratch/expected"
alone=$took

mkdir "$dir"
ms "${disk[@]}" SLOW_DISK_MS=20 "${java[@]}" "-agentpath:$agent=dir=$dir,methods" Churn $rounds \
    >"$scratch/out" 2>"$scratch/err"
cmp -s "$scratch/out" "$scratch/expected" || fail "other output: $(head -n 3 "$scratch/out" "$scratch/err")"
note "alone $alone ms, with 20 ms a write $took ms"
# One write for each of its some thousand records would take a minute; the rest is for a busy machine.
[ "$took" -le $((alone * 2 + 10000)) ] || fail "a slow disk holds the JVM: $took ms, alone $alone ms"
verify "$(the_dump "$dir")"
"$jdtool" dump "$(the_dump "$dir")" >"$scratch/shown"
grep -q 'Churn.sum' "$scratch/shown" || fail "the hottest method is not in the dump"

# More than the 4 MB that wait. The disk hangs once the dump has begun, and comes back when the program has done its work.
rm -rf "$dir"
mkdir "$dir"
"${disk[@]}" SLOW_DISK_HANG="$hang" "${java[@]}" "-agentpath:$agent=dir=$dir,methods,verbose=2" Churn $((3 * rounds)) wait \
    >"$scratch/out" 2>"$scratch/err" &
child=$!
children=("$child")
for ((i = 0; i < 3000; i++)); do
    [[ $(stat -c %s "$dir"/jit-*.dump 2>/dev/null || echo 0) -gt 40 ]] && break
    sleep 0.01
done
: >"$hang"
from=$(date +%s%3N)
wait_for "$scratch/out" ready
took=$(($(date +%s%3N) - from))
note "with a disk that hangs $took ms"
# Half a second for each of its thousands of pieces would be half an hour.
[ "$took" -le $((alone * 6 + 20000)) ] || fail "a hung disk holds the JVM: $took ms, alone $alone ms"
size=$(stat -c %s "$dir"/jit-*.dump)
rm "$hang"
wait_for "$scratch/err" "asks the JVM once more" 60
kill -TERM "$child"
wait "$child" 2>/dev/null || true
dump=$(the_dump "$dir")
verify "$dump"
[ "$(stat -c %s "$dump")" -gt $((size + 1000000)) ] || fail "nothing was written after the disk came back"
"$jdtool" dump "$dump" >"$scratch/shown"
grep -q 'Churn.sum' "$scratch/shown" || fail "what lives is not in the dump"
grep -q 'times a piece of code could not be written' "$scratch/err" || fail "nothing told of what was left out: $(cat "$scratch/err")"
claim "hung disk" "$(grep -o '[0-9]* times a piece of code could not be written' "$scratch/err"), and asked for again"

# At the end nobody waits for it either.
rm -rf "$dir"
mkdir "$dir"
rm -f "$scratch/out"
"${disk[@]}" SLOW_DISK_HANG="$hang" "${java[@]}" "-agentpath:$agent=dir=$dir" Churn 100 wait >"$scratch/out" 2>"$scratch/err" &
child=$!
children=("$child")
wait_for "$scratch/out" ready
: >"$hang"
"$jdk/bin/jcmd" "$child" Thread.print >/dev/null # some code more
from=$(date +%s%3N)
kill -TERM "$child"
wait "$child" 2>/dev/null || true
took=$(($(date +%s%3N) - from))
rm "$hang"
note "the JVM's end took $took ms with a disk that hangs"
[ "$took" -le 15000 ] || fail "a hung disk holds the JVM's end"

# A perf map likewise, which is in /tmp.
"${java[@]}" Churn 1 >"$scratch/out" # what the JVM itself reads is there
ms "${java[@]}" Churn 100 >"$scratch/expected"
alone=$took
map_of_slow_disk() {
    env SLOW_DISK_DIR=/tmp "LD_PRELOAD=$slow" SLOW_DISK_MS=20 "${java[@]}" "-agentpath:$agent=mode=map" Churn 100 \
        >"$scratch/out" 2>"$scratch/err" &
    child=$!
    wait "$child" || fail "the JVM failed: $(head -n 3 "$scratch/err")"
}
ms map_of_slow_disk
map=/tmp/perf-$child.map
grep -v '^$' "$map" >"$scratch/map" # old lines are blanked; the JVM does not wait for their end
rm "$map"
cmp -s "$scratch/out" "$scratch/expected" || fail "mode=map, other output: $(head -n 3 "$scratch/out" "$scratch/err")"
overlaps "$scratch/map"
lines=$(wc -l <"$scratch/map")
note "mode=map: alone $alone ms, with 20 ms a write $took ms for $lines lines"
# One write for each line would take 20 ms times that.
[ "$took" -le $((alone * 2 + lines * 10)) ] || fail "a slow disk holds the JVM for its perf map: $took ms, alone $alone ms"
[ "$lines" -ge 100 ] || fail "only $lines lines in the map"
