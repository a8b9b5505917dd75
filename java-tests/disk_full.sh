#!/usr/bin/env bash
# The file system of the dump is full (ENOSPC). The JVM's output is what it would have been, there is one message, and
# what was written is sound. Needs root, for a small tmpfs of its own.
source "$(dirname "$0")/lib.sh"
TMPDIR=$build # /tmp itself will be the small file system
begin "$@"
compile
[ "$(id -u)" -eq 0 ] || skip "mounting a small tmpfs needs root"
unshare -m true 2>/dev/null || skip "no mount namespaces here"

rounds=200
java=("$jdk/bin/java" -XX:+UseSerialGC -Xmx64m -cp "$classes")
"${java[@]}" Churn $rounds >"$scratch/expected"
mkdir "$scratch/small"
declare -A size=([jitdump]=128k [map]=8k)
for mode in jitdump map; do
    # The mount is seen in the inner shell only, and ends with it.
    # shellcheck disable=SC2016
    unshare -m --propagation private bash -c '
        set -e
        small=$1 agent=$2 mode=$3 size=$4 build=$5
        shift 5
        mount -t tmpfs -o "size=$size,nr_inodes=64" tmpfs "$small"
        if [ "$mode" = map ]; then
            mount --rbind "$build" /mnt
            mount --bind "$small" /tmp
            case $build in
            /tmp/*) mkdir -p "$build" && mount --rbind /mnt "$build" ;;
            esac
        fi
        status=0
        "$1" "-agentpath:$agent=mode=$mode,dir=$small" "${@:2}" >&3 2>&4 || status=$?
        cp "$small"/*.dump "$small"/perf-*.map "$small/.." 2>/dev/null || true
        exit $status' - "$scratch/small" "$agent" "$mode" "${size[$mode]}" "$build" "${java[@]}" -XX:-UsePerfData Churn $rounds \
        3>"$scratch/$mode.out" 4>"$scratch/$mode.err" >"$scratch/$mode.shell" 2>&1 ||
        fail "$mode: the JVM failed: $(cat "$scratch/$mode.err" "$scratch/$mode.shell")"
    cmp -s "$scratch/$mode.out" "$scratch/expected" || fail "$mode: other output: $(head -n 3 "$scratch/$mode.out")"
    [ "$(grep -c '^jdagent: ' "$scratch/$mode.err")" -eq 1 ] ||
        fail "$mode: not one message but: $(cat "$scratch/$mode.err")"
    note "$mode on ${size[$mode]}: $(grep '^jdagent: ' "$scratch/$mode.err")"
done
verify "$(the_dump "$scratch")"
note "the dump is sound, $(stat -c %s "$(the_dump "$scratch")") bytes"
