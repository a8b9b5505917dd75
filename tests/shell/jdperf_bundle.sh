#!/usr/bin/env bash
# A bundled profile opens on a machine without the profile and the JDK.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
compile_sample
mkdir here there
# Where sudo is called: in a directory of its caller's.
! is_root || chown 65534:65534 here
SUDO_UID=65534 SUDO_GID=65534 run 0 "$JDPERF" record -o here/p -- java -cp classes Market 2
# An image gets its second name, by its build-id, when perf is to look at the profile, which may have been moved.
[[ -z $(find here/p -name 'perf.jit-*' -links +1) ]] || fail "images have second names: $(ls -l here/p)"
mv here/p here/moved
SUDO_UID=65534 SUDO_GID=65534 run 0 "$JDPERF" report --perf here/moved --stdio
says 'Market.takeOrders'
mv here/moved here/p
if part "what sudo has recorded" is_root; then
    # Everything is his, also what is put there when it is packed: he could not remove it else.
    SUDO_UID=65534 SUDO_GID=65534 run 0 "$JDPERF" bundle here/p -o here/his.tar.gz
    [[ -n $(find here/p/buildid/usr -name elf) ]] || fail "no library was added: $(find here/p/buildid)"
    [[ -z $(find here/p ! -uid 65534) ]] || fail "of root still: $(find here/p ! -uid 65534 -ls)"
    chown -R 0:0 here/p
fi
echo raw >here/p/perf.data
run 2 "$JDPERF" bundle here/p -o p.zip
says 'p.zip'
truncate -s 300M here/p/perf.jit-holes.so # as images are: of a large code cache, and mostly holes
# What tar ends with: 1 when another recording linked a library meanwhile, 2 when it failed.
fakes
tar=$(command -v tar)
for status in 2 1; do
    fake tar <<<"'$tar' \"\$@\"; exit $status"
    run $((status - 1)) "$JDPERF" bundle here/p -o p.tar.gz
done
rm "$WORK/bin/tar"
says 'perf --buildid-dir p/buildid report'
tar tf p.tar.gz >names
! grep -E 'jit-[0-9]+\.dump|perf\.data$' names || fail "the dump or the raw recording is in it"

# By perf alone: the same report, stacks and all.
summary() {
    perf --buildid-dir "$1/buildid" report -i "$1/perf.jit.data" --max-stack 1000 --stdio --no-children -g none \
        -s comm,dso,sym 2>"$WORK/report.log" | grep -v '^#' | grep .
}
summary here/p >before
grep -qE 'Market\.(takeOrders|price)\(' before || fail "no Java names here"
grep -q 'libjvm.so .*[a-z]' before || fail "no native names here"
tar xf p.tar.gz -C there
run 0 "$JDPERF" report there/p
holes=there/p/perf.jit-holes.so
[[ $(stat -c %s $holes) == $((300 << 20)) ]] || fail "$(ls -ls $holes)"
(($(du -k $holes | cut -f 1) < 1000)) || fail "holes are full: $(ls -ls $holes)"
rm $holes here/p/perf.jit-holes.so
mv here elsewhere
if part "a machine without the JDK" own_mounts; then
    export -f summary
    export WORK
    jdk=$(readlink -f "$(command -v java)")
    jdk=${jdk%/bin/java}
    # shellcheck disable=SC2016
    unshare --mount bash -c 'mount -t tmpfs tmpfs "$1" && HOME=/nonexistent summary there/p' sh "$jdk" >after
else
    HOME=/nonexistent summary there/p >after
fi
diff before after || fail "the report is another one there"
run 0 "$JDPERF" report there/p --limit 0
says 'Market.takeOrders()'

# With jdperf it is a profile like any other, sources at their new place.
run 0 "$JDPERF" annotate there/p Market. --source-path "$SOURCE/scripts/sample"
says 'double trend = price * 0.0001;'
run 0 "$JDPERF" flame there/p
run 1 "$JDPERF" inject there/p
says 'discarded'
