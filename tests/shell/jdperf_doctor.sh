#!/usr/bin/env bash
# Each check of jdperf doctor, passing and failing. What the machine would have to be like is faked.
# shellcheck source=tests/shell/lib.sh
. "$(dirname "$0")/lib.sh"
fakes
fake_perf
export HOME=$WORK/home
mkdir "$HOME"
mkdir -p proc/sys/kernel proc/self

# state STATE CHECK [TEXT]: the line of that check.
state() {
    grep -E "^$1 +$2  " output >line || fail "$2 is not $1"
    [[ -z ${3:-} ]] || grep -qF -- "$3" line || fail "$2 lacks: $3"
    [[ $1 == ok ]] || grep -q ' -> ..' line || fail "$2 names no remedy"
}

# doctor STATUS [PID]
around=()
doctor() {
    local status=$1
    shift
    JDPERF_PROC=${FAKE_PROC:-/proc} run "$status" "${around[@]}" "$JDPERF" doctor "$@"
}

told() {
    echo "$2" >"proc/sys/kernel/$1"
}

# Everything in order.
told perf_event_paranoid 1
told perf_event_max_stack 1024
told kptr_restrict 0
echo 'Seccomp: 0' >proc/self/status
export FAKE_PROC=$WORK/proc
mkdir -p jdk/bin jdk/lib
cp /bin/true jdk/bin/java
echo 'JAVA_VERSION="17.0.1"' >jdk/release
touch jdk/lib/src.zip
for tool in jattach objdump addr2line; do
    fake $tool </dev/null
done
cp -r jdk jdk-without-sources
rm jdk-without-sources/lib/src.zip
export JAVA_HOME=$WORK/jdk
doctor 0
for check in perf sampling clock 'stack depth' 'kernel symbols' agent jdtool java 'attach tool' \
    disassembler 'build id cache'; do
    state ok "$check"
done
# As the machine is.
grep -qE '^ok +counters ' output || state poor counters 'cpu-clock'
grep -qE '^ok +stacks +walked' output || state poor stacks 'copied'

# And each thing out of order.
told perf_event_max_stack 127
told kptr_restrict 2
doctor 0
state poor 'stack depth' 'sysctl kernel.perf_event_max_stack=1024'
state poor 'kernel symbols' 'sysctl kernel.kptr_restrict=0'

# perf may have a right of its own, as that of the fakes, which asks nobody.
around=("$JDAGENT_BUILD/tests/refuse" bpf)
doctor 0
state poor stacks 'copied, not walked in the kernel'
if ((EUID == 0)); then
    state ok sampling
    around=("$JDAGENT_BUILD/tests/refuse" processors)
    doctor 0
    state poor sampling 'thread by thread'
    state poor stacks 'sampling processors needs'
fi
around=("$JDAGENT_BUILD/tests/refuse" events)
doctor 0
state poor sampling 'perf alone'
FAKE_FAILURE='Permission denied' doctor 1
state BAD sampling 'Permission denied'
PERF=no-such-perf doctor 1
state BAD sampling
echo 'Seccomp: 2' >proc/self/status
FAKE_FAILURE='Permission denied' doctor 1
state BAD sampling 'seccomp'
echo 'Seccomp: 0' >proc/self/status
around=()
if part "sampling by an ordinary user" other_user_runs; then
    told perf_event_paranoid 3
    chmod 755 "$WORK" "$WORK"/{bin,proc,proc/sys,proc/sys/kernel,proc/self}
    chmod 777 "$WORK"
    touch perf.arguments
    chmod 666 perf.arguments
    # The checkout may be where only root looks.
    cp -r "$SOURCE/scripts" readable
    cp "$JDAGENT_BUILD/libjdagent.so" "$JDAGENT_BUILD/jdtool" "$JDAGENT_BUILD/tests/refuse" readable/
    chmod -R go+rX readable
    JDAGENT_BUILD=$WORK/readable JDPERF_PROC=$FAKE_PROC run 0 \
        "${AS_NOBODY[@]}" readable/jdperf doctor
    state poor sampling 'not in the kernel'
    JDAGENT_BUILD=$WORK/readable FAKE_FAILURE='Permission denied' JDPERF_PROC=$FAKE_PROC run 1 \
        "${AS_NOBODY[@]}" readable/refuse events readable/jdperf doctor
    state BAD sampling 'sysctl kernel.perf_event_paranoid=1'
    # As docs/permissions.md has it: perf itself has the right.
    told perf_event_paranoid 2
    if part "a perf with capabilities of its own" setcap cap_perfmon,cap_syslog=ep bin/perf; then
        JDAGENT_BUILD=$WORK/readable JDPERF_PROC=$FAKE_PROC run 0 \
            "${AS_NOBODY[@]}" readable/jdperf doctor
        state poor sampling 'perf alone'
        JDAGENT_BUILD=$WORK/readable JDPERF_PROC=$FAKE_PROC run 0 \
            "${AS_NOBODY[@]}" readable/jdperf record -o by-other -- true
        says_not 'only root may sample the kernel'
        says_not 'each thread is sampled by itself'
        says 'threads that live for a few milliseconds have too few samples'
        setcap -r bin/perf
        JDAGENT_BUILD=$WORK/readable JDPERF_PROC=$FAKE_PROC run 0 \
            "${AS_NOBODY[@]}" readable/jdperf record -o by-other -- true
        says 'only root may sample the kernel'
    fi
    told perf_event_paranoid 1
