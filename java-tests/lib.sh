# Shared by the tests with real JVMs. Sourced, never run: `source lib.sh; begin "$@"`.
#
# A test gets one JDK's home as its only argument and the build directory in JDAGENT_BUILD. It ends
# with 0 (passed), 1 (failed, after a line "FAILED: why") or 77 (skipped, after "SKIPPED: why").
# JDAGENT_LONG=1 makes the soaks long.
# shellcheck shell=bash

set -euo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${JDAGENT_BUILD:-$tests_dir/../build}
build=$(cd "$build" && pwd)
# shellcheck disable=SC2034 # for the tests
{
    agent=$build/libjdagent.so
    jdtool=$build/jdtool
    jdperf=$tests_dir/../scripts/jdperf
    oracle=$build/java-tests/liboracle.so
    oracle_check=$build/java-tests/oracle-check
    long=${JDAGENT_LONG:-0}
}

# shellcheck source=tests/lib.sh
source "$tests_dir/../tests/lib.sh"

# What the user's shell has set must not change a test.
unset JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS JITDUMPDIR JITDUMP_USE_ARCH_TIMESTAMP

# begin JDK: checks the JDK, sets jdk and jdk_major, makes a scratch directory that vanishes at the
# end, together with every process that was put into `children`.
begin() {
    jdk=${1:?usage: $0 JDK-HOME}
    [ -x "$jdk/bin/javac" ] || skip "no JDK at $jdk"
    [[ -e $agent && -e $jdtool ]] || fail "not built: $agent, $jdtool"
    jdk_major=$(jdk_number)
    [ -n "$jdk_major" ] || fail "$jdk/bin/java does not tell its version"
    findings=${JDAGENT_FINDINGS:+$JDAGENT_FINDINGS/$(basename "$0" .sh).$jdk_major}
    [ -z "$findings" ] || : >"$findings"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/jdagent-test.XXXXXX")
    : >"$scratch/.begun"
    children=()
    trap finish EXIT
    note "JDK $jdk_major at $jdk"
}

# The JDK's number, by its own word: 8 calls itself "1.8.0_…". Debian's 8 has no release file; where there is one no JVM
# need be started.
jdk_number() {
    { cat "$jdk/release" 2>/dev/null || "$jdk/bin/java" -version 2>&1; } |
        sed -n 's/\(.* version \|^JAVA_VERSION=\)"\(1\.\)\{0,1\}\([0-9]*\).*/\3/p' | head -n 1
}

# claim WHAT VALUE: a promise of ours and what the test found of it, for the table of
# scripts/matrix.sh. A test that fails behind it says so there as well.
claim() {
    note "$1: $2"
    [ -z "$findings" ] || printf '%s\t%s\n' "$1" "$2" >>"$findings"
}

finish() {
    local status=$? child
    if [[ -n $findings && $status != 0 ]]; then
        case $status in
        77) printf '%s\tskipped\n' "$(basename "$0" .sh)" >"$findings" ;;
        *) printf '%s\tFAILED\n' "$(basename "$0" .sh)" >>"$findings" ;;
        esac
    fi
    for child in "${children[@]}"; do
        kill -KILL "$child" 2>/dev/null || true
    done
    # What a JVM that crashed has left where it was started; it may be that of a test beside this one.
    if ((status != 0 && status != 77)); then
        find . -maxdepth 1 -name 'hs_err_pid*.log' -newer "$scratch/.begun" -exec head -n 40 {} \;
    fi
    wait 2>/dev/null || true
    if [ "${JDAGENT_KEEP:-0}" = 1 ]; then
        note "kept: $scratch"
    else
        rm -rf "$scratch"
    fi
}

# Skips the test where this user or kernel has no uprobes; sets tracing.
need_uprobes() {
    tracing=/sys/kernel/tracing
    [ -e "$tracing/events" ] || mount -t tracefs tracefs "$tracing" 2>/dev/null || true
    [ -w "$tracing/uprobe_events" ] || skip "uprobes cannot be had here: $tracing/uprobe_events cannot be written"
    # A container may have the file and no right to use it.
    { printf '' >>"$tracing/uprobe_events"; } 2>/dev/null || skip "uprobes cannot be had here: the kernel refuses"
}

# no_probes WHEN: none whose recorder has gone; others may be recording. A guardian removes them behind its end.
no_probes() {
    wait_until 30 "end of the probes: $1" no_probe_is_left
}

no_probe_is_left() {
    local pid
    while read -r pid; do
        # One that has ended since the list was read took its own with it.
        kill -0 "$pid" 2>/dev/null || ! grep "jdagent_${pid}_" "$tracing/uprobe_events" >&2 || return 1
    done < <(sed -n 's/^p:jdagent_\([0-9]*\)_.*/\1/p' "$tracing/uprobe_events" | sort -u)
}

