#!/usr/bin/env bash
# Every compiled method has HotSpot's own name for it, as jcmd Compiler.codelist lists it. And by HotSpot's log of all
# compilations while classes, ids and code come and go.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

# Separators are alike here. To JDK 14 HotSpot's own anonymous classes have their address for a number where it names
# them, and an identity hash where JVMTI does (instanceKlass.cpp: external_name, signature_name): neither is kept.
plain() {
    if [ "$jdk_major" -ge 15 ]; then
        tr '/+' '..'
    else
        tr '/+' '..' | sed -E 's/\.(0x[0-9a-f]+|[0-9]+)\././'
    fi
}

# compare NAME PERCENT: the names in NAME.names with those expected.
compare() {
    local same wrong total
    total=$(wc -l <"$scratch/expected")
    join "$scratch/expected" "$scratch/$1.names" >"$scratch/joined"
    same=$(awk '$2 == $3' "$scratch/joined" | wc -l)
    wrong=$(awk '$2 != $3' "$scratch/joined" | wc -l)
    note "$1: $same of $total names are HotSpot's, $wrong are others"
    claim "names by HotSpot's own, wrong, $1" "$wrong of $((same + wrong))"
    [ "$wrong" -eq 0 ] || fail "$1: $(awk '$2 != $3 { print $3 " is " $2 }' "$scratch/joined" | head -n 3)"
    at_least "$same" "$total" "$2" || fail "$1: too few names"
}

# by_list: JDK 8's jcmd has no list of code.
by_list() {
    dynamic=()
    [ "$jdk_major" -lt 21 ] || dynamic=(-XX:+EnableDynamicAgentLoading)
    mkfifo "$scratch/in"
    sleep 600 >"$scratch/in" &
    children=("$!")
    "$jdk/bin/java" "-agentpath:$agent=dir=$scratch/start,names=jvm" "${dynamic[@]}" -XX:+UseSerialGC \
        -cp "$classes" Handles <"$scratch/in" >"$scratch/out" 2>"$scratch/err" &
    pid=$!
    children+=("$pid")
    wait_for "$scratch/out" ready
    "$jdk/bin/jcmd" "$pid" Compiler.codelist >"$scratch/list"
    wait_still "$(the_dump "$scratch/start")" # events are late
    attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"
    attach "$pid" "start,dir=$scratch/attached,names=jvm" >"$scratch/said" 2>&1 ||
        fail "start: $(cat "$scratch/said")"
    attach "$pid" stop >"$scratch/said" 2>&1 || fail "stop: $(cat "$scratch/said")"

    # "ID TIER STATE CLASS.METHODDESCRIPTOR [START, CODE - END]": CODE and the name, its separators alike.
    sed -n 's|^ *[0-9]* *-\{0,1\}[0-9]* *[0-9]* *\([^ ]*\) *\[0x[0-9a-f]*, 0x\([0-9a-f]*\) - .*|\2 \1|p' "$scratch/list" |
        plain | sed 's/^0*//' | sort >"$scratch/expected"
    [ "$(wc -l <"$scratch/expected")" -gt 100 ] || fail "no list of code: $(head -n 3 "$scratch/list")"
    [ "$(grep -c 'MethodHandle\.link\|MethodHandle\.invokeBasic' "$scratch/expected")" -gt 3 ] ||
        fail "no method handle intrinsics"

    for name in start attached; do
        dump=$(the_dump "$scratch/$name")
        verify "$dump"
        "$jdtool" map "$dump" |
            sed -n 's|^0*\([0-9a-f]*\) [0-9a-f]* L\([^;]*\);\(.*\)|\1 \2.\3|p' |
            plain | sort >"$scratch/$name.names"
        compare "$name" 95
    done

    # Some blobs HotSpot makes in silence, and only a replay tells of them: the session that was there from
    # the start knows them, too. (A stub may be made between the two sessions.)
    ranges() {
        "$jdtool" map "$(the_dump "$scratch/$1")" | grep -v '^[0-9a-f]* [0-9a-f]* L[^;]*;' |
            while read -r start size name; do
                printf '%d %d %s %s\n' "0x$start" "0x$size" "$1" "$name"
            done
    }
    { ranges start; ranges attached; } | sort -k 1,1n -k 3,3r >"$scratch/blobs"
    silent=$(awk '
        $3 == "start" { if ($1 + $2 > end) { end = $1 + $2 } }
        $3 == "attached" && $1 >= end { print }' "$scratch/blobs")
    note "blobs of the replay: $(grep -c ' attached ' "$scratch/blobs"), unknown before: $(grep -c . <<<"$silent" || true)"
    [ "$(grep -c . <<<"$silent" || true)" -le 3 ] || fail "made in silence: $(head -n 5 <<<"$silent")"
    [ "$(grep -c ' attached ' "$scratch/blobs")" -gt 100 ] || fail "the replay has no blobs"
}
if [ "$jdk_major" -ge 9 ]; then
    by_list
fi

"$jdk/bin/java" "-agentpath:$agent=dir=$scratch/churn,names=jvm" -XX:+UnlockDiagnosticVMOptions \
    -XX:+LogCompilation "-XX:LogFile=$scratch/log" -XX:+UseSerialGC -Xmx64m \
    -XX:ReservedCodeCacheSize=8m -cp "$classes" Churn 1000 >"$scratch/out" 2>"$scratch/err" ||
    fail "the JVM failed: $(cat "$scratch/err")"
sed -n "s|^<nmethod compile_id='\([0-9]*\)'.* method='\([^ ]*\) \([^ ]*\) \([^']*\)'.*|\1 \2.\3\4|p" "$scratch/log" |
    sed 's/&lt;/</g; s/&gt;/>/g' | plain | sort >"$scratch/expected"
[ "$(wc -l <"$scratch/expected")" -gt 1000 ] || fail "little was compiled"
"$jdtool" dump "$(the_dump "$scratch/churn")" | awk '
    / facts / { id = match($0, /compile id [0-9]+/) ? substr($0, RSTART + 11, RLENGTH - 11) : "" }
    / LOAD / && id != "" { sub(/.* name L/, ""); sub(/;/, "."); print id, $0; id = "" }' |
    plain | sort >"$scratch/churn.names"
compare churn 99

# Lines and inline trees may be left out: what else is known of the code stays.
"$jdk/bin/java" "-agentpath:$agent=dir=$scratch/bare,lines=off" -cp "$classes" Churn 20 >"$scratch/out" 2>"$scratch/err" ||
    fail "the JVM failed: $(cat "$scratch/err")"
read -r loads known rows < <("$jdtool" dump "$(the_dump "$scratch/bare")" | awk '
    / row / { rows++ }
    / facts / { known = /kind .* tier .* frame size / }
    / LOAD / { if (/ name Churn/) { loads++; all += known } known = 0 }
    END { print loads + 0, all + 0, rows + 0 }')
note "lines=off: of $loads compiled methods $known have tier and frame size; $rows rows"
[[ $loads -gt 10 && $known -eq $loads && $rows -eq 0 ]] || fail "lines=off leaves out more than lines, or less"
