#!/usr/bin/env bash
# JDK 27's hot code heap: compiled code is copied there while it runs. Every sample in it has the name of
# the method that was copied, and both copies are in the dump.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$jdk_major" -ge 27 ] || skip "JDK $jdk_major has no hot code heap (27 has)"
need_perf
compile

perf_record -o "$scratch/perf.data" -e cpu-clock -F 1999 -k mono -- \
    "$jdk/bin/java" "-agentpath:$agent=dir=$scratch" -XX:+UnlockExperimentalVMOptions -XX:+HotCodeHeap \
    -XX:+NMethodRelocation -XX:HotCodeHeapSize=8m -XX:HotCodeStartupDelaySeconds=0 -XX:HotCodeIntervalSeconds=1 \
    -XX:HotCodeSampleSeconds=1 -XX:+PrintCodeCache -XX:CompileCommand=quiet \
    '-XX:CompileCommand=dontinline,HotCode::*' -cp "$classes" HotCode 8 >"$scratch/out" 2>"$scratch/err" ||
    fail "the JVM failed: $(tail -n 3 "$scratch/err" "$scratch/out")"
dump=$(the_dump "$scratch")
verify "$dump"
"$jdtool" inject -q -i "$scratch/perf.data" -o "$scratch/once.data" || fail "jdtool inject"

read -r low high < <(grep -A 1 "'hot nmethods'" "$scratch/out" | code_ranges /dev/stdin)
[ -n "$low" ] || fail "no hot code heap: $(grep CodeHeap "$scratch/out")"
"$jdtool" map "$dump" | awk -v low="$low" -v high="$high" '
    function wide(hex) { return "x" substr("0000000000000000", 1, 16 - length(hex)) hex }
    wide($1) >= wide(low) && wide($1) < wide(high)' >"$scratch/copies"
note "copies: $(tr '\n' ';' <"$scratch/copies")"
[ "$(grep -c 'HotCode\.' "$scratch/copies")" -ge 2 ] || fail "nothing was copied"

# Each sample there against the map: the name of the copy that its address lies in.
perf script -i "$scratch/once.data" -F ip,sym -G --no-inline 2>/dev/null |
    awk -v low="$low" -v high="$high" '
    function number(hex,  i, n) {
        for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
        return n
    }
    NR == FNR { start[++n] = number($1); end[n] = start[n] + number($2); name[n] = $3; next }
    {
        ip = number($1)
        if (ip < number(low) || ip >= number(high)) next
        total++
        right = 0
        for (i = 1; i <= n; i++) if (ip >= start[i] && ip < end[i] && index($2, name[i]) == 1) right = 1
        if (!right) { wrong++; print > "/dev/stderr" }
    }
    END { print total + 0, wrong + 0 }' "$scratch/copies" - >"$scratch/counted" 2>"$scratch/wrong"
read -r total wrong <"$scratch/counted"
claim "hot code heap: samples wrong" "$wrong of $total"
[ "$total" -gt 200 ] || fail "only $total samples in the hot code heap"
[ "$wrong" -eq 0 ] || fail "wrong names: $(head -n 3 "$scratch/wrong")"
read -r total named < <(leaf_names "$scratch/once.data" "$scratch/out")
note "all code heaps: $named of $total leaf samples named"
at_least "$named" "$total" 99.9 || fail "less than 99.9 % named"
