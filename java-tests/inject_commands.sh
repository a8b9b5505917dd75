#!/usr/bin/env bash
# perf report, script, annotate, buildid-list, diff, addr2line and gdb work with the result of jdtool inject. And jdtool
# inject against perf inject --jit: the same stacks line by line, fewer files, fewer bytes, less time.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

# record NAME SECONDS
record() {
    local dir=$scratch/$1
    mkdir -p "$dir"
    perf record -q -k mono -e cpu-clock -F 999 -g -o "$dir/perf.data" -- \
        "$jdk/bin/java" -XX:+PreserveFramePointer "-agentpath:$agent=dir=$dir" -cp "$classes" \
        Streams "$2" >"$dir/log" 2>&1 || fail "$1: $(tail -n 3 "$dir/log")"
}

inject() {
    "$jdtool" inject -i "$scratch/$1/perf.data" -o "$scratch/$1/perf.jit.data" -q \
        --source-path "$tests_dir/programs" "${@:2}" || fail "$1: jdtool inject"
}

# quiet COMMAND...: its output goes to $scratch/said; it must not complain.
quiet() {
    "$@" >"$scratch/said" 2>"$scratch/err" || fail "$*: $(tail -n 3 "$scratch/err")"
    ! grep -iE 'error|warning|cannot|failed|corrupt' "$scratch/err" || fail "$*: complains"
}

says() {
    grep -qE -e "$1" "$scratch/said" || fail "'$1' is not in it: $(head -n 30 "$scratch/said")"
}

record one 2
record two 1
inject one
inject two
result=$scratch/one/perf.jit.data

quiet perf report -i "$result" --stdio --no-children -g none
says 'perf.jit-java.so'
quiet perf report -i "$result" --stdio --children -g caller --max-stack 1000
says 'Streams\..* \(inlined\)'
says 'Streams\.main\(java\.lang\.String\[\]\)|Interpreter'
quiet perf script -i "$result" --max-stack 1000
# An image of their own, or, where perf is quick with debugging information, that.
says 'perf.jit-java-frames.so|Streams\.[^ ]*\(.*\)\+0x[0-9a-f]+ \(inlined\)'
quiet perf buildid-list -i "$result"
says 'perf.jit-java.so'
quiet perf diff "$scratch/two/perf.jit.data" "$result"
awk '$1 ~ /%/ && $2 ~ /%/ && /perf\.jit-java/ { both++ } END { exit both < 3 }' "$scratch/said" ||
    fail "perf diff finds no method in both: $(head -n 20 "$scratch/said")"

# The methods with most samples, till one has code of the program's own source in it: as a rule the first ones.
mapfile -t hot < <(perf report -i "$result" --stdio --no-children -g none --sort sym --dso perf.jit-java.so \
    2>/dev/null | sed -nE 's/^ *[0-9.]+% +\[\.\] (.*[^ ]) *$/\1/p' | head -n 40)
source_line='(private|orders|counts|result)'
for method in "${hot[@]}"; do
    perf annotate -i "$result" --stdio -s "$method" >"$scratch/said" 2>>"$scratch/err" || true
    ! grep -qE "$source_line" "$scratch/said" || break
done
says "$source_line"
note "annotate shows Java source"

# Inlined methods as debuggers see them.
inject one --inline dwarf
image=$scratch/one/perf.jit-java.so
if part "addr2line" command -v addr2line; then
    start=
    for image in "$scratch/one"/perf.jit-java.so "$scratch/one"/perf.jit-java.[0-9]*.so; do
        [ -n "$start" ] || read -r start size < <(nm -S "$image" 2>/dev/null |
            awk '/ T Streams\./ { print $1, $2; exit }') || true
        [ -z "$start" ] || break
    done
    [ -n "$start" ] || fail "no method of Streams is in an image"
    for ((offset = 0; offset < 0x$size; offset += 7)); do
        printf '%x\n' $((0x$start + offset))
    done | addr2line -aife "$image" >"$scratch/said"
    says 'Streams.java:[0-9]+'
    awk '/^0x/ { if (depth > most) most = depth; depth = 0; next } { depth++ }
        END { exit most < 4 }' "$scratch/said" || fail "addr2line -i shows no inlined method"
fi
if part "llvm-dwarfdump" command -v llvm-dwarfdump; then
    llvm-dwarfdump --verify "$image" >"$scratch/said" || fail "$(grep -m 3 -A 8 error "$scratch/said")"
    says 'No errors'
fi

# Against stock perf.
inject one --inline off
perf script -i "$result" --max-stack 1000 >"$scratch/ours" 2>/dev/null
start=$(date +%s%N)
perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/one/perf.data" -o "$scratch/one/stock.data"
middle=$(date +%s%N)
inject one --inline off
end=$(date +%s%N)
# The vdso is in the user's build-id cache, but not in the one that was made for this test.
perf --buildid-dir "$scratch/buildid" script -i "$scratch/one/stock.data" --max-stack 1000 \
    2>/dev/null >"$scratch/stock"
