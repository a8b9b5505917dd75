#!/usr/bin/env bash
# Native and kernel frames have the same names as in perf, for every frame of javac.
# shellcheck source=java-tests/lib.sh
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf

mkdir "$scratch/out"
perf_record -o "$scratch/perf.data" -k mono -e cpu-clock -F 4999 -g -- \
    "$jdk/bin/javac" -nowarn -d "$scratch/out" "$tests_dir"/programs/{Warm,Calls,DeepChain}.java \
    >"$scratch/log" 2>&1 || fail "perf record: $(cat "$scratch/log")"
# Since it can print a frame's place in its file, perf prints the address in the process without.
perf script -i "$scratch/perf.data" --no-inline -F ip,sym,dso,dsoff 2>/dev/null >"$scratch/script" ||
    perf script -i "$scratch/perf.data" --no-inline -F ip,sym,dso 2>/dev/null >"$scratch/script"
"$build/tests/names" <"$scratch/script" >"$scratch/names" 2>&1
tail -n 1 "$scratch/names"
awk '/ frames are named alike/ { alike = $1; frames = $3 }
    END { exit !(frames >= 5000 && alike >= 0.999 * frames) }' "$scratch/names" ||
    fail "names differ: $(grep '^differ' "$scratch/names" | sort | uniq -c | sort -rn | head -n 10)"
