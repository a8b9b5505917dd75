#!/usr/bin/env bash
# Every option of the perf map, and perf-map-agent's words for them, give the expected entries.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

# JDK 8's C1 does not inline what is excluded from compilation.
[ "$jdk_major" -ge 9 ] || only='*'

# run FLAG OPTIONS: sets map and dump of a run in which `outer` is compiled once, its calls inlined. A
# JVM that ends before its service thread has told of the code never does: then it runs once more.
run() {
    local try
    for try in 1 2 3 4 5; do
        run_once "$@"
        if "$jdtool" map "$dump" | grep 'Unfold.*outer' >/dev/null; then
            return
        fi
        note "try $try: the JVM ended without a word of outer"
    done
}

run_once() {
    local pid
    rm -rf "$scratch/dump"
    mkdir "$scratch/dump"
    "$jdk/bin/java" "$1" -XX:-BackgroundCompilation -XX:CompileCommand=quiet \
        "-XX:CompileCommand=compileonly,Unfold.${only:-outer}" -XX:CompileCommand=inline,Unfold.middle \
        -XX:CompileCommand=inline,Unfold.leaf \
        "-agentpath:$agent=mode=jitdump+map,dir=$scratch/dump${2:+,$2}" -cp "$classes" Unfold \
        >"$scratch/out" 2>&1 &
    pid=$!
    wait "$pid" || fail "the program failed with $2: $(head -n 3 "$scratch/out")"
    mv "/tmp/perf-$pid.map" "$scratch/map" || fail "no map with $2"
    map=$scratch/map
    dump=$(the_dump "$scratch/dump")
}

# The entries of the map inside the code of `outer`, which they have to tile.
entries() {
    local start size
    read -r start size _ < <("$jdtool" map "$dump" | grep 'Unfold.*outer') || fail "outer was not compiled"
    tile "0x$start" "0x$size" "$map" || fail "the entries do not tile outer"
}

# tile START SIZE MAP: prints the names in the range, and fails when bytes of it are in none or two.
tile() {
    local at=$(($1)) end=$(($1 + $2)) start size name
    while read -r start size name; do
        start=$((0x$start)) size=$((0x$size))
        ((start + size > $1 && start < end)) || continue
        ((start == at && size > 0)) || return 1
        at=$((start + size))
        printf '%s\n' "$name"
    done < <(sort -k 1,1 "$3")
    ((at == end))
}

# golden FLAG OPTIONS NAME...: the entries' names, each once, in the order of their first code.
golden() {
    local flag=$1 options=$2 names expected
    shift 2
    expected=$(printf '%s\n' "$@")
    run "$flag" "$options"
    names=$(entries) || fail "$options: $names"
    names=$(sort -u <<<"$names")
    [ "$names" = "$(sort -u <<<"$expected")" ] ||
        fail "$options gives"$'\n'"$names"$'\n'"instead of"$'\n'"$expected"
    overlaps "$map" >/dev/null
    note "${options:-no option}: ${names//$'\n'/, }"
}

# C1 keeps the code of every inlined call; C2 leaves what it likes.
c1=-XX:TieredStopAtLevel=1 c2=-XX:-TieredCompilation
outer='Unfold.outer(int)' middle='Unfold.middle(int)' leaf='Unfold.leaf(int)'

golden $c1 '' "$outer"
for words in unfold unfold=leaf; do
    golden $c1 $words "$outer" "$middle in $outer" "$leaf in $outer"
done
for words in unfoldall unfold=all unfoldall,msig,dottedclass,cleanclass; do
    golden $c1 $words "$outer" "$outer->$middle" "$outer->$middle->$leaf"
done
for words in unfoldsimple unfold=simple; do
    golden $c1 $words "$outer" "$middle" "$leaf"
done
golden $c1 unfoldall,names=short Unfold.outer 'Unfold.outer->Unfold.middle' \
    'Unfold.outer->Unfold.middle->Unfold.leaf'
golden $c1 names=jvm 'LUnfold;outer(I)V'
golden $c1 sourcepos "$outer(Unfold.java:16)"
golden $c1 unfoldsimple,sourcepos "$outer(Unfold.java:16)" "$middle(Unfold.java:10)" "$leaf(Unfold.java:6)"
golden $c2 suffixes "${outer}_[j]"
golden $c1 suffixes "${outer}_[1]"
golden $c1 unfoldall,suffixes "${outer}_[1]" "${outer}_[1]->${middle}_[i]" \
    "${outer}_[1]->${middle}_[i]->${leaf}_[i]"
golden $c1 unfold,suffixes "${outer}_[1]" "$middle in ${outer}_[i]" "$leaf in ${outer}_[i]"
golden $c2 tier "$outer [C2]"
golden $c1 tier,unfoldall "$outer [C1]" "$outer [C1]->$middle" "$outer [C1]->$middle->$leaf"

# A typo is an error that names what is allowed, and the JVM does not start.
! "$jdk/bin/java" "-agentpath:$agent=mode=map,unfoldal" -version >"$scratch/out" 2>&1 ||
    fail "a typo was accepted"
grep -q "^jdagent: .*unfoldal.*unfoldall" "$scratch/out" || fail "the typo: $(head -n 3 "$scratch/out")"
