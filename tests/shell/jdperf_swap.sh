#!/usr/bin/env bash
# A hostile user swaps root's profile for links while root runs every verb on it: nothing outside the profile is read or
# written. A second each, or with JDAGENT_LONG=1 a minute each, and more verbs.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/shell/hostile.sh
. "$(dirname "$0")/hostile.sh"
seconds=1
[[ ${JDAGENT_LONG:-0} != 1 ]] || seconds=60
long() { ((seconds > 1)); }

# root's own, with the same names in it as a profile has.
mkdir -m 755 theirs work
run 0 "$JDPERF" record --keep-raw --timeline -o theirs/p -- java -cp classes Calm 1
cp -r theirs/p precious
rm precious/profile # it is none: the path means what it led to when a verb began
cp -r theirs/p kept
# A profile whose path leads elsewhere by now is still held: its directory of sources, too.
mkdir -p outer elsewhere
cp -r theirs/p outer/given
exec 7<outer/given
mv outer taken
ln -s elsewhere outer
given=$WORK/outer/given
run 0 "$JDAGENT_BUILD/jdtool" inject --held="7:$given" -i "$given/perf.data" -o "$given/out" --source-path "$given/src"
exec 7<&-
[[ -s taken/given/out ]] || fail "nothing is written into the directory that is held"
chown 65534 theirs

trap 'kill -9 $hostile 2>/dev/null || :; rm -rf "$WORK"' EXIT
hostile "$WORK/theirs" "$WORK/precious" <<'END'
use POSIX qw(mkfifo uname);
my ($theirs, $precious) = @ARGV;
my ($p, $away, $link, $fifo, $directory) = map { "$theirs/$_" } qw(p away link fifo directory);
my @names = qw(profile perf.data samples.saved perf.jit.data);
my $renameat2 = (uname())[4] eq 'aarch64' ? 276 : 316;
my ($turn, $swaps) = (0, 0);
# With what stands at $p, in one step, and back.
sub exchange { for (1, 2) { $swaps++ if syscall($renameat2, -100, $p, -100, "$_[0]", 2) == 0 } }
sub away { rename $_[0], $away unless -e $away; rmdir $_[0] }
for (;;) {
    # Whatever stands there: he may rename it, if it is a directory of root's, too.
    away($p) if -d $p && !-l $p;
    unlink $p;
    my $what = $turn++ % 8;
    if ($what < 4) { $swaps += symlink $precious, $p }
    elsif ($what == 4) { $swaps++ if mkfifo($p, 0666) }
    elsif ($what == 5) { $swaps += mkdir $p; for (@names) { symlink "$precious/$_", "$p/$_" } unlink "$p/$_" for @names }
    unlink $p;
    rmdir $p;
    $swaps += rename $away, $p if -d $away && !-e $p;
    if ($turn % 16 == 0) {
        for (grep { -d && !-l } $link, $fifo) { away($_) } # root's
        symlink $precious, $link;
        mkfifo($fifo, 0666) unless -e $fifo;
        mkdir $directory;
        symlink "$precious/$_", "$directory/$_" for @names;
    }
    for (1 .. 4) { exchange($_) for $link, $fifo, $directory }
    next if $turn % 500;
    # In its place for a while, so that the verbs find it, and then all at once.
    sysseek STDOUT, 0, 0;
    syswrite STDOUT, "$swaps\n";
    select undef, undef, undef, rand(0.1);
}
END
begun() { [[ -s hostile.out ]]; }
wait_until 60 "first swaps" begun
java -cp classes Calm 1000000 "swapped-$$" >/dev/null 2>&1 </dev/null &
jvm=$!
trap 'kill -9 $hostile $jvm 2>/dev/null || :; rm -rf "$WORK"' EXIT

# in_race VERB…: some runs of it; what it ends with is not the matter.
in_race() {
    local end=$((SECONDS + seconds)) began=$SECONDS swapped status runs=0 results=0 opens=0
    swapped=$(<hostile.out)
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
        runs=$((runs + 1)) opens=$((opens + $(grep -cE 'open(at|at2)?\(' trace)))
        ((status)) || results=$((results + 1))
    done
    note "$* $runs times, $results with a result; $((($(<hostile.out) - swapped) / (SECONDS - began))) swaps a second, $opens opens"
}

# restore [PROFILE [COMMAND…]]: what of root's is at the place, while the command runs for sure.
restore() {
    kill -STOP "$hostile"
    rm -rf theirs/*
    [[ ! ${1:-} ]] || cp -r "$1" theirs/p
    "${@:2}"
    kill -CONT "$hostile"
}

P=$WORK/theirs/p
# On a busy machine a verb may never meet the profile while it is in its place: one does, while the hostile user rests.
restore kept run 0 "$JDPERF" report "$P"
in_race report "$P"
in_race flame "$P"
in_race timeline "$P"
in_race export "$P" pprof
in_race annotate "$P" Market
in_race diff "$P" "$P"
in_race view "$P" --idle 1
in_race script "$P"
in_race report --perf "$P"
! long || in_race annotate --perf "$P" Market
in_race bundle "$P" -o "$WORK/work/b.tar"
restore kept
in_race inject "$P"
restore kept
! long || in_race inject --injector perf "$P"
restore kept
in_race record -o "$P" -- true
restore
in_race compare -n 2 -o "$P" -- true -- true
restore
! long || in_race watch --match "swapped-$$" --name "swapped-$$" --slice 1 -d 3 -o "$P"
