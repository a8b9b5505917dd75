#!/usr/bin/env bash
# Measures the agent, the writer and the injector, compared with the alternatives. Everything that is compared runs
# interleaved; what counts are medians and their ratios.
#
# usage: bench/run.sh [OPTIONS] [PART...]     parts: replay live readable growth writer inject; all by default
#   --jdk HOME    the JDK (default: that of javac on PATH)
#   --peer [perf] also perf's own agent, built from Debian's linux-source-6.1
#   --peer async-profiler
#                 its own parts: truth and cost; async-profiler comes from Maven Central
#   --rounds N    rounds of each measurement (default 7)
#   --small       little work, for a look whether it runs: not the parts live and growth, but for JDAGENT_LONG=1
#   -o DIR        where results.tsv, results.json and table.txt go (default: build/bench/results)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${JDAGENT_BUILD:-$here/../build}" && pwd)
jdtool=$build/jdtool
agent=$build/libjdagent.so
floor=$build/bench/libbench-floor.so
driver=$build/bench/libbench-driver.so
peer_agent=$build/bench/libperf-jvmti.so
out=$build/bench/results
rounds=7 small=0 peer=0 peer_async=0 jdk="" parts=()

usage() {
    sed -n 's/^# \{0,1\}//; 4,14p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --jdk) jdk=$2 && shift ;;
    --peer)
        case ${2:-} in
        async-profiler) peer_async=1 && shift ;;
        perf) peer=1 && shift ;;
        *) peer=1 ;;
        esac
        ;;
    --rounds) rounds=$2 && shift ;;
    --small) small=1 rounds=2 ;;
    -o) out=$2 && shift ;;
    replay | live | readable | growth | writer | inject | truth | cost) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || [ "$peer_async" = 0 ] || parts=(truth cost)
# For a look: live and growth do so by what readable and replay have.
[ ${#parts[@]} -gt 0 ] || [ "$small" = 0 ] || [ "${JDAGENT_LONG:-0}" = 1 ] || parts=(replay readable writer inject)
[ ${#parts[@]} -gt 0 ] || parts=(replay live readable growth writer inject)
[ -n "$jdk" ] || jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")

fail() {
    echo "bench: $*" >&2
    exit 1
}
progress() {
    echo "bench: $*" >&2
}
[ -x "$jdk/bin/javac" ] || fail "no JDK at '$jdk'"
for needed in "$agent" "$jdtool" "$build/bench/writer_bench"; do
    [ -e "$needed" ] || fail "not built: $needed"
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/jdagent-bench.XXXXXX")
jvm=""
finish() {
    [ -z "$jvm" ] || kill -KILL "$jvm" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
mkdir -p "$out" "$scratch/classes"
results=$out/results.tsv
: >"$results"

# result WHAT WHO VALUE: one measurement; several of the same become a median.
result() {
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$results"
}

# median WHAT WHO: of the measurements so far.
median() {
    awk -F '\t' -v what="$1" -v who="$2" '$1 == what && $2 == who { print $3 }' "$results" | sort -g |
        awk '{ value[NR] = $1 } END { if (NR) print (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

# timed WHAT WHO COMMAND...: its wall time in seconds.
timed() {
    local what=$1 who=$2 start
    shift 2
    start=${EPOCHREALTIME/./}
    "$@" >"$scratch/run.out" 2>"$scratch/run.err" || fail "$what, $who: $(tail -n 3 "$scratch/run.err")"
    result "$what s" "$who" "$(awk "BEGIN { print (${EPOCHREALTIME/./} - $start) / 1e6 }")"
}

# perf's own agent, out of the kernel's sources.
build_peer() {
    local archive=/usr/src/linux-source-6.1.tar.xz root=linux-source-6.1/tools
    [ -e "$archive" ] || fail "--peer needs $archive (Debian: linux-source-6.1)"
    [ -e "$peer_agent" ] && return
    progress "building perf's own agent"
    mkdir -p "$scratch/src"
    tar -C "$scratch/src" -xf "$archive" $root/perf/jvmti $root/perf/util/jitdump.h $root/lib/string.c \
        $root/lib/ctype.c $root/include
    (
        cd "$scratch/src/$root"
        gcc -O2 -g -fPIC -shared -D_GNU_SOURCE -DHAVE_GETTID -DHAVE_JVMTI_CMLR -w -Iinclude -Iperf/util -Iperf \
            -I"$jdk/include" -I"$jdk/include/linux" perf/jvmti/jvmti_agent.c perf/jvmti/libjvmti.c \
            lib/string.c lib/ctype.c -o "$peer_agent"
    ) || fail "perf's own agent does not build"
}

# shellcheck source=bench/javac.sh
. "$here/javac.sh"
# shellcheck source=bench/replays.sh
. "$here/replays.sh"
# shellcheck source=bench/parts/replay.sh
. "$here/parts/replay.sh"
# shellcheck source=bench/parts/live.sh
. "$here/parts/live.sh"
# shellcheck source=bench/parts/readable.sh
. "$here/parts/readable.sh"
# shellcheck source=bench/parts/growth.sh
. "$here/parts/growth.sh"
# shellcheck source=bench/parts/writer.sh
. "$here/parts/writer.sh"
# shellcheck source=bench/parts/inject.sh
. "$here/parts/inject.sh"
# shellcheck source=bench/async_profiler.sh
. "$here/async_profiler.sh"
# shellcheck source=bench/parts/truth.sh
. "$here/parts/truth.sh"
# shellcheck source=bench/parts/cost.sh
. "$here/parts/cost.sh"

[ "$peer" = 0 ] || build_peer
[ "$peer_async" = 0 ] || build_async_profiler
for part in "${parts[@]}"; do
    "part_$part"
done

awk -F '\t' -v json="$out/results.json" -f "$here/table.awk" "$results" | tee "$out/table.txt"
