#!/usr/bin/env bash
# Many sessions in one JVM: memory, descriptors and mappings stay flat, and every dump is sound. JDAGENT_LONG=1 makes a
# thousand rounds.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
count_allocations

rounds=100
[ "$long" = 1 ] && rounds=1000
dynamic=()
[ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)
"${counted[@]}" "$jdk/bin/java" "${dynamic[@]}" -XX:+UseSerialGC -Xms64m -Xmx64m -XX:+AlwaysPreTouch -cp "$classes" \
    Churn 200 wait >"$scratch/out" 2>"$scratch/err" &
pid=$!
children=("$pid")
wait_for "$scratch/out" ready

# RSS in KiB, descriptors, mappings.
look() {
    echo "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" \
        "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" "$(wc -l <"/proc/$pid/maps")"
}
loads=0
for ((round = 1; round <= rounds; round++)); do
    dir=$scratch/dump
    mkdir "$dir"
    attach "$pid" "start,dir=$dir" >"$scratch/said" 2>&1 || fail "start $round: $(cat "$scratch/said")"
    attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop $round: $(cat "$scratch/said")"
    verify "$(the_dump "$dir")"
    loads=$((loads + $(stat -c %s "$(the_dump "$dir")")))
    rm -r "$dir"
    if [ "$round" -eq 10 ]; then
        read -r rss fds maps < <(look)
        read -r held_early _ < <(held)
    fi
done
kill -0 "$pid" || fail "the JVM died: $(cat "$scratch/err")"
read -r rss_end fds_end maps_end < <(look)
note "$rounds rounds, $((loads / rounds)) bytes a dump; from the tenth to the last: RSS $rss to $rss_end KiB," \
    "descriptors $fds to $fds_end, mappings $maps to $maps_end"
claim "sessions flat" "$rounds: $((rss_end - rss)) KiB, $((fds_end - fds)) fds, $((maps_end - maps)) maps"
[ "$loads" -gt $((rounds * 10000)) ] || fail "the dumps are empty"
read -r held_end made < <(held)
note "the agent holds $held_early bytes after ten sessions, $held_end after $rounds ($made allocations)"
[ "$made" -gt $((rounds * 100)) ] || fail "the agent's allocations were not counted"
[ "$((held_end - held_early))" -le $((1024 * (rounds - 10))) ] || fail "the agent leaks more than 1 KiB a session"
# A KiB a round would be a leak; the JVM's own attach machinery takes some room too.
[ "$((rss_end - rss))" -le $((8192 + rounds / 2)) ] || fail "RSS grows"
[ "$((fds_end - fds))" -le 2 ] || fail "descriptors leak"
[ "$((maps_end - maps))" -le 16 ] || fail "mappings leak"
