#!/usr/bin/env bash
# Output and exit status of jdtool dump, verify, stat, map, repair and convert.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool=$JDAGENT_BUILD/jdtool
[[ -x $tool ]] || skip "jdtool was not built"
seeds=$SOURCE/tests/fuzz/corpus/dump

# Usage.
run 2 "$tool"
run 2 "$tool" nonsense
says "unknown verb 'nonsense'"
run 0 "$tool" --help
for verb in dump verify stat map repair convert; do
    says "jdtool $verb"
done
for verb in dump verify stat map repair convert; do
    run 0 "$tool" "$verb" --help
    says "usage: jdtool $verb"
    run 2 "$tool" "$verb"
    says "usage: jdtool $verb"
    run 2 "$tool" "$verb" --nonsense
    says "unknown option: --nonsense"
done
for verb in dump verify stat map; do
    run 1 "$tool" "$verb" missing.dump
    says "failed to open missing.dump: No such file or directory"
    echo 'this is no jitdump, but it is long enough to be one' >text
    run 1 "$tool" "$verb" text
    says "not a jitdump"
    mkfifo pipe
    run 1 timeout 5 "$tool" "$verb" pipe # and does not wait for a writer
    says 'failed to open pipe: Operation not supported'
    rm pipe
done
# Packed by zstd: so are those of jdperf record. A few bytes may claim to be 100 GB.
zstd -q "$seeds/everything.bin" -o packed.dump
run 0 "$tool" verify packed.dump
run 0 "$tool" stat packed.dump
cp output packed.stat
run 0 "$tool" stat "$seeds/everything.bin"
sed 1d output | cmp - <(sed 1d packed.stat) || fail "a packed dump is another one: $(cat packed.stat)"
run 0 "$tool" convert packed.dump -o unpacked.dump
[[ $(head -c 4 unpacked.dump) == "$(head -c 4 "$seeds/everything.bin")" ]] || fail "convert leaves it packed"
printf '\x28\xb5\x2f\xfd\xc0\x00\x00\xe8\x76\x48\x17\x00\x00\x00\x01\x00\x00' >bomb.dump
for verb in dump verify stat map; do
    run 1 "$tool" "$verb" bomb.dump
    says 'failed to unpack bomb.dump: it would be 95367 MB, and 256 MB is the limit'
done
head -c 100 packed.dump >cut.dump
run 1 "$tool" verify cut.dump
says 'failed to unpack cut.dump: it is packed, and damaged or cut'

run 2 "$tool" repair "$seeds/mixed.bin"
says "-o OUT is needed"
run 2 "$tool" map --at yesterday "$seeds/everything.bin"
says "'yesterday' is no time"
run 2 "$tool" map --at
says "--at needs a value"
run 2 "$tool" dump "$seeds/everything.bin" "$seeds/mixed.bin"

# The same dump in both byte orders says the same.
for dump in everything everything-swapped; do
    run 0 "$tool" verify "$seeds/$dump.bin"
    [[ ! -s output ]] || fail "verify is not silent"
    run 0 "$tool" dump --code "$seeds/$dump.bin"
    says 'name a.A.a()'
    says 'row +0x4    b/B.java:11'
    says 'node 1     b.B.inlined() (b/B.java:5), called by node 0 at line 10'
    says 'range +0x4..+0x10 node 1 line 11 b.B.inlined()'
    says 'facts kind 1 (nmethod), tier 4'
    says 'address 0x3000 from 0x2000 size 0xc index 3'
    says 'call 0   i (f:2:0), called at 3:0, ranges +0..+0x8'
    says 'color 2 name C1'
    says 'text 10 bytes path A.j'
    says '00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f'
    run 0 "$tool" stat "$seeds/$dump.bin"
    run 0 "$tool" stat --json "$seeds/$dump.bin"
    says '"LOAD": {"count": 4'
    says '"inline_nodes": 6'
    says '"code_bytes": 36'
    says '"c2": 3'
    if part "JSON that python3 reads" command -v python3; then
        python3 -m json.tool <output >/dev/null || fail "stat --json is no JSON"
    fi
    run 0 "$tool" map --at 1000004 "$seeds/$dump.bin"
    [[ $(<output) == '1004 8 over the first' ]] || fail "the map before the other LOADs"
    run 0 "$tool" map --at 0.001000006 "$seeds/$dump.bin"
    [[ $(<output) == $'1000 10 a.A.a()\n2000 c a.A.b()' ]] || fail "the map before the MOVE"
    run 0 "$tool" map "$seeds/$dump.bin"
    [[ $(<output) == $'1000 10 a.A.a()\n3000 c a.A.b()' ]] || fail "the map at the end"
done
run 0 "$tool" dump --brief "$seeds/everything.bin"
says_not 'row +'
says_not 'node 0'

run 0 "$tool" dump --name 'A.b' "$seeds/everything.bin"
says 'name a.A.b()'
says 'node 1     a.A.a() (a/A.java:9)' # defined in a group that is not printed
says_not 'name a.A.a()'
says_not 'CLOSE'

# Broken rules, torn tails.
run 1 "$tool" verify "$seeds/everything.bin" "$seeds/mixed.bin"
says "mixed.bin: offset 0x28: a DEBUG_INFO without a LOAD behind it"
says_not everything.bin
head -c 1100 "$seeds/everything.bin" >torn.dump
run 1 "$tool" verify torn.dump
says "torn.dump: offset 0x41e: torn tail"
run 1 "$tool" dump torn.dump
says "0x0000041e torn"
run 0 "$tool" stat --json torn.dump
says '"torn_bytes": 46'
run 0 "$tool" map torn.dump
says "warning: torn.dump: torn at offset 1054"

