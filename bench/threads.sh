#!/usr/bin/env bash
# What the journal of threads (threads=on) costs at each mount and unmount of a virtual thread: bench/programs/
# Yields.java, virtual threads that give way to each other, two for each carrier. All within one JVM, as JVMs differ by
# more among themselves: first without an agent; then, in turns, with a session, after it, with one that keeps the
# journal, and with one that looks for waits as well (threads=waits; giving way is none, so nothing is told). Prints
# nanoseconds of processor time a pair, the medians over all turns of all JVMs, and the median of the differences
# within a turn.
#
# usage: bench/threads.sh [--jdk HOME (21 or later)] [--carriers N] [--turns N] [--jvms N]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${JDAGENT_BUILD:-$here/../build}" && pwd)
jdk="" carriers=1 turns=7 jvms=3

fail() {
    echo "bench: $*" >&2
    exit 1
}
while [ $# -gt 1 ]; do
    case $1 in
    --jdk) jdk=$2 ;;
    --carriers) carriers=$2 ;;
    --turns) turns=$2 ;;
    --jvms) jvms=$2 ;;
    *) fail "unknown option: $1" ;;
    esac
    shift 2
done
[ $# -eq 0 ] || fail "unknown option: $1"
[ -n "$jdk" ] || jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jdagent-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/dumps"
"$jdk/bin/javac" -nowarn -d "$scratch" "$here/programs/Yields.java" || fail "it needs virtual threads: --jdk HOME of 21 or later"

# agent ARGUMENTS: told to the JVM's agent.
agent() {
    "$build/jdtool" live --agent "$build/libjdagent.so" "$@" >"$scratch/said" 2>&1 || fail "$1: $(cat "$scratch/said")"
}
# measure WHO: nanoseconds a pair now.
measure() {
    local took
    echo >&"${JVM[1]}"
    read -r took <&"${JVM[0]}"
    printf '%d\t%d\t%s\t%s\n' "$number" "$turn" "$1" "$took" | tee -a "$scratch/results"
}

for ((number = 0; number < jvms; number++)); do
    coproc JVM { exec "$jdk/bin/java" -XX:+EnableDynamicAgentLoading "-Djdk.virtualThreadScheduler.parallelism=$carriers" \
        "-Djdk.virtualThreadScheduler.maxPoolSize=$carriers" -cp "$scratch" Yields "$carriers" 2>"$scratch/err"; }
    # shellcheck disable=SC2153 # coproc sets it.
    pid=$JVM_PID
    read -r _ <&"${JVM[0]}" || fail "the JVM failed: $(cat "$scratch/err")"
    for ((turn = 0; turn < turns; turn++)); do
        measure none
    done
    for ((turn = 0; turn < turns; turn++)); do
        agent attach "$pid" -o "$scratch/dumps"
        measure session
        agent stop "$pid"
        measure after
        agent attach "$pid" -o "$scratch/dumps" --agent-options threads=on
        measure journal
        agent stop "$pid"
        agent attach "$pid" -o "$scratch/dumps" --agent-options threads=waits
        measure waits
        agent stop "$pid"
    done
    kill "$pid"
    wait "$pid" || true
done >/dev/null
awk -F '\t' '
    function median(list, n,    i, k, swap) {
        for (i = 2; i <= n; i++)
            for (k = i; k > 1 && list[k - 1] > list[k]; k--) { swap = list[k]; list[k] = list[k - 1]; list[k - 1] = swap }
        return list[int((n + 1) / 2)]
    }
    { took[$1, $2, $3] = $4; if (!(($1, $2) in seen)) { seen[$1, $2]; key[++n] = $1 SUBSEP $2 } }
    END {
        split("none after session journal waits", whos, " ")
        for (w = 1; w <= 5; w++) {
            for (i = 1; i <= n; i++) list[i] = took[key[i], whos[w]]
            printf "%-8s %6.1f ns a pair\n", whos[w], median(list, n)
        }
        for (i = 1; i <= n; i++) list[i] = took[key[i], "journal"] - took[key[i], "session"]
        printf "the journal beside a session %6.1f ns, ", median(list, n)
        for (i = 1; i <= n; i++) list[i] = took[key[i], "waits"] - took[key[i], "journal"]
        printf "waits beside the journal %6.1f ns, ", median(list, n)
        for (i = 1; i <= n; i++) list[i] = took[key[i], "journal"] - took[key[i], "none"]
        printf "beside no agent %6.1f ns\n", median(list, n)
    }' "$scratch/results"
