#!/usr/bin/env bash
# JVMs start safely on a busy machine although the agent's threads need the JVM before it is ready. None crashes, and
# every segment is whole. JDAGENT_LONG=1: 200 starts.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
starts=5
[ "$long" = 0 ] || starts=200
ulimit -c 0
for ((i = 0; i < $(nproc); i++)); do
    (while :; do :; done) &
    children+=("$!")
done
cd "$scratch" # where a JVM that crashes says why
segments=0 tables=0
for ((i = 1; i <= starts; i++)); do
    rm -rf "$scratch/dump"
    mkdir "$scratch/dump"
    "$jdk/bin/java" -XX:+UseSerialGC -Xmx64m "-agentpath:$agent=dir=$scratch/dump,methods,threads,segment=64K" -cp "$classes" \
        Churn 1 >"$scratch/out" 2>"$scratch/err" || fail "start $i of $starts: $(cat "$scratch/out" "$scratch/err" | head -n 20)"
    [ ! -s "$scratch/err" ] || fail "start $i: $(cat "$scratch/err")"
    while read -r dump; do
        verify "$dump"
        segments=$((segments + 1))
        [ ! -s "${dump%.dump}.methods" ] || tables=$((tables + 1))
    done < <(find "$scratch/dump" -name '*.dump')
done
claim "starts on a busy machine" "$starts without a crash, $segments segments"
[ "$segments" -ge $((3 * starts)) ] || fail "only $segments segments: the table never began anew before VMInit"
[ "$tables" = "$segments" ] || fail "only $tables of $segments segments have a table"
