#!/usr/bin/env bash
# The agent notices every wrong entry in a JVM's layout tables. No lie brings the JVM down, makes the agent say more
# than one thing about each part of what it knows, or has it tell of methods or inlined methods what JVMTI does not say:
# also while pages are unmapped all the time, for what is believed is read where it is.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
false_layout=$build/java-tests/libfalse_layout.so
[ -e "$false_layout" ] || fail "not built: $false_layout"

"$jdk/bin/java" "-agentpath:$false_layout=all" -XX:+UseSerialGC -cp "$classes" Streams 1 \
    >"$scratch/out" 2>"$scratch/lies" || fail "the JVM failed: $(grep -m 3 -v '^--\|^  ' "$scratch/lies" "$scratch/out")"

# Per lie: what was found. A lie may hide something (a constant pool that looks shorter than it is: the
# classes that need its end), but never show more than there is.
awk '
    function judge() {
        if (what == "") return
        if (messages > 3) { print what ": " messages " messages"; bad++ }
        if (found["named"] > truth["named"]) { print what ": " found["named"] " methods"; bad++ }
        if (found["named"] == 0) nameless++
        if (found["scoped"] == 0) scopeless++
        if (found["facts"] == 0) factless++
        lies++
    }
    /^-- vanished/ { vanished = $3; next }
    /^-- / { judge(); what = $0; messages = 0; next }
    /^jdagent: / { messages++; next }
    /^   codes / {
        for (i = 1; i < NF; i += 2) found[$i] = $(i + 1)
        inside += found["placed"] > 0
        if (what == "-- truth") for (i = 1; i < NF; i += 2) truth[$i] = $(i + 1)
    }
    END {
        judge()
        printf "%d %d %d %d %d %d %d %d %d %d %d %d\n", bad, lies, nameless, scopeless, factless,
            truth["codes"], truth["facts"], truth["scoped"], truth["named"], truth["placed"], inside, vanished
    }' "$scratch/lies" >"$scratch/judged"
read -r bad lies nameless scopeless factless codes facts scoped named placed inside vanished < <(tail -n 1 "$scratch/judged")
note "the truth: $codes pieces of code, facts of $facts, scopes of $scoped, $named methods"
[[ $codes -gt 100 && $facts -eq $codes && $scoped -gt 50 && $named -gt 200 ]] || fail "the truth is not believed"
note "$lies lies: no methods $nameless times, no scopes $scopeless times, no facts $factless times"
[[ $lies -gt 300 && $nameless -gt 100 && $scopeless -gt 50 && $factless -gt 50 ]] || fail "lies are believed"
[ "$bad" -eq 0 ] || fail "$(head -n 5 "$scratch/judged")"
note "read in place: $placed methods, and some under $inside lies; pages were unmapped $vanished times meanwhile"
[[ $vanished -gt 1000 ]] || fail "no pages vanish"
[[ $jdk_major -lt 17 || ($placed -gt 50 && $inside -gt 10) ]] || fail "nothing is read in place"
claim "false layouts survived" "$lies of $lies"

# And the agent itself: the feature is off, one message says so, the rest of the profile is as always.
number=0
for lie in Symbol::_length,+4 nmethod::_scopes_pcs_offset,+8 CodeHeap::_segmap,absurd java_lang_Class::_klass_offset,gone; do
    my_part $((number++)) "the agent under $lie" || continue
    dir=$scratch/${lie//[^A-Za-z0-9]/_}
    mkdir -p "$dir"
    "$jdk/bin/java" "-agentpath:$false_layout=$lie" "-agentpath:$agent=dir=$dir,methods=on" \
        -XX:+UseSerialGC -cp "$classes" Streams 1 >"$scratch/out" 2>"$scratch/err" ||
        fail "$lie: the JVM failed: $(head -n 3 "$scratch/err")"
    verify "$(the_dump "$dir")"
    [ "$("$jdtool" map "$(the_dump "$dir")" | grep -c Streams)" -gt 3 ] || fail "$lie: no names of compiled code"
    [ "$(grep -c '^jdagent: ' "$scratch/err")" -eq 1 ] || fail "$lie: $(cat "$scratch/err")"
    note "$lie: $(cat "$scratch/err")"
done
