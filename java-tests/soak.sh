#!/usr/bin/env bash
# While code is compiled and discarded for minutes, memory, descriptors and mappings of the JVM stay flat
# (JDAGENT_LONG=1 only; segments.sh and sessions.sh ask the same of shorter runs).
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$long" = 1 ] || skip "a soak: JDAGENT_LONG=1"
compile
count_allocations

# Each class has three methods, all compiled at once by C1.
classes_made=400000
children=()
trap 'rm -f "/tmp/perf-${pid:-}.map"; finish' EXIT

# soak NAME AGENT: in NAME.looks the RSS in KiB, descriptors, mappings, what the agent holds and bytes of the dump, of a
# process that may end at any moment.
soak() {
    : >"$scratch/$1.looks"
    "${counted[@]}" "$jdk/bin/java" "-agentpath:$2" \
        -XX:+UseSerialGC -Xms64m -Xmx64m -XX:+AlwaysPreTouch -XX:ReservedCodeCacheSize=16m -Xcomp \
        -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet '-XX:CompileCommand=compileonly,Made*::*' \
        -XX:ErrorFile="$scratch/hs_err" -cp "$classes" ComeAndGo $classes_made 100 >"$scratch/said" 2>&1 &
    children+=("$!")
    pid=$!
    while look >>"$scratch/$1.looks"; do
        sleep 0.2
    done
    if ! wait "$pid"; then
        # docs/jdks.md: HotSpot's own, with any agent.
        grep -q 'guarantee(!nm->is_unloading())' "$scratch/said" || fail "the JVM failed: $(tail -n 5 "$scratch/said")"
        return 1
    fi
}
look() {
    local rss fds maps written
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || return 1
    fds=$(find "/proc/$pid/fd" -mindepth 1 2>/dev/null | wc -l)
    maps=$(wc -l <"/proc/$pid/maps" 2>/dev/null) || return 1
    written=$(stat -c %s "$scratch/jit-$pid.dump" 2>/dev/null) || written=0
    [[ -n $rss && $fds -gt 0 && $maps -gt 0 ]] && echo "$rss $fds $maps $(held) $written"
}
# HotSpot itself keeps a jmethodID for each method that any agent is told of, some 100 bytes with its block, also when
# the class is gone (JDK 25: 20 MB in half of the run): what an agent that does nothing leaves behind is not ours.
soak floor "$build/bench/libbench-floor.so" || soak floor "$build/bench/libbench-floor.so" || fail "the JVM failed twice"
ours=$agent=mode=jitdump+map,methods=on,dir=$scratch
soak ours "$ours" || { rm "$scratch"/jit-* && soak ours "$ours"; } || fail "the JVM failed twice"
verify "$(the_dump "$scratch")"
overlaps "/tmp/perf-$pid.map"

pieces=$("$jdtool" stat --json "$(the_dump "$scratch")" | sed -n 's/.*"LOAD": {"count": \([0-9]*\).*/\1/p')
[ "${pieces:-0}" -gt 8000 ] || fail "only ${pieces:-no} pieces of code"
# The slope from the last third of the run, by what was written meanwhile. A hash table may double
# once in it, which is no leak: 64 KiB. On a busy machine there are few looks, and the third is shorter.
awk -v pieces="$pieces" '
    { held[NR] = $4; made = $5; written[NR] = $6 }
    END {
        for (a = 1; a < NR && written[a] * 3 < written[NR - 1] * 2; a++);
        b = NR - 1
        code = written[b] ? pieces * (written[b] - written[a]) / written[b] : 0
        printf "-- the agent holds %d bytes after %d pieces of code, %d bytes %d pieces later (%d allocations)\n",
            held[a], pieces - code, held[b], code, made
        exit !(made > 1000 && code > 1000 && held[b] - held[a] <= 65536 + 16 * code)
    }' "$scratch/ours.looks" || fail "the agent leaks more than 16 bytes a piece of code, or was not counted"

# halves NAME: Medians would need sorting; the middle of the run against its end says as much.
halves() {
    awk '{ rss[NR] = $1; fds[NR] = $2; maps[NR] = $3 }
        END { a = int(NR / 2); b = NR - 2; print rss[a], rss[b], fds[a], fds[b], maps[a], maps[b], NR }' "$scratch/$1.looks"
}
read -r floor_early floor_late _ < <(halves floor)
read -r early late fds_early fds_late maps_early maps_late count < <(halves ours)
note "from the middle of the run to its end ($count looks): RSS $early to $late KiB, descriptors" \
    "$fds_early to $fds_late, mappings $maps_early to $maps_late; with an agent that does nothing RSS $floor_early to $floor_late KiB"
[ "$count" -ge 10 ] || fail "the run was too short"
[ "$((late - early - (floor_late - floor_early)))" -le 12288 ] || fail "RSS grows"
[ "$((fds_late - fds_early))" -le 2 ] || fail "descriptors leak"
[ "$((maps_late - maps_early))" -le 24 ] || fail "mappings leak"
