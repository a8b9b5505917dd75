#!/usr/bin/env bash
# With names=source, code from Scala has the names of the Scala source. The default, and classes of Java, are as ever.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile
# Nothing here compiles Scala, but the JVM believes what the class file says; equally long, so that
# the rest of the file stays where it is.
sed -i 's/Vec_\.java/Vec.scala/' "$classes/Vec_.class"

for style in java source; do
    mkdir "$scratch/$style"
    "$jdk/bin/java" -XX:-BackgroundCompilation -XX:CompileCommand=quiet \
        -XX:CompileCommand='dontinline,Vec_.*' "-agentpath:$agent=dir=$scratch/$style,names=$style" \
        -cp "$classes" Vec_ >/dev/null || fail "the program failed with names=$style"
    "$jdtool" map "$(the_dump "$scratch/$style")" >"$scratch/$style.map"
done
# shellcheck disable=SC2016 # the dollars are in the name
grep -F ' Vec_.$plus$plus(int)' "$scratch/java.map" >/dev/null || fail "names=java: no \$plus\$plus"
grep -F ' Vec_.++(int)' "$scratch/source.map" >/dev/null || fail "names=source: no ++"
# shellcheck disable=SC2016
! grep -F '$plus' "$scratch/source.map" || fail "names=source leaves \$plus"
grep -F ' java.lang.' "$scratch/source.map" >/dev/null || fail "names=source: Java's names are gone"
