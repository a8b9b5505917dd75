#!/usr/bin/env bash
# bpftrace and bcc read the perf map while the JVM runs.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$EUID" -eq 0 ] || skip "only root may load BPF programs"
command -v bpftrace >/dev/null || skip "bpftrace is not installed"
bpftrace -e 'BEGIN { exit(); }' >"$scratch/bpf" 2>&1 || skip "no BPF here: $(tail -n 1 "$scratch/bpf")"
bcc_python=/usr/bin/python3 # for which Debian packages bcc
"$bcc_python" -c 'import bcc' 2>/dev/null || skip "bcc's Python module is not installed"

cache=PER_PID
case $(bpftrace --version) in *v0.1[0-7].*) cache=1 ;; esac

compile
"$jdk/bin/java" "-agentpath:$agent=mode=map" -XX:+PreserveFramePointer -cp "$classes" Streams 600 >"$scratch/out" &
pid=$!
children+=("$pid")
map=/tmp/perf-$pid.map
trap 'rm -f "$map"; finish' EXIT
entries() { [ "$(grep -c . "$map" 2>/dev/null)" -ge 500 ]; }
wait_until 300 "map with 500 entries" entries
code_cache "$pid" >"$scratch/codecache"

# The stack's addresses below their names; of a frame without a name bpftrace prints the address alone. It looks for
# names at the end, when the map is still, and reads the map once.
BPFTRACE_CACHE_USER_SYMBOLS=$cache bpftrace --unsafe \
    -e "profile:hz:499 /pid == $pid/ { @[ustack(perf, 1)] = count(); } interval:s:5 { system(\"kill -STOP $pid\"); exit(); }" \
    >"$scratch/stacks" 2>"$scratch/bpf" || fail "bpftrace: $(tail -n 3 "$scratch/bpf")"
read -r total named < <(awk -v ranges="$(code_ranges "$scratch/codecache" | tr '\n' ' ')" '
    function wide(hex) { return "x" substr("0000000000000000", 1, 16 - length(hex)) hex }
    BEGIN {
        n = split(ranges, r, " ")
        for (i = 1; i <= n; i++) r[i] = wide(r[i])
    }
    /^@\[/ { ip = name = ""; next }
    /^\]: / {
        for (i = 1; i < n; i += 2)
            if (ip >= r[i] && ip < r[i + 1]) {
                total += $2
                if (name ~ /\(.*\/perf-[0-9]+\.map\)$/) named += $2
                else if (shown++ < 5) print "   unnamed: " ip, name > "/dev/stderr"
            }
        next
    }
    NF { ip = wide($1); name = $0 }
    END { print total + 0, named + 0 }' "$scratch/stacks")
claim "bpftrace: named" "$(share "$named" "$total") of $total"
[ "$total" -ge 300 ] || fail "bpftrace took only $total samples in generated code"
# What is compiled after the sample may lie where it was taken, and what went has no entry: as with perf.
at_least "$named" "$total" 99 || fail "bpftrace: less than 99 % named"

kill -STOP "$pid" # from here on the map is still, but for the blanks where code went
grep . "$map" >"$scratch/map"
overlaps "$scratch/map"
read -r total named < <("$bcc_python" - "$pid" "$scratch/map" <<'END'
import sys

import bcc

pid, names = int(sys.argv[1]), bcc.SymbolCache(int(sys.argv[1]))
total = right = 0
with open(sys.argv[2], encoding="utf-8") as entries:
    for entry in entries:
        start, size, name = entry.rstrip("\n").split(" ", 2)
        total += 1
        found = names.resolve(int(start, 16) + int(size, 16) // 2, False)[0]
        right += found is not None and found.decode() == name
print(total, right)
END
)
claim "bcc: entries found" "$named of $total"
[ "$total" -ge 500 ] || fail "only $total entries in the map"
[ "$named" -eq "$total" ] || fail "bcc names $((total - named)) of $total otherwise"
