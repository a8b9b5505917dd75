#!/usr/bin/env bash
# Compares names=source with the compilers of Kotlin, Scala, Clojure and Groovy (JDAGENT_LONG=1 only).
source "$(dirname "$0")/lib.sh"
begin "$@"
[ "$long" = 1 ] || skip "long: fetches four languages' compilers (JDAGENT_LONG=1)"
command -v mvn >/dev/null || skip "mvn is not installed (Debian: maven)"
golden=$tests_dir/../tests/golden/source_names.tsv
sources=$tests_dir/languages

# classpath NAME GROUP:ARTIFACT:VERSION...: sets cp_NAME to them and all that they need.
classpath() {
    local name=$1 of group artifact version dependencies=""
    shift
    for of; do
        IFS=: read -r group artifact version <<<"$of"
        dependencies+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId>"
        dependencies+="<version>$version</version></dependency>"
    done
    mkdir -p "$scratch/pom/$name"
    cat >"$scratch/pom/$name/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>none</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>$dependencies</dependencies></project>
POM
    mvn -q -B -f "$scratch/pom/$name" dependency:build-classpath "-Dmdep.outputFile=$scratch/pom/$name/path" \
        >"$scratch/log" 2>&1 || skip "Maven cannot fetch $*: $(grep -m 1 ERROR "$scratch/log")"
    declare -g "cp_$name=$(cat "$scratch/pom/$name/path")"
}
classpath kotlin org.jetbrains.kotlin:kotlin-compiler-embeddable:2.2.20
classpath scala2 org.scala-lang:scala-compiler:2.13.16
classpath scala3 org.scala-lang:scala3-compiler_3:3.7.3
classpath clojure org.clojure:clojure:1.12.0
classpath groovy org.apache.groovy:groovy:4.0.28

# compiled NAME COMMAND...: runs it with NAME's classpath; its classes come into $scratch/NAME.
compiled() {
    local name=$1 path=cp_$1
    shift
    mkdir -p "$scratch/$name"
    "$jdk/bin/java" -cp "${!path}:$scratch/$name" "$@" >"$scratch/log" 2>&1 ||
        fail "$name does not compile: $(tail -n 5 "$scratch/log")"
    python3 "$tests_dir/readers/class_files.py" "$scratch/$name" >>"$scratch/methods"
    note "$name: $(find "$scratch/$name" -name '*.class' | wc -l) classes"
}
# shellcheck disable=SC2154 # cp_* are set by classpath
{
    compiled kotlin org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -nowarn -no-stdlib -no-reflect -cp "$cp_kotlin" \
        -d "$scratch/kotlin" "$sources/Shop.kt" "$sources/Discount.kt"
    # The newest class files that 2.13.16 reads are JDK 24's.
    if [ "$jdk_major" -lt 25 ]; then
        compiled scala2 scala.tools.nsc.Main -usejavacp -d "$scratch/scala2" "$sources/Vec.scala"
    fi
    compiled scala3 dotty.tools.dotc.Main -nowarn -usejavacp -d "$scratch/scala3" "$sources/Vec.scala" \
        "$sources/Three.scala"
    cp_clojure+=:$sources
    compiled clojure "-Dclojure.compile.path=$scratch/clojure" clojure.lang.Compile my-app.core
    compiled groovy org.codehaus.groovy.tools.FileSystemCompiler -d "$scratch/groovy" "$sources/Market.groovy"
}

# Every line of the list is a method that a compiler made just now.
LC_ALL=C sort -u -o "$scratch/methods" "$scratch/methods"
grep -v '^#' "$golden" | cut -f 1-5 | LC_ALL=C sort -u >"$scratch/listed"
LC_ALL=C comm -23 "$scratch/listed" "$scratch/methods" >"$scratch/gone"
if [ "$jdk_major" -lt 25 ]; then
    [ ! -s "$scratch/gone" ] || fail "no compiler makes (any more): $(head -n 3 "$scratch/gone")"
    note "$(wc -l <"$scratch/listed") methods, all as listed"
fi

# runs NAME MAIN: every method that runs is compiled, and its name as the golden list or, where it is not
# listed, as Java has it. Sets seen to how many were in the list.
runs() {
    local name=$1 path=cp_$1 main=$2 dir=$scratch/run/$1.$2
    mkdir -p "$dir"
    "$jdk/bin/java" -Xcomp -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet \
        -XX:CompileCommand='compileonly,market*::*' -XX:CompileCommand='compileonly,geometry*::*' \
        -XX:CompileCommand='compileonly,my_app*::*' -XX:CompileCommand='compileonly,bazaar*::*' \
        "-agentpath:$agent=dir=$dir,names=source" -cp "$scratch/$name:${!path}" "$main" 3 >"$dir/out" 2>"$dir/err" ||
        fail "$main does not run: $(tail -n 3 "$dir/err")"
    verify "$(the_dump "$dir")"
    "$jdtool" map "$(the_dump "$dir")" | cut -d ' ' -f 3- | grep -E '^(market|geometry|my[-_]app|bazaar)' |
        LC_ALL=C sort -u >"$dir/names"
    grep -v '^#' "$golden" | cut -f 6 | LC_ALL=C sort -u >"$scratch/expected"
    seen=$(LC_ALL=C comm -12 "$scratch/expected" "$dir/names" | wc -l)
    # shellcheck disable=SC2016 # the dollars are in the names
    # What is in the list is spelt in no other way. Parameters keep Java's spelling.
    LC_ALL=C comm -13 "$scratch/expected" "$dir/names" | sed 's/(.*//' |
        grep -vE '\$\$(Lambda|InjectedInvoker)|\$(INIT|getStaticMetaClass|getLookup|static_)|super\.\$|access\$|proxy\$' |
        grep -E '[$]|Kt\.|_QMARK|-impl|_closure' >"$dir/odd" || true
    [ ! -s "$dir/odd" ] || fail "$main: $(head -n 3 "$dir/odd")"
    note "$main: $(wc -l <"$dir/names") names, $seen of them in the list"
}
runs kotlin market.ShopKt
[ "$seen" -ge 30 ] || fail "only $seen of Kotlin's"
# What Kotlin inlined, of its library and of another file, has the lines of these.
"$jdtool" dump "$(the_dump "$scratch/run/kotlin.market.ShopKt")" >"$scratch/kotlin.dump"
for place in 'kotlin.collections.{inline _Arrays.kt} (kotlin/collections/_Arrays.kt)' \
    'market.{inline Discount.kt} (market/Discount.kt)'; do
    grep -qF "$place, called by node 0 at line" "$scratch/kotlin.dump" || fail "Kotlin: no $place"
done
[ ! -d "$scratch/scala2" ] || runs scala2 geometry.Main
runs scala3 geometry.Main
runs scala3 geometry3.three
[ "$seen" -ge 20 ] || fail "only $seen of Scala 3's"
runs clojure my_app.core
[ "$seen" -ge 30 ] || fail "only $seen of Clojure's"
runs groovy bazaar.Market
[ "$seen" -ge 20 ] || fail "only $seen of Groovy's"