# repair.
run 0 "$tool" repair torn.dump -o whole.dump
says "kept 3 LOADs and 0 MOVEs"
run 0 "$tool" verify whole.dump
[[ $(stat -c %a whole.dump) == 600 ]] || fail "others may read the repaired dump"
run 0 "$tool" repair "$seeds/interwoven.bin" -o whole.dump # over an older one
says "the header of another dump"
says "left out a LOAD of process 777"
run 0 "$tool" verify whole.dump
run 0 "$tool" repair "$seeds/mixed.bin" -o whole.dump
run 0 "$tool" dump whole.dump
says 'row +0      a.java:1'
says 'row +0x4    b.java:3'
run 1 "$tool" repair torn.dump -o ./torn.dump
says "it is the input"
run 1 "$tool" repair torn.dump -o /dev/null
says "not a regular file"
mkfifo pipe
run 1 "$tool" unwind torn.dump -o pipe
says "not a regular file"
[[ -p pipe ]] || fail "what was no file is gone"
rm pipe
# It prepares a dump for what perf unwinds by, as perf says.
fakes
for has in 'on :libunwind' 'OFF:libdw'; do
    fake perf <<<"echo '             libunwind: [ ${has%:*} ]  # HAVE_LIBUNWIND_SUPPORT'"
    run 0 "$tool" unwind "$seeds/everything.bin" -o unwound.dump
    says "information for ${has#*:},"
done
run 0 "$tool" unwind "$seeds/everything.bin" -o unwound.dump --unwinder libunwind
says 'information for libunwind,'
rm unwound.dump bin/perf
run 1 "$tool" repair torn.dump -o missing/whole.dump
says "failed to write missing/whole.dump: No such file or directory"
run 1 "$tool" repair text -o none.dump
[[ ! -e none.dump ]] || fail "a dump was made of nothing"
leftovers=$(find . -name '*.dump.*')
[[ -z $leftovers ]] || fail "left behind: $leftovers"

# convert: there and back, in both byte orders.
run 2 "$tool" convert "$seeds/everything.bin"
says "-o OUT is needed"
run 2 "$tool" convert --lines off "$seeds/everything.bin" -o out.dump
says "--lines is on or tree, not 'off'"
for dump in everything everything-swapped; do
    run 0 "$tool" convert --lines tree "$seeds/$dump.bin" -o trees.dump
    says "left to their inline trees"
    run 0 "$tool" verify trees.dump
    run 0 "$tool" convert trees.dump -o rows.dump
    says "written out"
    cmp "$seeds/$dump.bin" rows.dump || fail "$dump is another after two conversions"
done
run 0 "$tool" convert "$seeds/everything.bin" -o rows.dump
cmp "$seeds/everything.bin" rows.dump || fail "a dump that has its rows is not copied"
[[ $(stat -c %a rows.dump) == 600 ]] || fail "others may read the converted dump"
# Sources, one of them there and asked for by several.
mkdir -p sources/b sources/a
echo 'class A {}' >sources/a/A.java
for dump in everything everything-swapped; do
    run 0 "$tool" convert --samply --source-path sources "$seeds/$dump.bin" -o sources.dump
    says "1 sources, and bytecodes of 0 classes without"
    run 0 "$tool" verify sources.dump
    run 0 "$tool" dump sources.dump
    [[ $(grep -c 'SAMPLY_SOURCE .*text 11 bytes path a/A.java' "$WORK/output") == 1 ]] || fail "a/A.java is not embedded once"
    run 0 "$tool" convert --samply --source-path sources sources.dump -o again.dump
    cmp sources.dump again.dump || fail "$dump has another source after two conversions"
done
run 2 "$tool" convert --samply "$seeds/everything.bin" -o rows.dump
says "--samply needs --source-path"
run 1 "$tool" convert --samply --source-path text "$seeds/everything.bin" -o rows.dump
says "it is not an archive"
run 0 "$tool" convert torn.dump -o rows.dump
says "torn.dump ends inside a record: its 46 bytes were left out"
run 0 "$tool" verify rows.dump
run 1 "$tool" convert torn.dump -o ./torn.dump
says "it is the input"
run 1 "$tool" convert torn.dump -o /dev/null
says "not a regular file"
run 1 "$tool" convert text -o none.dump
head -c 60 "$seeds/everything.bin" >broken.dump
head -c 200 /dev/zero >>broken.dump
run 1 "$tool" convert broken.dump -o none.dump
says "jdtool repair fixes it"
[[ ! -e none.dump ]] || fail "a dump was made of a broken one"

# A full disk is told.
if [[ -e /dev/full ]]; then
    status=0
    "$tool" dump "$seeds/everything.bin" >/dev/full 2>output || status=$?
    ((status == 1)) || fail "the listing was lost, and the status is $status"
    says "failed to write the output: No space left on device"
fi

# What a dump says must not reach the terminal as commands.
LC_ALL=C sed 's/a\.A\.b()/\x1b[2J\n\xff!/g' "$seeds/everything.bin" >hostile.dump
run 0 "$tool" map hostile.dump
says '3000 c \x1b[2J\x0a\xff!'