fi

sed 's/6\.1\.192/4.18.0/' bin/perf >perf-old
mv bin/perf perf-good
cp perf-old bin/perf
chmod +x bin/perf
doctor 0
state poor perf 'install perf 5.11'
cp perf-good bin/perf
PERF=no-such-perf doctor 0
state poor perf 'apt-get install linux-perf'

JDAGENT_BUILD=$WORK/nowhere doctor 1
says 'failed to find jdtool at'
mkdir bare
cp "$JDAGENT_BUILD/jdtool" bare/
JDAGENT_BUILD=$WORK/bare doctor 1
state BAD agent
mkdir broken
ln -s "$JDAGENT_BUILD/libjdagent.so" broken/
printf '#!/bin/sh\necho error while loading shared libraries; exit 127\n' >broken/jdtool
chmod +x broken/jdtool
JDAGENT_BUILD=$WORK/broken doctor 1
says 'error while loading'
says 'libelf1'

JAVA_HOME=$WORK/jdk-without-sources doctor 0
state poor java 'openjdk-17-source'

# Commands that are not there: a PATH of all others.
commands_but java jattach jcmd objdump addr2line
cp bin/perf few-perf
rm -f few/perf
mv few-perf few/perf
(
    unset JAVA_HOME
    # shellcheck disable=SC2123,SC2030 # It is meant.
    PATH=$WORK/few
    doctor 0
    state poor java 'openjdk-17-jdk-headless'
    state poor 'attach tool' 'jattach'
    state poor disassembler 'binutils'
    printf '#!/bin/sh\n' >few/jcmd
    chmod +x few/jcmd
    doctor 0
    state poor 'attach tool' 'jcmd, which'
)

# on_disk SIZE STATUS: with a working directory on a disk of that size.
on_disk() {
    mkdir -p disk
    # shellcheck disable=SC2016
    run "$2" unshare --mount sh -c 'mount -t tmpfs -o "size=$1" tmpfs disk && cd disk && exec "$2" doctor' sh "$1" "$JDPERF"
}
if part "disks of other sizes" own_mounts; then
    on_disk 50M 1
    state BAD space 'free some space'
    on_disk 1G 0
    state poor space 'max=500M'
    on_disk 4G 0
    state ok space
fi

mkdir -p "$HOME/.debug/jit/java-jit-20200101.abcdefgh"
doctor 0
state poor leftovers 'jdperf clean --all'

# With a /tmp of one's own there is nothing left behind. The checkout itself may lie below the old one, and so may
# what the links of a build lead to (scripts/mutants.sh).
if part "leftovers in an own /tmp" own_mounts; then
    mkdir built
    cp -L "$JDAGENT_BUILD/jdtool" "$JDAGENT_BUILD/libjdagent.so" built/
    # shellcheck disable=SC2016
    unshare --mount sh -c 'mount --bind "$1" /mnt && mount --bind "$2" /media && mount -t tmpfs tmpfs /tmp && cd / &&
        JDAGENT_BUILD=/media HOME=/nonexistent exec /mnt/jdperf doctor' sh "${JDPERF%/*}" "$PWD/built" >output 2>&1 || :
    state ok leftovers
fi

# Processes.
rm -f bin/jattach bin/objdump bin/addr2line
unset JAVA_HOME FAKE_PROC
doctor 1 $$
state BAD process 'is not a HotSpot JVM'
doctor 1 99999999
state BAD process 'there is no process'

