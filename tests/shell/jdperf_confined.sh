#!/usr/bin/env bash
# Even a taken-over parser can do nothing outside the profile, in any verb.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
need_real_profile
compile_sample
export HOME=$WORK/home
mkdir "$HOME" planted
ln -s "$JDAGENT_BUILD/tests/planted" planted/jdtool
ln -s "$JDAGENT_BUILD/libjdagent.so" planted/libjdagent.so
export JDAGENT_BUILD=$WORK/planted JDAGENT_PLANTED=$WORK/escaped

# held STATUS VERB…: it does its work, and something was tried in it.
held() {
    run "$@"
    ! grep -q 'ESCAPED' output || fail "$2: the parser escaped"
    says 'planted: tried in'
    [[ -z $(compgen -G "$JDAGENT_PLANTED*") ]] || fail "$2 made a file outside of the profile"
}

# On a busy machine a second may not be enough to meet compiled code.
for seconds in 1 8 60; do
    rm -rf p
    JDAGENT_PLANTED='' run 0 "$JDPERF" record --keep-raw -o p -- java -cp classes Calm "$seconds"
    cp output recorded
    ! JDAGENT_PLANTED='' "$JDPERF" annotate p Market >output 2>&1 || break
done
if grep -q 'with all rights of root' recorded; then
    skip "this kernel cannot confine a process"
fi
# What is tried would succeed elsewhere.
JDAGENT_PLANTED_CONTROL=1 run 0 "$JDAGENT_BUILD/jdtool" --help
says 'ESCAPED: system'
rm "$JDAGENT_PLANTED".*

held 0 "$JDAGENT_BUILD/jdtool" map p/jit-*.dump
# jdperf map of a JVM whose session writes a dump.
java -cp classes Calm 600 >jvm.out 2>&1 </dev/null &
jvm=$!
trap 'kill $jvm 2>/dev/null || :; rm -rf "$WORK"' EXIT
wait_until 60 JVM listens "$jvm"
run 0 "$JDPERF" attach "$jvm" --agent-options methods
held 0 "$JDPERF" map "$jvm"
if part "uprobes" is_root; then
    # Where the JVM's probes are, and what its files lack.
    "$JDPERF" doctor "$jvm" >output 2>&1 || :
    says 'planted: tried in a table of symbols'
    held 0 "$JDPERF" record -d 1 --alloc --timeline -o r -p "$jvm"
    says 'planted: tried in a table of symbols'
fi
if part "walks in the kernel" is_root; then
    # Who reads the dump while it grows has more to do on a busy machine.
    for seconds in 1 8 60; do
        "$JDPERF" record --stacks kernel -d "$seconds" -o "walked$seconds" -p "$jvm" >output 2>&1 || (($? == 3)) || fail "not walked"
        ! grep -q 'planted: tried in a growing dump\|not walked in the kernel' output || break
    done
    says_not 'ESCAPED'
    grep -q 'not walked in the kernel' output || says 'planted: tried in a growing dump'
fi
run 0 "$JDPERF" stop "$jvm"
kill "$jvm"

held 0 "$JDPERF" record --keep-raw -o q -- java -cp classes Calm 1
held 0 "$JDPERF" inject p
held 0 "$JDPERF" report p
held 0 "$JDPERF" annotate p Market
held 0 "$JDPERF" flame p
held 0 "$JDPERF" diff p q
held 0 "$JDPERF" diff --before p q --after q p
held 0 "$JDPERF" timeline p
held 0 "$JDPERF" view p --idle 1
for format in html pprof firefox speedscope collapsed otlp; do
    held 0 "$JDPERF" export p "$format"
done

# perf reads a profile by itself. What overflows it may do in its place is done by one that is not perf: with
# --trust all of it, else nothing but to write where it is to.
echo precious >precious
chmod 600 precious
mkdir tmp
fakes
fake perf <<'END'
[[ $1 != --version ]] || { echo 'perf version 6.1.192'; exit; }
try() {
    ! eval "$2" 2>/dev/null || echo "ESCAPED: $1" >&2
}
try 'a new file' 'echo >"$JDAGENT_PLANTED.file"'
try 'a file of ours' 'echo >>"$WORK/precious"'
try 'a name' 'ln "$WORK/precious" "$JDAGENT_PLANTED.link"'
try 'a mode' 'chmod 640 "$WORK/precious"'
try 'a time' 'touch -d yesterday "$WORK/precious"'
try 'a file to read' 'read -r _ <"$WORK/precious"'
try 'a directory to read' 'compgen -G "$WORK/prec*"'
try 'a socket' 'exec 3<>/dev/udp/127.0.0.1/9'
# Of this process: that of another one cannot be read.
while read -r name value; do
    case $name in CapEff:) capabilities=$value ;; NoNewPrivs:) no_more=$value ;; esac
done </proc/self/status
try 'all capabilities' '((0x$capabilities & 1))'
try 'a program that has more rights' '((no_more == 0))'
[[ ! -w $TMPDIR ]] || echo >"$TMPDIR/own"
echo 'fake perf: tried' >&2
END
run 0 "$JDPERF" script q --trust
for what in 'a new file' 'a file of ours' 'a name' 'a mode' 'a time' 'a file to read' 'a directory to read' 'a socket' 'a program that has more rights'; do
    says "ESCAPED: $what"
done
rm "$JDAGENT_PLANTED".*
before=$(stat -c '%s %a %h %Y' precious)
for words in "0 script q" "0 report --perf q" "1 annotate --perf q Market" "0 inject --injector perf q"; do
    # shellcheck disable=SC2086 # words are meant
    set -- $words
    TMPDIR=$WORK/tmp run "$1" "$JDPERF" "${@:2}"
    [[ $2 == annotate ]] || says 'fake perf: tried' # whose perf says it to nobody
    says_not ESCAPED
    [[ $(stat -c '%s %a %h %Y' precious) == "$before" ]] || fail "$words changed a file"
done
# Another user's is opened with --trust, and perf stays confined.
if part "perf on another user's profile" is_root; then
    cp -r q theirs
    chown -R 65534 theirs
    chmod 755 "$WORK"
    run 2 "$JDPERF" script theirs
    run 0 "$JDPERF" script theirs --trust
    says 'fake perf: tried'
    says_not ESCAPED
fi
rm bin/perf
[[ -z $(ls tmp) ]] || fail "files of perf's are left behind"

# A library where no system has them: its names are read, since it is machine code.
cp "$(command -v bash)" busy
JDAGENT_PLANTED='' run 0 "$JDPERF" record -o n -- sh -c 'java -cp classes Calm 1 & ./busy -c "for ((i = 0; i < 300000; i++)); do :; done"; wait'
run 0 "$JDPERF" report --perf n --dsos busy
grep -q '\[\.\] [a-z_]*command' output || fail "perf does not name what is in busy"

rm p/samples.saved # as of a recording by perf alone
held 0 "$JDPERF" bundle p
note "$(grep -c . <<<"$(ls p)") files in the profile, none outside"