# my_part N WHAT: whether part N of a test, in which JDKs do not differ, is this one's to run: they share such parts. All
# are where there is one JDK, in a long run, and by hand. What is left to another JDK is named.
my_part() {
    local place=0 count=1
    [[ $long = 1 || -n $findings ]] || IFS=/ read -r place count <<<"${JDAGENT_PLACE:-0/1}"
    (($1 % count == place)) || { note "left to another JDK: $2"; return 1; }
}

# What recordings of the agent's own events need, and the program that counts them itself.
need_events() {
    need_perf
    need_uprobes
    [ "$jdk_major" -ge 11 ] || skip "JDK $jdk_major does not sample allocations"
    command -v python3 >/dev/null || skip "python3 is not installed"
    compile
}

# Compiles programs/ into $classes: those that this JDK can have ("JDK N and later" says a program that wants more), at
# once, for what javac needs is its start. What it made is kept in the build until a program or the JDK changes.
compile() {
    local kept program wants programs=() jar=$build/jdagent-labels.jar
    kept=$build/java-tests/classes/$(realpath "$jdk" | tr / _)
    classes=$scratch/classes
    mkdir -p "$classes" "$kept"
    (
        flock 9
        if [[ ! -e $kept/.made || -n $(find -L "$tests_dir/programs" "$jar" "$jdk/bin/javac" "$jdk/release" \
            -newer "$kept/.made" 2>/dev/null) ]]; then
            for program in "$tests_dir"/programs/*.java; do
                wants=$(sed -n 's/.*JDK \([0-9]*\) and later.*/\1/p' "$program")
                [[ ${wants:-0} -gt $jdk_major || ($program == */Labelled.java && ! -e $jar) ]] || programs+=("$program")
            done
            rm -rf "$kept/made"
            mkdir "$kept/made" # 8 does not make it
            # With what a short life wants.
            "$jdk/bin/javac" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -nowarn -cp "$jar" -d "$kept/made" "${programs[@]}"
            touch "$kept/.made"
        fi
    ) 9>"$kept/.lock" || exit
    cp -r "$kept/made/." "$classes"
}

# javac over a part of the JDK's own java.xml, 240 files of Xerces; over all of it, some 1,850, in a
# long run and for the table of scripts/matrix.sh: the workload that every figure in the documents is about. The part
# lies by itself, since javac would read, and compile, whatever other sources it finds beside it.
# javac_workload [whole] sets workload (a directory with java.xml in it) and javac_args, to be put behind `javac`; writes classes to $scratch.
javac_workload() {
    local zip=$jdk/lib/src.zip version
    [ -e "$zip" ] || zip=/usr/lib/jvm/openjdk-$jdk_major/lib/src.zip
    [ -e "$zip" ] || zip=$jdk/src.zip # JDK 8
    [ -e "$zip" ] || skip "no src.zip of JDK $jdk_major (Debian: openjdk-$jdk_major-source)"
    version=$("$jdk/bin/java" -version 2>&1 | sed -n '2s/.*(build \(.*\)).*/\1/p' | tr -c 'A-Za-z0-9.\n' _)
    workload=$build/java-tests/sources/$version
    mkdir -p "$build/java-tests/sources"
    (
        flock 9
        if [ ! -e "$workload/part/files" ]; then
            rm -rf "$workload"
            mkdir -p "$workload/part"
            cd "$workload"
            unpack_java_xml "$(readlink -f "$zip")"
            cp -r --parents java.xml/com/sun/org/apache/xerces/internal/{impl/{dtd,dv,io,xpath},util,xni,xs} part/
            find java.xml -name '*.java' >files
            cd part
            find java.xml -name '*.java' >files.new
            mv files.new files
        fi
    ) 9>"$build/java-tests/sources/.lock"
    local files as_module=() least=1000
    [[ $long = 1 || -n $findings || ${1:-} = whole ]] || { workload+=/part; least=200; }
    [ "$jdk_major" -lt 9 ] || as_module=(--patch-module "java.xml=$workload/java.xml")
    files=$(wc -l <"$workload/files")
    [ "$files" -ge "$least" ] || fail "the workload has only $files files"
    sed "s|^|$workload/|" "$workload/files" >"$scratch/files"
    # shellcheck disable=SC2034 # for the tests
    javac_args=(-nowarn -Xlint:none -XDignore.symbol.file -d "$scratch/out"
        "${as_module[@]}" "@$scratch/files")
    mkdir -p "$scratch/out" # JDK 8's javac does not
    note "javac over $files files"
}