command -v javac >/dev/null || skip "there is no javac; what needs no JVM passed"
command -v jattach >/dev/null || skip "there is no jattach; what needs no JVM passed"
# shellcheck disable=SC2031
PATH=${PATH#"$WORK/bin:"}
compile_sample
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$WORK"' EXIT
start_jvm() {
    "$@" >/dev/null 2>&1 </dev/null &
    jvm=$!
    wait_until 60 "JVM" grep -q libjvm "/proc/$jvm/maps"
    wait_until 60 "JVM that listens" listens "$jvm"
    [[ $(<"/proc/$jvm/comm") != java ]] || wait_until 60 "JVM that is up" is_up "$jvm"
}

start_jvm java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints \
    -XX:+EnableDynamicAgentLoading "${IDLE_JVM[@]}" -cp classes Calm 600
doctor 0 "$jvm"
for check in process jdk attach 'dynamic loading' 'frame pointers' 'exact lines' libjvm libc session checkpoint \
    'space for it'; do
    state ok "$check"
done
state ok session state=absent
# What the real perf says of this machine is told; from here on processes are looked at.
PATH=$WORK/bin:$PATH

# The same JVM with a libc of another kind.
cp -r proc musl
mkdir "musl/$jvm"
echo '7f0-7f1 r-xp 0 0 0 /lib/ld-musl-x86_64.so.1' >"musl/$jvm/maps"
FAKE_PROC=$WORK/musl doctor 1 "$jvm"
state BAD libc 'musl-gcc'
mkdir foreign
cp -r "$JDAGENT_BUILD/jdtool" foreign/
cp "$JDAGENT_BUILD/libjdagent.so" foreign/
printf '\267' | dd of=foreign/libjdagent.so bs=1 seek=18 conv=notrunc 2>/dev/null
JDAGENT_BUILD=$WORK/foreign doctor 1 "$jvm"
state BAD libc "is built for another machine"

# Another user looks at it.
if part "a doctor who is another user" other_user_runs; then
    JDAGENT_BUILD=$WORK/readable run 1 "${AS_NOBODY[@]}" readable/jdperf doctor "$jvm"
    state BAD process 'and the kernel denies'
    # His own, of a java with file capabilities: like a program that he may not read, it is not dumpable.
    cp "$(command -v sleep)" java
    chmod 711 java
    "${AS_NOBODY[@]}" sh -c 'exec ./java 600' &
    hidden=$!
    is_hidden() { [[ $(<"/proc/$hidden/comm") == java ]]; }
    wait_until 10 "process that is not dumpable" is_hidden
    JDAGENT_BUILD=$WORK/readable run 1 "${AS_NOBODY[@]}" readable/jdperf doctor "$hidden"
    state BAD process 'because it has more capabilities (getcap shows those of a java), or began as another user'
    JDAGENT_BUILD=$WORK/readable run 0 "${AS_NOBODY[@]}" readable/jdperf jvms
    says 'more capabilities than you (getcap'
    kill "$hidden"
    # And a root without capabilities.
    run 1 setpriv --bounding-set=-all --inh-caps=-all "$JDPERF" doctor "$jvm"
    state BAD process 'because root has no CAP_SYS_PTRACE here'
    # And of a command: the kernel takes no samples of it.
    JDAGENT_BUILD=$WORK/readable run 0 "${AS_NOBODY[@]}" sh -c 'readable/jdperf record -o hidden -- sh -c "./java 1; true"'
    says '(java) is not sampled: the kernel denies this user access to it'
    rm -r hidden
fi
mkdir dumps
run 0 "$JDPERF" attach "$jvm" -o dumps
doctor 0 "$jvm"
state ok session 'state=running'
run 0 "$JDPERF" stop "$jvm"
kill "$jvm"

# A session that failed: its dump may have four kilobytes, which the JVM's first code fills.
start_jvm java "-agentpath:$JDAGENT_BUILD/libjdagent.so=dir=$WORK/dumps,max=4K" -XX:+EnableDynamicAgentLoading "${IDLE_JVM[@]}" -cp classes Calm 600
has_failed() { [[ $("$JDPERF" status "$jvm" 2>&1 || :) == *state=failed* ]]; }
wait_until 60 "failed session" has_failed
doctor 0 "$jvm"
state poor session 'state=failed'
state poor session "jdperf stop $jvm"
kill "$jvm"

start_jvm java -XX:-EnableDynamicAgentLoading "${IDLE_JVM[@]}" -cp classes Calm 600
doctor 1 "$jvm"
state BAD 'dynamic loading'
state ok 'frame pointers' 'the default does not'
state poor 'exact lines' 'DebugNonSafepoints'
kill "$jvm"

start_jvm java -XX:+DisableAttachMechanism "${IDLE_JVM[@]}" -cp classes Calm 600
doctor 1 "$jvm"
state BAD attach 'DisableAttachMechanism'
"$JDPERF" jvms | grep -qE "^ *$jvm .* no: refuses attach " || fail "jvms does not say that $jvm refuses to be attached to"
refuser=$jvm

# One whose class stands in a file of options has its name as well. A JVM that ends while jvms looks how busy it is, is
# listed no more.
printf '%s\n' -cp classes Calm >options
start_jvm java @options 600
doctor 1 'Calm 600'
state BAD process "JVMs' names -> give a pid"
kill "$refuser"
"$JDPERF" jvms >output 2>&1 &
lister=$!
where='' deadline=$((SECONDS + 10))
until [[ $where == *poll* || $where == gone ]]; do # its wait is short
    ((SECONDS < deadline)) || fail "jvms neither waits nor ends"
    where=$(cat "/proc/$lister/wchan" 2>/dev/null) || where=gone
    ! grep -q '^State:.Z' "/proc/$lister/status" 2>/dev/null || where=gone
done
kill -STOP "$lister" 2>/dev/null || :
kill -9 "$jvm"
is_gone() { ! grep -q . "/proc/$jvm/maps"; } 2>/dev/null
wait_until 10 "end of $jvm" is_gone
kill -CONT "$lister" 2>/dev/null || :
wait "$lister" || fail "jvms fails"
! grep -qE "^ *$jvm " output || fail "jvms lists $jvm, which has ended: $(grep -E "^ *$jvm " output)"

for java in /usr/lib/jvm/*/bin/java; do
    grep -q '^JAVA_VERSION="2[1-9]' "${java%/bin/java}/release" || continue
    start_jvm "$java" "${IDLE_JVM[@]}" -cp classes Calm 600
    doctor 0 "$jvm"
    state poor 'dynamic loading' 'prints a warning'
    kill "$jvm"
    break
done

# A package's upgrade removes the JDK, its JVM runs on.
home=$(readlink -f "$(command -v java)")
home=${home%/bin/java}
mkdir removed
for part in bin lib conf release; do
    [[ ! -e $home/$part ]] || cp -a "$home/$part" removed/
done
start_jvm removed/bin/java "${IDLE_JVM[@]}" -cp classes Calm 600
rm -rf removed
version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release")
"$JDPERF" jvms | grep -E "^ *$jvm " >output || fail "jvms does not list $jvm, whose JDK was removed"
[[ $(awk '{ print $3 }' output) == "$version" ]] || fail "jvms does not know the version of a JDK that was removed"
doctor 0 "$jvm"
state ok jdk "$version"
# Only root may read a file that has no name any more.
if ((EUID == 0)); then state ok libjvm; else state poor libjvm 'run as root'; fi
kill "$jvm"

if part "a JVM of another user" other_user_runs; then
    start_jvm "${AS_NOBODY[@]}" java "${IDLE_JVM[@]}" -cp classes Calm 600
    doctor 0 "$jvm"
    state ok 'space for it' '/tmp'
    kill "$jvm"
fi

# What has a libjvm.so, and is none that helps.
if part "a libjvm.so in no JVM" command -v cc; then
    cat >keeper.c <<'END'
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
static void quit(int number) { (void)number; }
int main(int argc, char **argv)
{
    signal(SIGQUIT, quit);
    for (void *library = argc >= 2 ? dlopen(argv[1], RTLD_LAZY) : 0; library;) sleep(600);
    return 1;
}
END
    cc -o keeper keeper.c -ldl
    mkdir nothing stripped
    echo 'int x;' | cc -shared -fPIC -o nothing/libjvm.so -x c -
    echo 'void *gHotSpotVMStructs;' | cc -shared -fPIC -s -o stripped/libjvm.so -x c -
    start_jvm ./keeper nothing/libjvm.so
    doctor 1 "$jvm"
    state BAD attach
    state poor libjvm 'does not describe'
    kill -9 "$jvm"
    start_jvm ./keeper stripped/libjvm.so
    doctor 1 "$jvm"
    state poor libjvm 'debug symbols'
    state ok checkpoint
    kill -9 "$jvm"
    # OpenJ9's libjvm.so leads to its own library. And no JVM here knows CRaC's options.
    mkdir j9
    echo 'int y;' | cc -shared -fPIC -o j9/libj9vm29.so -x c -
    # shellcheck disable=SC2016
    echo 'int z;' | cc -shared -fPIC -o j9/libjvm.so -x c - -x none -Wl,--no-as-needed j9/libj9vm29.so '-Wl,-rpath,$ORIGIN'
    start_jvm ./keeper j9/libjvm.so -XX:CRaCCheckpointTo=images
    doctor 1 "$jvm"
    state poor jdk 'OpenJ9'
    state poor checkpoint "jdperf stop $jvm"
    kill -9 "$jvm"
    JAVA_TOOL_OPTIONS='-Xint -XX:CRaCRestoreFrom=images' start_jvm ./keeper j9/libjvm.so
    doctor 1 "$jvm"
    state poor checkpoint 'not survive a restore'
    kill -9 "$jvm"
fi
