#!/usr/bin/env bash
# Each sample has the label that the program had set at that time, on platform and virtual threads.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
jar=$build/jdagent-labels.jar
[ -e "$jar" ] || skip "jdagent-labels.jar is not built: the JDK of the build has no javac or jar"
compile
# A method that is inlined shares instructions with the loop of all threads.
java=("$jdk/bin/java" -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,Labelled.burn*"
    -cp "$classes:$jar" Labelled)

# check PROFILE LEAST
check() {
    "$jdperf" export "$scratch/$1" collapsed --by label:kind -o - 2>"$scratch/err" |
        awk '{ n = $NF; sub(/ [0-9]+$/, "")
            if (match($0, /Labelled\.burn[0-9]\(int\)/)) {
                method = substr($0, RSTART + 9, 5); sub(/;.*/, "")
                if ($0 == method) right += n; else { wrong += n; print "wrong: " n " samples of " method " under " $0 } } }
            END { printf "%d samples have the right label, %d a wrong one\n", right, wrong
                exit wrong || right < least }' least="$2" >"$scratch/said" || fail "$1: $(cat "$scratch/said" "$scratch/err")"
    claim "labels, $1" "$(cat "$scratch/said")"
}

seconds=2
[ "$long" = 0 ] || seconds=40
# From files: one that is named as it arrives waits half a second for the JVM, which may get no processor.
"$jdperf" record -o "$scratch/start" --stacks fp -F 1999 --threads -- "${java[@]}" "$seconds" >"$scratch/log" 2>"$scratch/err" ||
    [ $? = 3 ] || fail "record: $(tail -n 5 "$scratch/err")"
check start 100
claim "a label is set, with a journal, in ns" "$(sed -n 's/^cost\t//p' "$scratch/log" | sort -n | head -n 1)"
"$jdperf" export "$scratch/start" collapsed --label 'customer=number 2' -o - 2>/dev/null |
    awk '/burn2/ { found = 1 } /burn[013]\(/ { exit 2 } END { exit !found }' || fail "--label customer=…"
"$jdperf" export "$scratch/start" otlp-json -o "$scratch/otlp.json" 2>/dev/null
grep -q 'number 2' "$scratch/otlp.json" || fail "no label in OTLP"

# Without the agent. A loop of nothing but such calls takes a nanosecond each; what else the machine does
# may take some rounds of the fifty, not all.
"${java[@]}" 0 >"$scratch/log" 2>&1 || fail "without the agent: $(tail -n 5 "$scratch/log")"
cost=$(sed -n 's/^cost\t//p' "$scratch/log" | sort -n | head -n 1)
claim "a label is set, without the agent, in ns" "$cost"
awk -v cost="$cost" 'BEGIN { exit cost == "" || cost >= 5 }' || fail "without the agent a label costs $cost ns"

# Attached, to a class that is there, and taken away again.
# A log of its own: that of before says "cost" until the shell that becomes the JVM has emptied it.
"${java[@]}" 60 >"$scratch/running" 2>&1 &
jvm=$!
children+=("$jvm")
wait_for "$scratch/running" cost
"$jdperf" record -o "$scratch/attached" --stacks fp -F 1999 --threads -p "$jvm" -d "$seconds" >/dev/null 2>"$scratch/err" ||
    [ $? = 3 ] || fail "record -p: $(tail -n 5 "$scratch/err")"
kill -KILL "$jvm" # its fifty threads need not be busy while files are read
# What was set before there was a journal is not in it.
"$jdperf" export "$scratch/attached" collapsed --by label:kind -o - 2>/dev/null | grep -v '^\[no kind\]' >"$scratch/stacks" || :
awk '{ n = $NF
    if (match($0, /Labelled\.burn[0-9]\(int\)/)) { if (index($0, substr($0, RSTART + 9, 5) ";") == 1) right += n; else wrong += n } }
    END { printf "%d samples have the right label, %d a wrong one\n", right, wrong; exit wrong || right < 100 }' \
    "$scratch/stacks" >"$scratch/said" || fail "attached: $(cat "$scratch/said")"
claim "labels, attached" "$(cat "$scratch/said")"
