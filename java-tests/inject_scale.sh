#!/usr/bin/env bash
# Compares jdtool inject with perf inject --jit on 20,000 compiled methods: time, files, bytes, memory. Takes minutes,
# so only with JDAGENT_LONG=1.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
[ "$long" = 1 ] || skip "takes minutes; set JDAGENT_LONG=1"
[ -x /usr/bin/time ] || skip "GNU time is not installed"
javac_workload

jvm_flags -Xcomp -XX:+PreserveFramePointer "-agentpath:$agent=dir=$scratch"
perf_record -k mono -e cpu-clock -F 999 -g -o "$scratch/perf.data" -- \
    "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$scratch/log" 2>&1 || fail "javac"
dump=$(the_dump "$scratch")
blobs=$("$jdtool" stat "$dump" | awk '$1 == "LOAD" { print $2 }')
dump_size=$(stat -c %s "$dump")
note "$blobs pieces of code, a dump of $dump_size bytes"
[ "$blobs" -ge 20000 ] || fail "only $blobs pieces of code"

# Seconds of processor time, and KB of memory at most.
timed() {
    /usr/bin/time -f '%U %S %e %M' -o "$scratch/time" "$@" || fail "$*"
    read -r user system wall memory <"$scratch/time"
    seconds=$(awk -v a="$user" -v b="$system" 'BEGIN { print a + b }')
}
timed perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/perf.data" -o "$scratch/stock.data"
stock_seconds=$seconds
stock_wall=$wall
stock_files=$(find "$scratch" -name 'jitted-*' | wc -l)
stock_bytes=$(find "$scratch" -name 'jitted-*' -printf '%b\n' | awk '{ n += $1 * 512 } END { print n }')
timed "$jdtool" inject -i "$scratch/perf.data" -o "$scratch/perf.jit.data" -q
files=$(find "$scratch" -name 'perf.jit-*.so' | wc -l)
# Code at an address that other code had is in another file (jdtool/images/image_layout.h), and all have holes.
bytes=$(find "$scratch" -name 'perf.jit-*.so' -printf '%b\n' | awk '{ n += $1 * 512 } END { print n }')
note "processor time $seconds s against $stock_seconds s, wall $wall s against $stock_wall s"
note "$files files of $bytes bytes against $stock_files of $stock_bytes; $memory KB of memory"
awk -v a="$seconds" -v b="$stock_seconds" 'BEGIN { exit !(a <= 0.2 * b) }' || fail "too slow"
[ $((files * 1000)) -le "$stock_files" ] || fail "$files files"
[ $((bytes * 100)) -le $((stock_bytes * 15)) ] || fail "$bytes bytes are more than 0.15 of $stock_bytes"
[ $((memory * 1024)) -le $((dump_size * 2)) ] || fail "$memory KB of memory"