# unpack_java_xml ZIP: the sources of the module java.xml into ./java.xml; of JDK 8, which has no
# modules, those of the same packages.
unpack_java_xml() {
    local packages=(com/sun/org/apache com/sun/java_cup com/sun/xml/internal/stream javax/xml/datatype
        javax/xml/namespace javax/xml/parsers javax/xml/stream javax/xml/transform javax/xml/validation
        javax/xml/xpath org/w3c/dom org/xml/sax)
    if [ "$jdk_major" -ge 9 ]; then
        "$jdk/bin/jar" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC xf "$1" java.xml # with what a short life wants
        return
    fi
    mkdir java.xml
    (cd java.xml && "$jdk/bin/jar" xf "$1" "${packages[@]}")
}

# javac_recording: sets recording to a directory with the dump of javac over its workload, `oracle`, what the oracle
# heard in the same JVM, and, where perf can sample, `profile`, what jdperf recorded, and `codecache`, what
# -XX:+PrintCodeCache said. ctest names one that was made for all tests of this JDK.
javac_recording() {
    recording=${JDAGENT_RECORDING:-$scratch/recording}
    [ ! -e "$recording/oracle" ] || return 0
    javac_workload
    mkdir -p "$recording"
    # The oracle is first to hear of the JVM's death, and so of one method that the agent did not at most: what
    # JAVA_TOOL_OPTIONS has already stands before what jdperf adds.
    if ! (need_perf) >/dev/null; then
        jvm_flags "-agentpath:$oracle=$recording/oracle" "-agentpath:$agent=dir=$recording"
        "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" || fail "javac failed"
        return
    fi
    jvm_flags -XX:+PrintCodeCache
    JAVA_TOOL_OPTIONS=-agentpath:$oracle=$recording/oracle \
        "$jdperf" record -o "$recording/profile" --keep-raw -e cpu-clock -F 2499 -- \
        "$jdk/bin/javac" "${javac_flags[@]}" "${javac_args[@]}" >"$recording/codecache" 2>"$scratch/said" || [ $? = 3 ] ||
        fail "jdperf record: $(tail -n 5 "$scratch/said")"
}

# jvm_flags FLAG...: the flags as javac wants them, in javac_flags.
jvm_flags() {
    # shellcheck disable=SC2034 # for the tests
    javac_flags=("${@/#/-J}")
}

# The one dump below a directory.
the_dump() {
    local found
    mapfile -t found < <(find "$1" -name 'jit-*.dump')
    [ "${#found[@]}" -eq 1 ] || fail "${#found[@]} dumps in $1 instead of one"
    echo "${found[0]}"
}

# count_allocations: from here on JVMs started through "${counted[@]}" tell what the agent holds.
count_allocations() {
    # shellcheck disable=SC2034 # for the tests
    {
        counter=$scratch/allocations
        counted=(env "LD_PRELOAD=$build/tests/liballoc_counter.so" "JD_ALLOC_COUNTER=$counter")
    }
    [ -e "$build/tests/liballoc_counter.so" ] || fail "not built: liballoc_counter.so"
    [ -z "${JDAGENT_SANITIZE:-}" ] || skip "the counter and a sanitizer both replace malloc"
}

# held: bytes that the agent has allocated and not freed, and how often it allocated.
held() {
    od -A n -t d8 "$counter" | awk '{ print $1, $2 }'
}

# verify DUMP: jdtool must have nothing to say against it.
verify() {
    local said
    said=$("$jdtool" verify "$1" 2>&1) || fail "jdtool verify $1: $(head -n 3 <<<"$said")"
    [ -z "$said" ] || fail "jdtool verify is not silent: $(head -n 3 <<<"$said")"
}

# code_ranges FILE: from what -XX:+PrintCodeCache (or jcmd Compiler.codecache) printed into FILE, the
# reserved range of each code heap, "START END" in hex. Generated code is nowhere else.
code_ranges() {
    sed -n 's/.*bounds \[0x\([0-9a-f]*\), 0x[0-9a-f]*, 0x\([0-9a-f]*\)\].*/\1 \2/p' "$1"
}

# inlined_as_reported DIR: the inlined frames that jdtool inject puts into the call chains of DIR/perf.data, against what
# HotSpot reported to DIR/oracle in the same JVM.
inlined_as_reported() {
    "$jdtool" inject -i "$1/perf.data" -o "$1/perf.jit.data" --inline expand -q || fail "jdtool inject"
    python3 "$tests_dir/readers/inlined.py" "$1/perf.data" "$1/perf.jit.data" "$1/oracle" ||
        fail "inlined frames are not the JVM's"
}

