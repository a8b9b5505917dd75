#!/usr/bin/env bash
# A JVM with an AOT cache (JDK 25 and later) still uses it with the agent loaded, and the dump has every blob that the
# JVM lists.
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$jdk_major" -ge 25 ] || skip "JDK $jdk_major has no AOT cache of code (25 has)"
compile
"$jdk/bin/jar" cf "$scratch/handles.jar" -C "$classes" .
"$jdk/bin/java" "-XX:AOTCacheOutput=$scratch/cache" -cp "$scratch/handles.jar" Handles </dev/null \
    >"$scratch/made" 2>&1 || fail "no cache: $(tail -n 3 "$scratch/made")"
[ -s "$scratch/cache" ] || skip "this JVM makes no AOT cache: $(tail -n 1 "$scratch/made")"

mkfifo "$scratch/in"
sleep 600 >"$scratch/in" &
children=("$!")
"$jdk/bin/java" "-agentpath:$agent=dir=$scratch,methods=on" "-XX:AOTCache=$scratch/cache" -XX:AOTMode=on \
    "-Xlog:aot*=info,aot+codecache*=debug:file=$scratch/log" -cp "$scratch/handles.jar" Handles \
    <"$scratch/in" >"$scratch/out" 2>"$scratch/err" &
pid=$!
children+=("$pid")
wait_until 60 "program that runs" grep -q ready "$scratch/out"
! grep -q '^jdagent: ' "$scratch/err" || fail "$(cat "$scratch/err")"
note "$(grep -ci 'loaded\|AOT.*stub\|adapter' "$scratch/log" || true) lines on what was loaded"
"$jdk/bin/jcmd" "$pid" Compiler.perfmap "$scratch/perfmap" >"$scratch/said" 2>&1 || fail "jcmd: $(cat "$scratch/said")"
attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
"$jdtool" map "$(the_dump "$scratch")" >"$scratch/map"

# Of what the JVM lists, what no piece of the dump begins in.
awk '
    function number(hex,  i, n) {
        for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
        return n
    }
    { sub(/^0x/, "", $1); sub(/^0x/, "", $2) }
    NR == FNR { start[++n] = number($1); end[n] = start[n] + number($2); next }
    {
        total++; from = number($1); to = from + number($2); found = 0
        for (i = 1; i <= n && !found; i++) found = start[i] < to && end[i] > from
        if (!found) { missing++; print > "/dev/stderr" }
    }
    END { print total + 0, missing + 0 }' "$scratch/map" "$scratch/perfmap" >"$scratch/counted" 2>"$scratch/missing"
read -r total missing <"$scratch/counted"
claim "AOT cache: blobs without a name" "$missing of $total"
[ "$total" -gt 150 ] || fail "only $total blobs"
[ "$missing" -eq 0 ] || fail "$(head -n 3 "$scratch/missing")"

# Adapters from the cache are named as the others are: their frames are stepped over by what they are.
awk '$3 ~ /^[DFIJL]*\((0x|{)/ { print; odd++ } END { print odd + 0 > "/dev/stderr" }' "$scratch/map" >"$scratch/odd" 2>"$scratch/counted"
adapters=$(grep -c 'I2C/C2I adapters' "$scratch/map" || true)
claim "AOT cache: adapters named by their arguments alone" "$(cat "$scratch/counted") of $adapters"
[ ! -s "$scratch/odd" ] || fail "$(head -n 3 "$scratch/odd")"
[ "$adapters" -gt 100 ] || fail "only $adapters adapters"
