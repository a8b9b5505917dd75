#!/usr/bin/env bash
# A hostile user swaps files of the staging directory for links while root profiles his JVM. None of them changes owner,
# mode or content. Some seconds by default, a minute with JDAGENT_LONG=1.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jattach >/dev/null || skip "jattach is not installed"
# shellcheck source=tests/shell/hostile.sh
. "$(dirname "$0")/hostile.sh"
seconds=8
[[ ${JDAGENT_LONG:-0} != 1 ]] || seconds=60

mkdir precious
for name in file lease libjdagent.so jit.dump; do
    echo "precious $name" >"precious/$name"
    chmod 0640 "precious/$name"
done
"${AS_NOBODY[@]}" "$(readlink -f "$(command -v java)")" -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
jvm=$!
trap 'kill -9 $jvm $hostile 2>/dev/null || :; rm -rf "$WORK" /tmp/jdperf-"$jvm".*' EXIT
wait_until 60 JVM listens "$jvm"
# As the user: whatever appears in his /tmp is renamed, removed and replaced, again and again.
hostile "$jvm" "$WORK/precious" <<'END'
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

# An agent of our own place, which the user cannot read: it has to be copied for him.
mkdir -m 0700 private
cp "$JDAGENT_BUILD/libjdagent.so" private/
ln -s "$JDAGENT_BUILD/jdtool" private/jdtool
rounds=0
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    for verb in "attach $jvm" "status $jvm" "record -o profile -d 1 -p $jvm" "map $jvm" "stop $jvm" "clean"; do
        status=0
        # jdtool gives a JVM two minutes to load the agent.
        # shellcheck disable=SC2086 # words are meant
        JDAGENT_BUILD=$WORK/private timeout 150 strace -f -qq -o /dev/null \
            -e trace=mkdirat,openat,openat2,fchown,linkat,unlinkat,renameat,renameat2,write \
            -e inject=mkdirat,openat2,fchown,unlinkat:delay_exit=3000 \
            "$JDPERF" $verb >output 2>&1 </dev/null || status=$?
        unharmed "jdperf $verb" "$status"
    done
    rounds=$((rounds + 1))
done
note "$rounds rounds of six verbs"
! find /tmp -maxdepth 1 -name "jdperf-$jvm.*" -user 0 -type d | grep . || fail "a directory of root's is left in /tmp"
# Nothing reads his files with rights.
kill -9 "$hostile"
JDAGENT_BUILD=$WORK/private "$JDPERF" record --stacks kernel -o kernel -d 1 -p "$jvm" >output 2>&1 </dev/null || :
says_not 'with all rights of root'
