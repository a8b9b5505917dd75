#!/usr/bin/env bash
# A class is redefined with the same methods a hundred lines further down, and lines stay right. Its methods keep their
# ids, but code compiled from then on has the new lines. So has what the interpreter runs: the table of methods tells of
# the new ones while the program runs, not only at its end, though no event does. And it tells of the old ones that
# threads still run when an agent is attached afterwards, of which JVMTI knows nothing.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

mkdir "$scratch/moved"
{
    grep '^import' "$tests_dir/programs/Redefine.java"
    printf '\n%.0s' {1..100}
    sed -n '/^class Hot/,$p' "$tests_dir/programs/Redefine.java"
} >"$scratch/moved/Moved.java"
"$jdk/bin/javac" -d "$scratch/moved" "$scratch/moved/Moved.java"
printf 'Premain-Class: Redefine\nCan-Redefine-Classes: true\n' >"$scratch/manifest"
"$jdk/bin/jar" cfm "$scratch/agent.jar" "$scratch/manifest" -C "$classes" Redefine.class

"$jdk/bin/java" "-agentpath:$agent=dir=$scratch,methods=on" "-javaagent:$scratch/agent.jar" -cp "$classes" \
    Redefine "$scratch/moved/Hot.class" "$scratch" >"$scratch/out" || fail "the JVM failed"
grep -qx same "$scratch/out" || fail "the program's result: $(cat "$scratch/out")"
grep -qx told "$scratch/out" || fail "the table of methods lacks the redefined class"
dump=$(the_dump "$scratch")
verify "$dump"
# That all have been told of is told once, not each time that some more were (METHODS_ALL: an id and a size).
whole=$(LC_ALL=C grep -aoP '\x03\0\0\0\x10\0\0\0' "${dump%dump}methods" | wc -l)
[ "$whole" -eq 1 ] || fail "the table of methods says $whole times that it is whole"

# The lines of Hot in the order in which its code came: all of the first class, then of the other.
first=$(grep -n '^class Hot' "$tests_dir/programs/Redefine.java" | cut -d: -f1)
"$jdtool" dump "$dump" | sed -n 's/^ *row +[^ ]* *[MR][a-z]*\.java:\([0-9]*\)$/\1/p' |
    awk -v first="$first" '$1 > first' >"$scratch/lines"
old=$(awk '$1 <= 100' "$scratch/lines" | wc -l)
new=$(awk '$1 > 100' "$scratch/lines" | wc -l)
late=$(awk '$1 > 100 { moved = 1 } moved && $1 <= 100' "$scratch/lines" | wc -l)
note "rows of the first class: $old, of the redefined one: $new"
claim "redefined: wrong lines" "$late of $new"
[[ $old -gt 5 && $new -gt 5 ]] || fail "Hot was not compiled twice"
[ "$late" -eq 0 ] || fail "code of the redefined class has lines of the first"

mkfifo "$scratch/input"
mkdir "$scratch/attached"
"$jdk/bin/java" "-javaagent:$scratch/agent.jar" -cp "$classes" Redefine stay "$scratch/moved/Stay.class" \
    <"$scratch/input" >"$scratch/stays" 2>&1 &
pid=$!
children+=("$pid")
exec {input}>"$scratch/input"
wait_for "$scratch/stays" '^ready' 200
attach "$pid" "start,dir=$scratch/attached,methods=on" >"$scratch/said" || fail "attach: $(cat "$scratch/said")"
attach "$pid" stop >"$scratch/said" || fail "stop: $(cat "$scratch/said")"
exec {input}>&-
wait "$pid" || fail "the JVM failed after it was attached to"
versions=$(grep -ao "Stay\.run()" "$(the_dump "$scratch/attached" | sed "s/dump\$/methods/")" | wc -l) || true
claim "versions that run: told" "$versions of 3"
[ "$versions" -eq 3 ] || fail "the table of methods has $versions of three versions that run"
