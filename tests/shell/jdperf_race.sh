#!/usr/bin/env bash
# A hostile user whose JVM root profiles: while root's system calls are delayed, everything in the
# staging directory is swapped for links to files of root's. None of them changes owner, mode or content.
# Some seconds by default, a minute with JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
((EUID == 0)) || skip "only root can be steered"
for tool in strace jattach perl; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
compile_sample
chmod 755 "$WORK"
seconds=8
[[ ${JDAGENT_LONG:-0} != 1 ]] || seconds=60

mkdir precious
for name in file lease libjdagent.so jit.dump; do
    echo "precious $name" >"precious/$name"
    chmod 0640 "precious/$name"
done
state() {
    find "$WORK/precious" -printf '%p %u %g %m %i %s ' -type f -exec cksum {} \; | sort
}
before=$(state)

# As the user: whatever appears in his /tmp is renamed, removed and replaced, again and again.
cat >hostile.pl <<'END'
use POSIX qw(mkfifo);
my ($jvm, $precious) = @ARGV;
my @names = ('lease', 'libjdagent.so', "jit-$jvm.dump", "jit-$jvm.methods");
my @targets = map { "$precious/$_" } qw(file lease libjdagent.so jit.dump);
my $turn = 0;
for (;;) {
    for my $directory (glob "/tmp/jdperf-$jvm.*") {
        $turn++;
        if ($turn % 3 == 0) {
            rename $directory, "$directory.away";
            symlink $precious, $directory;
        }
        my @found = map { s|.*/||r } glob "$directory/status.*";
        for my $path (map { "$directory/$_" } @names, @found) {
            rename $path, "$path.away" if $turn % 2;
            # A FIFO in the agent's place would only stop his own JVM's listener: two minutes for each verb.
            $turn % 5 == 0 && $path !~ /libjdagent/ ? mkfifo($path, 0600) : symlink $targets[$turn % 4], $path;
        }
    }
}
END
setpriv --reuid=65534 --regid=65534 --clear-groups -- "$(readlink -f "$(command -v java)")" -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
jvm=$!
hostile=''
trap 'kill -9 $jvm $hostile 2>/dev/null || :; rm -rf "$WORK" /tmp/jdperf-"$jvm".*' EXIT
wait_until 60 JVM listens "$jvm"
setpriv --reuid=65534 --regid=65534 --clear-groups -- perl hostile.pl "$jvm" "$WORK/precious" >hostile.out 2>&1 </dev/null &
hostile=$!

# An agent of our own place, which the user cannot read: it has to be copied for him.
mkdir -m 0700 private
cp "$JDAGENT_BUILD/libjdagent.so" private/
ln -s "$JDAGENT_BUILD/jdtool" private/jdtool
rounds=0
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    for verb in "attach $jvm" "status $jvm" "record -o profile -d 1 -p $jvm" "map $jvm" "stop $jvm" "clean"; do
        # jdtool gives a JVM two minutes to load the agent.
        # shellcheck disable=SC2086 # words are meant
        JDAGENT_BUILD=$WORK/private timeout 150 strace -f -qq -o /dev/null \
            -e trace=mkdirat,openat,openat2,fchown,linkat,unlinkat,renameat,renameat2,write \
            -e inject=mkdirat,openat2,fchown,unlinkat:delay_exit=3000 \
            "$JDPERF" $verb >output 2>&1 </dev/null || (($? != 124)) || fail "jdperf $verb hangs"
        kill -0 "$hostile" || fail "the hostile user has given up: $(cat hostile.out)"
        [[ $(state) == "$before" ]] || fail "jdperf $verb changed a file of root's: $(diff <(echo "$before") <(state))"
    done
    rounds=$((rounds + 1))
done
note "$rounds rounds of six verbs"
! find /tmp -maxdepth 1 -name "jdperf-$jvm.*" -user 0 -type d | grep . || fail "a directory of root's is left in /tmp"
# What reads his files with all rights says so.
kill -9 "$hostile"
JDAGENT_BUILD=$WORK/private "$JDPERF" record --stacks kernel -o kernel -d 1 -p "$jvm" >output 2>&1 </dev/null || :
says "files of process $jvm, another user's, with all rights of root"
