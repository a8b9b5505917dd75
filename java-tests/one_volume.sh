#!/usr/bin/env bash
# Containers that share a volume: every JVM is process 1 there. Two at the same time, and then one
# that starts again and again: every dump stays, and each is sound. JDAGENT_LONG=1: 20 starts.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile Churn
[ "$(id -u)" -eq 0 ] || skip "process namespaces need root"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "no process namespaces here"

starts=4
[ "$long" = 1 ] && starts=20
volume=$scratch/volume
mkdir "$volume"
# No function: in the background it would be a shell's child, which outlives the shell that is killed.
jvm=(unshare --pid --fork --kill-child --mount-proc "$jdk/bin/java" "-agentpath:$agent=dir=$volume,methods"
    -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx64m -cp "$classes" Churn)

for i in 1 2; do
    "${jvm[@]}" 20 wait >"$scratch/out.$i" 2>"$scratch/err.$i" &
    children+=("$!")
done
for i in 1 2; do
    wait_for "$scratch/out.$i" ready
done
kill -KILL "${children[@]}"
wait "${children[@]}" 2>/dev/null || true
for ((start = 0; start < starts; start++)); do
    "${jvm[@]}" 5 >"$scratch/out" 2>"$scratch/err" || fail "start $start: $(cat "$scratch/err")"
done

mapfile -t dumps < <(find "$volume" -name jit-1.dump)
[ "${#dumps[@]}" -eq $((starts + 2)) ] || fail "${#dumps[@]} dumps of $((starts + 2)) JVMs"
for dump in "${dumps[@]}"; do
    verify_torn "$dump"
    [ -s "${dump%.dump}.methods" ] || fail "no table of methods beside $dump"
done
! grep -h '^jdagent: ' "$scratch"/err* || fail "the agent had something to say"
note "$((starts + 2)) JVMs of number 1, as many sound dumps"