# Of some sample in 50,000 lines perf shows no stack at all from its own file: it is in neither then.
for side in ours stock; do
    awk 'BEGIN { RS = ""; FS = "\n" } NR == FNR { if (NF == 1) bare[$1]; next } !($1 in bare)' \
        "$scratch/stock" "$scratch/$side" >"$scratch/$side.shown"
    ((2 * $(wc -l <"$scratch/$side.shown") > $(wc -l <"$scratch/$side"))) || fail "perf shows few stacks of its own file"
done
# Without offsets: our callers are in their calls, also those in generated code. What C code without frame
# pointers has left where our images of frames lie is moved out of them.
alike() {
    grep -v 'vdso' "$1" |
        sed -E 's/\((.*\/)?(jitted-[0-9]+-[0-9]+|perf\.jit-java(\.[0-9]+)?)\.so\)$/(code)/; t code
        s/^(\t *)1([0-9a-f]{15} \[unknown\])/\12\2/; b
        :code s/^\t *[0-9a-f]+ /\t/; s/\+0x[0-9a-f]+ \(code\)$/ (code)/'
}
alike "$scratch/ours.shown" >"$scratch/ours.alike"
alike "$scratch/stock.shown" >"$scratch/stock.alike"
lines=$(wc -l <"$scratch/ours.alike")
[ "$lines" -eq "$(wc -l <"$scratch/stock.alike")" ] || fail "perf inject --jit's stacks have other lengths"
# C code without frame pointers has anything where a frame pointer would be, in the JVM often the address where code
# begins or ends. Nothing returns there: perf names what begins there all the same, ours what is before it. Such
# callers are counted, not compared.
"$jdtool" dump --brief "$scratch"/one/jit-*.dump |
    sed -nE 's/.* LOAD .* address (0x[0-9a-f]+) size (0x[0-9a-f]+) .*/\1 \2/p' |
    while read -r at size; do printf '%x\n' $((at + size)); done >"$scratch/ends"
[ -s "$scratch/ends" ] || fail "no code in the dump"
grep -v 'vdso' "$scratch/stock.shown" | paste -d $'\001' - "$scratch/stock.alike" "$scratch/ours.alike" |
    awk -F $'\001' 'FILENAME != "-" { ends[$1]; next }
        $2 == $3 { next }
        { split($1, word, " ") }
        $1 ~ /\+0x0 \(.*jitted-/ || ($1 ~ /\[unknown\] \(\[unknown\]\)$/ && word[1] in ends) { none++; next }
        { print "ours " $3 ", perf: " $1 }
        END { print none + 0 >"/dev/stderr" }' "$scratch/ends" - >"$scratch/differ" 2>"$scratch/none"
differ=$(wc -l <"$scratch/differ")
read -r none <"$scratch/none"
note "$lines lines of stacks, $differ differ from perf inject --jit's, $none callers where code begins or ends"
[ "$lines" -gt 1000 ] || fail "only $lines lines"
[ "$differ" -eq 0 ] || fail "stacks differ: $(head -n 6 "$scratch/differ")"
[ $((none * 1000)) -lt "$lines" ] || fail "$none callers are where code begins or ends"
ours=$(du -cB1 "$scratch/one"/perf.jit-java*.so | tail -n 1 | cut -f 1)
stock=$(du -cB1 "$scratch/one"/jitted-*.so | tail -n 1 | cut -f 1)
note "$(find "$scratch/one" -name 'jitted-*' | wc -l) files of $stock bytes, ours $ours;" \
    "$(((middle - start) / 1000000)) ms, ours $(((end - middle) / 1000000)) ms"
[ $((ours * 2)) -lt "$stock" ] || fail "the images are too large"

# A dump whose rows went to its trees and came back is the same to stock perf: the same stacks, and the same files but
# for their build-ids, which are random (tools/perf/util/genelf.c: 20 bytes of /dev/urandom).
dump=$(the_dump "$scratch/one")
mkdir "$scratch/standard"
find "$scratch/one" -name 'jitted-*' -exec mv -t "$scratch/standard" {} +
quiet "$jdtool" convert --lines tree "$dump" -o "$scratch/trees.dump"
rm "$dump"
quiet "$jdtool" convert "$scratch/trees.dump" -o "$dump"
quiet perf --buildid-dir "$scratch/buildid" inject --jit -i "$scratch/one/perf.data" -o "$scratch/one/stock.data"
perf --buildid-dir "$scratch/buildid" script -i "$scratch/one/stock.data" --max-stack 1000 2>/dev/null >"$scratch/again"
cmp "$scratch/stock" "$scratch/again" || fail "stock perf shows other stacks with the converted dump"
made=("$scratch"/one/jitted-*.so)
[ ${#made[@]} -eq "$(find "$scratch/standard" -type f | wc -l)" ] || fail "${#made[@]} files of the converted dump"
for file in "${made[@]}"; do
    # Where bytes differ, or that one is longer.
    awk 'NR == 1 { first = $1 } { last = $1 } !/^ *[0-9]/ { other = 1 } END { exit other || last - first >= 20 }' \
        < <(cmp -l "$file" "$scratch/standard/${file##*/}" 2>&1) || fail "${file##*/} of the converted dump is another one"
done
claim "perf inject --jit of the converted dump: files alike but for the build-id" "${#made[@]} of ${#made[@]}"