# leaf_names PERF_DATA RANGES: of the samples whose leaf ip is in the ranges: how many, how many with
# a name: "TOTAL NAMED". The ranges come from the JVM, so nothing that perf believes decides what
# counts as generated code.
leaf_names() {
    perf script -i "$1" -F ip,sym -G 2>/dev/null | awk -v ranges="$(code_ranges "$2" | tr '\n' ' ')" '
        # Hex addresses as strings of equal length compare like numbers.
        function wide(hex) { return substr("0000000000000000", 1, 16 - length(hex)) hex }
        BEGIN {
            n = split(ranges, r, " ")
            if (n == 0) { print "0 0"; exit }
            for (i = 1; i <= n; i++) r[i] = "x" wide(r[i])
        }
        {
            ip = "x" wide($1)
            for (i = 1; i < n; i += 2) {
                if (ip >= r[i] && ip < r[i + 1]) {
                    total++
                    if ($2 != "" && $2 != "[unknown]") named++
                }
            }
        }
        END { if (n > 0) print total + 0, named + 0 }'
}

# at_least PART TOTAL PERCENT
at_least() {
    awk -v part="$1" -v total="$2" -v percent="$3" \
        'BEGIN { exit !(total > 0 && 100 * part >= percent * total) }'
}

# share PART TOTAL: a percentage to print.
share() {
    awk -v part="$1" -v total="$2" 'BEGIN { printf "%.3f %%", (total > 0 ? 100 * part / total : 0) }'
}

# overlaps MAP: fails when lines are malformed or two entries of a perf map overlap.
overlaps() {
    local bad
    bad=$(grep -vcE '^[0-9a-f]+ [0-9a-f]+ [^ ].*$' "$1" || true)
    [ "$bad" -eq 0 ] || fail "$bad malformed lines in $1: $(grep -vE '^[0-9a-f]+ [0-9a-f]+ [^ ].*$' "$1" | head -n 2)"
    bad=$(while read -r start size name; do
        printf '%d %d %s\n' "0x$start" "0x$size" "$name"
    done <"$1" | sort -n | awk '
        $1 < end { print "overlap: " last " and " $0; bad = 1 }
        { if ($1 + $2 > end) { end = $1 + $2; last = $0 } }' | head -n 3)
    [ -z "$bad" ] || fail "$bad"
    note "$(wc -l <"$1") entries in the perf map, none overlapping"
}

# verify_torn DUMP: what a killed JVM leaves: sound but for at most one torn record at the end.
verify_torn() {
    local said
    said=$("$jdtool" verify "$1" 2>&1) || true
    [ "$(grep -c . <<<"$said")" -le 1 ] || fail "more than a torn tail in $1: $(head -n 5 <<<"$said")"
    [[ -z $said || $said == *torn* ]] || fail "jdtool verify $1: $said"
}

# wait_for FILE PATTERN [SECONDS]: until a line of FILE matches.
wait_for() {
    wait_until "${3:-300}" "'$2' in $1" grep -q -e "$2" "$1"
}

# code_cache PID: of a JVM that runs, what code_ranges takes. JDK 8 has no command for it; there the
# code cache is what can be written to and executed.
code_cache() {
    if [ "$jdk_major" -ge 9 ]; then
        "$jdk/bin/jcmd" "$1" Compiler.codecache
    else
        sed -n 's/^\([0-9a-f]*\)-\([0-9a-f]*\) rwxp .* 0 *$/bounds [0x\1, 0x\2, 0x\2]/p' "/proc/$1/maps"
    fi
}

# attach PID COMMAND-OR-OPTIONS: through jattach, else jcmd (from JDK 9 on). Prints what the JVM
# answers.
attach() {
    if command -v jattach >/dev/null; then
        jattach "$1" load "$agent" true "$2"
    else
        "$jdk/bin/jcmd" "$1" JVMTI.agent_load "$agent" "\"$2\""
    fi
}

# start_warm FLAG...: a JVM busy compiling the same sources again and again, in the background; sets
# pid. Its rounds are in $scratch/rounds.
start_warm() {
    javac_workload
    compile
    local part=com/sun/org/apache/xerces/internal/util
    mkdir -p "$scratch/warm/$part" "$scratch/warm-out"
    cp "$workload/java.xml/$part/XML"*.java "$scratch/warm/$part" # a dozen: rounds are what counts
    "$jdk/bin/java" "$@" -cp "$classes" Warm "$scratch/warm" "$scratch/warm-out" \
        >"$scratch/rounds" 2>"$scratch/warm.err" &
    pid=$!
    children+=("$pid")
}

# round_time: the median time, in ms, of the last 9 rounds of start_warm's JVM.
round_time() {
    tail -n 9 "$scratch/rounds" | awk '{ print $3 }' | sort -n | sed -n 5p
}
