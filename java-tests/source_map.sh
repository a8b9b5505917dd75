#!/usr/bin/env bash
# Code that Kotlin's compiler inlined has its own file and line, from the class file's source map (JSR 45).
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
# Nothing here compiles Kotlin, but the JVM believes what the class file says.
map=$'SMAP\nMapped.java\nKotlin\n*S Kotlin\n*F\n+ 1 Mapped.java\nMapped\n+ 2 Util.kt\nshop/UtilKt\n*L\n1#1,9:1\n'
map+=$'30#2,3:10\n13#1,20:13\n*S KotlinDebug\n*F\n+ 1 Mapped.java\nMapped\n*L\n9#1:10,3\n*E\n'
python3 "$tests_dir/readers/class_files.py" --map "$classes/Mapped.class" "$map"

# run NAME OPTIONS: the dump's text in $scratch/NAME.
run() {
    mkdir "$scratch/$1.d"
    "$jdk/bin/java" -XX:-BackgroundCompilation -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints \
        "-agentpath:$agent=dir=$scratch/$1.d,$2" -cp "$classes" Mapped >/dev/null || fail "$1: the program failed"
    verify "$(the_dump "$scratch/$1.d")"
    "$jdtool" dump --name Mapped.work "$(the_dump "$scratch/$1.d")" >"$scratch/$1"
}
run java methods
grep -q 'row .*shop/Util.kt:3[012]$' "$scratch/java" || fail "no line of Util.kt: $(grep -m 3 row "$scratch/java")"
! grep 'Mapped.java:1[012]$' "$scratch/java" || fail "a line that the map has elsewhere"
grep -q 'node .*shop.UtilKt.{inline} (shop/Util.kt), called by node 0 at line 9$' "$scratch/java" ||
    fail "no node for what was inlined: $(grep node "$scratch/java")"
grep -q 'range .* node 1 line 3[012] shop.UtilKt.{inline}$' "$scratch/java" || fail "no range of that node"
note "$(grep -c 'row .*Util.kt' "$scratch/java") rows of Util.kt"

run source names=source
grep -q 'node .*shop.{inline Util.kt} (shop/Util.kt)' "$scratch/source" ||
    fail "names=source: $(grep node "$scratch/source")"
run off inline=off
! grep 'Util.kt' "$scratch/off" || fail "inline=off: a line of inlined code"
grep -q 'row .*Mapped.java:9$' "$scratch/off" || fail "inline=off: not the line of the call"
