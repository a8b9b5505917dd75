#!/usr/bin/env bash
# What events of the JVM cost beside a plain recording: bench/programs/Bank.java, transfers in an H2 database, with
# no profiler, with jdperf record, and with that and --alloc, --locks, --timeline each; interleaved, in rounds. Prints
# each round's processor time of the JVM, and medians of the ratios to jdperf record alone. As root; H2 comes from
# Maven Central, or from H2=its jar.
#
# usage: bench/events.sh [--jdk HOME] [--rounds N] [--transfers N]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${JDAGENT_BUILD:-$here/../build}" && pwd)
export JDAGENT_BUILD=$build
jdk="" rounds=9 transfers=400000 h2_version=2.2.224

fail() {
    echo "bench: $*" >&2
    exit 1
}
while [ $# -gt 1 ]; do
    case $1 in
    --jdk) jdk=$2 ;;
    --rounds) rounds=$2 ;;
    --transfers) transfers=$2 ;;
    *) fail "unknown option: $1" ;;
    esac
    shift 2
done
[ $# -eq 0 ] || fail "unknown option: $1"
[ -n "$jdk" ] || jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
h2=${H2:-$build/bench/h2-$h2_version.jar}
if [ ! -e "$h2" ]; then
    command -v mvn >/dev/null || fail "it needs mvn, or H2=h2.jar"
    mvn -q -B dependency:copy "-Dartifact=com.h2database:h2:$h2_version" "-DoutputDirectory=$build/bench" >/dev/null ||
        fail "Maven cannot fetch H2"
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/jdagent-bench.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$jdk/bin/javac" -nowarn -d "$scratch" "$here/programs/Bank.java"

# run WHO: the JVM's processor time in s; at a fixed heap, so that collections are the same.
run() {
    local command=("$jdk/bin/java" -Xms1g -Xmx1g -cp "$scratch:$h2" Bank "$transfers") options=()
    case $1 in
    none) ;;
    record) options=("") ;;
    *) options=("--$1") ;;
    esac
    [ "$1" = none ] || command=("$here/../scripts/jdperf" record -o "$scratch/p" ${options[0]:+"${options[0]}"} -- "${command[@]}")
    rm -rf "$scratch/p" "$scratch/p.old"
    "${command[@]}" >"$scratch/out" 2>"$scratch/err" || fail "$1: $(tail -n 3 "$scratch/err")"
    ! grep 'left out' "$scratch/err" >&2 || fail "$1 is not had here"
    awk '/^took/ { printf "%.3f\n", $3 / 1e9 }' "$scratch/out"
}

all=(none record alloc locks timeline)
for ((round = 0; round < rounds; round++)); do
    for ((i = 0; i < ${#all[@]}; i++)); do
        who=${all[(i + round) % ${#all[@]}]} # nobody is always first
        printf '%d\t%s\t%s\n' "$round" "$who" "$(run "$who")" | tee -a "$scratch/results"
    done
done
awk -F '\t' '{ time[$1, $2] = $3; rounds = $1 + 1 }
    function median(who,    i, k, n, list, swap) {
        for (i = 0; i < rounds; i++) {
            list[i] = time[i, who] / time[i, "record"]
            for (k = i; k > 0 && list[k - 1] > list[k]; k--) { swap = list[k]; list[k] = list[k - 1]; list[k - 1] = swap }
        }
        return list[int(rounds / 2)]
    }
    END { n = split("none alloc locks timeline", all, " ")
        for (i = 1; i <= n; i++) printf "%s: %.4f of jdperf record\n", all[i], median(all[i]) }' "$scratch/results"
