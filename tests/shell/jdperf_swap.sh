#!/usr/bin/env bash
# A hostile user owns the directory above root's profile, and puts links, FIFOs and directories of his own in its
# place all the time, while root runs every verb on it: nothing outside of the profile is read, written, made or
# changed, which a trace of all opens shows, and nothing hangs. Some seconds each, a minute with JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/shell/hostile.sh
. "$(dirname "$0")/hostile.sh"
seconds=2
[[ ${JDAGENT_LONG:-0} != 1 ]] || seconds=60

# root's own, with the same names in it as a profile has.
mkdir -m 755 theirs work
run 0 "$JDPERF" record --keep-raw --timeline -o theirs/p -- java -cp classes Calm 1
cp -r theirs/p precious
rm precious/profile # it is none: the path means what it led to when a verb began
cp -r theirs/p kept
chown 65534 theirs

trap 'kill -9 $hostile 2>/dev/null || :; rm -rf "$WORK"' EXIT
hostile "$WORK/theirs" "$WORK/precious" <<'END'
use POSIX qw(mkfifo);
my ($theirs, $precious) = @ARGV;
my ($p, $away) = ("$theirs/p", "$theirs/away");
my $turn = 0;
for (;;) {
    # Whatever stands there: he may rename it, if it is a directory of root's, too.
    if (-d $p && !-l $p) { rename $p, $away unless -e $away; rmdir $p }
    unlink $p;
    my $what = $turn++ % 8;
    if ($what < 4) { symlink $precious, $p }
    elsif ($what == 4) { mkfifo($p, 0666) }
    elsif ($what == 5) { mkdir $p; for (qw(profile perf.data samples.saved perf.jit.data)) { symlink "$precious/$_", "$p/$_" }
        unlink "$p/$_" for qw(profile perf.data samples.saved perf.jit.data) }
    unlink $p;
    rmdir $p;
    rename $away, $p if -d $away && !-e $p;
    # In its place for a while, so that the verbs find it, and then all at once.
    select undef, undef, undef, rand(0.2) if $turn % 200 == 0;
}
END

# in_race VERB…: some runs of it; what it ends with is not the matter.
declare -A done_by
in_race() {
    local end=$((SECONDS + seconds)) status runs=0
    done_by[$1]=0
    while ((SECONDS < end)); do
        status=0
        # shellcheck disable=SC2016 # strace's own
        (cd work && timeout 120 strace -f -qq -y -o "$WORK/trace" -e trace=file,read,pread64,mmap,getdents64,ftruncate,fchmod,fchown,write \
            "$JDPERF" "$@" >"$WORK/output" 2>&1 </dev/null) || status=$?
        unharmed "jdperf $*" "$status"
        # What is read, mapped, listed or written, as the kernel calls the descriptor. An agent's tables are told by their
        # first bytes (jdtool/confined/rights.c), which has to read four.
        ! grep -m 3 -E "(read|mmap|getdents64|write|ftruncate|fchmod|fchown)\([^<]*<$WORK/precious[/>]" trace || fail "jdperf $* used a file of root's"
        ! grep -E "pread64\([0-9]+<$WORK/precious/" trace | grep -v ', 4, 0) ' || fail "jdperf $* read a file of root's"
        # What is made or renamed there.
        ! grep -E "= [0-9]+<$WORK/precious/" trace | grep -E 'O_CREAT|O_WRONLY|O_RDWR|O_TRUNC' || fail "jdperf $* wrote into a file of root's"
        runs=$((runs + 1))
        ((status)) || done_by[$1]=$((done_by[$1] + 1))
    done
    note "$* $runs times, ${done_by[$1]} with a result"
}

# The profile of root's is back where it was.
restore() {
    kill -STOP "$hostile"
    rm -rf theirs/p theirs/away theirs/p.old
    cp -r kept theirs/p
    kill -CONT "$hostile"
}

P=$WORK/theirs/p
# On a busy machine a verb may never meet the profile while it is in its place: one has to.
for ((tries = 0; !${done_by[report]:-0} && tries < 60; tries++)); do
    in_race report "$P"
done
in_race flame "$P"
in_race timeline "$P"
in_race export "$P" pprof
in_race annotate "$P" Market
in_race diff "$P" "$P"
in_race view "$P" --idle 1
in_race script "$P"
in_race report --perf "$P"
in_race bundle "$P" -o "$WORK/work/b.tar"
restore
in_race inject "$P"
restore
in_race record -o "$P" -- true
((done_by[report])) || fail "no verb found the profile: nothing was tried"
