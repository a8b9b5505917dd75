#!/usr/bin/env bash
# Classes come and go, code is compiled, thrown away and compiled again: the agent's memory, file
# descriptors and mappings stay flat, and the dump is sound. JDAGENT_LONG=1 takes minutes.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile Phases

phases=600
[ "$long" = 1 ] && phases=60000
"$jdk/bin/java" "-agentpath:$agent=mode=jitdump+map,methods=on,dir=$scratch" -XX:+UseSerialGC \
    -Xms64m -Xmx64m -XX:+AlwaysPreTouch -XX:ReservedCodeCacheSize=8m -Xlog:disable -cp "$classes" \
    Phases "$scratch/log" $phases 8 >"$scratch/said" 2>&1 &
children=("$!")
pid=${children[0]}
trap 'rm -f "/tmp/perf-$pid.map"; finish' EXIT

# RSS in KiB, descriptors, mappings; of a process that may end at any moment.
look() {
    local rss fds maps
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || return 1
    fds=$(find "/proc/$pid/fd" -mindepth 1 2>/dev/null | wc -l)
    maps=$(wc -l <"/proc/$pid/maps" 2>/dev/null) || return 1
    [[ -n $rss && $fds -gt 0 && $maps -gt 0 ]] && echo "$rss $fds $maps"
}
: >"$scratch/looks"
while look >>"$scratch/looks"; do
    sleep 0.2
done
wait "$pid" || fail "the JVM failed: $(tail -n 5 "$scratch/said")"
verify "$(the_dump "$scratch")"
overlaps "/tmp/perf-$pid.map"

read -r early late fds_early fds_late maps_early maps_late count < <(awk '
    { rss[NR] = $1; fds[NR] = $2; maps[NR] = $3 }
    END {
        # Medians would need sorting; the middle of the run against its end says as much.
        a = int(NR / 2); b = NR - 2
        print rss[a], rss[b], fds[a], fds[b], maps[a], maps[b], NR
    }' "$scratch/looks")
note "from the middle of the run to its end ($count looks): RSS $early to $late KiB, descriptors" \
    "$fds_early to $fds_late, mappings $maps_early to $maps_late"
[ "$count" -ge 10 ] || fail "the run was too short"
[ "$((late - early))" -le 12288 ] || fail "RSS grows"
[ "$((fds_late - fds_early))" -le 2 ] || fail "descriptors leak"
[ "$((maps_late - maps_early))" -le 24 ] || fail "mappings leak"
