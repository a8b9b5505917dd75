#!/usr/bin/env bash
# Containers share a volume, and every JVM is process 1 in its own. Two at the same time, and then one that starts again
# and again: every dump stays, and each is sound; with segments each JVM keeps its last ones and touches no other's.
# JDAGENT_LONG=1: 20 starts.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
[ "$(id -u)" -eq 0 ] || skip "process namespaces need root"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "no process namespaces here"

starts=4
[ "$long" = 1 ] && starts=20
volume=$scratch/volume
mkdir "$volume"
# No function: in the background it would be a shell's child, which outlives the shell that is killed.
container=(unshare --pid --fork --kill-child --mount-proc "$jdk/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1
    -Xmx64m -cp "$classes")
jvm=("${container[@]}" "-agentpath:$agent=dir=$volume,methods" Churn)

# kill_two ROUNDS: two JVMs at the same time, which are killed when they have done so many.
kill_two() {
    local i
    children=()
    for i in 1 2; do
        "${jvm[@]}" "$1" wait >"$scratch/out.$i" 2>"$scratch/err.$i" &
        children+=("$!")
    done
    for i in 1 2; do
        wait_for "$scratch/out.$i" ready
    done
    kill -KILL "${children[@]}"
    wait "${children[@]}" 2>/dev/null || true
}
kill_two 20
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

# Two closed segments and the one that is written; each halts with an error, as what crashes in a loop does.
volume=$scratch/segments
mkdir "$volume"
jvm=("${container[@]}" "-agentpath:$agent=dir=$volume,methods,segment=1M,keep=2" Churn)
kill_two 200
files() { find "$volume" -name 'jit-1.*' -printf '%P %i %s %T@\n' | sort; }
dumps() { grep -c 'jit-1.dump ' "$1" || true; }
files >"$scratch/before"
[[ $(dumps "$scratch/before") -ge 2 && $(dumps "$scratch/before") -le 6 ]] || fail "two JVMs: $(cat "$scratch/before")"
stayed=0
[ "$long" = 1 ] || starts=2
for ((start = 0; start < starts; start++)); do
    status=0
    "${jvm[@]}" 200 halt >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq 4 ] || fail "start $start: status $status, $(cat "$scratch/err")"
    files >"$scratch/after"
    lost=$(comm -23 "$scratch/before" "$scratch/after")
    [ -z "$lost" ] || fail "start $start took or changed what others have left: $lost"
    made=$(($(dumps "$scratch/after") - $(dumps "$scratch/before")))
    [[ $made -ge 1 && $made -le 3 ]] || fail "start $start left $made segments"
    [ -z "$(find "$volume" -path '*/segment-000001/*' -newer "$scratch/before" -name '*.dump')" ] || stayed=$((stayed + 1))
    mv "$scratch/after" "$scratch/before"
done
[ "$stayed" -lt "$starts" ] || fail "no segment went: keep has nothing to do here"
while read -r dump; do
    verify_torn "$dump"
done < <(find "$volume" -name jit-1.dump)
! grep -h '^jdagent: ' "$scratch"/err* || fail "the agent had something to say"
claim "crash loop of $starts, two at once before it: segments kept, of others lost" "$(dumps "$scratch/before"), 0"
