#!/usr/bin/env bash
# The tasks of docs/tasks.md as a new user does them: in a Debian with nothing but its base (debootstrap, below ROOT),
# where jdagent was built from this checkout and installed as README says. Runs each command that a user would
# type, beside those of async-profiler and samply that do the same, and prints keys and seconds: how much longer than
# the ten seconds of the recording a command takes, least and largest of the rounds. Takes root and some ten minutes.
#
# usage: bench/tasks.sh [--rounds N] ROOT     ASYNC_PROFILER=libasyncProfiler.so SAMPLY=samply
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
rounds=3
[[ ${1:-} != --rounds ]] || { rounds=$2 && shift 2; }
root=${1:?"usage: bench/tasks.sh [--rounds N] ROOT"}
: "${ASYNC_PROFILER:=$here/../build/bench/async-profiler-4.5/libasyncProfiler.so}"

if [[ ! -x $root/usr/local/bin/jdperf ]]; then
    [[ -d $root/etc ]] || unshare -m --propagation private debootstrap --variant=minbase bookworm "$root"
    mkdir -p "$root/root/jdagent"
    git -C "$here/.." archive HEAD | tar x -C "$root/root/jdagent"
fi
if [[ -e $ASYNC_PROFILER ]]; then cp "$ASYNC_PROFILER" "$root/usr/local/lib/"; fi
if [[ ${SAMPLY:-} ]]; then cp "$SAMPLY" "$root/usr/local/bin/samply"; fi

# Mounts made inside vanish with the namespace.
exec env -i TERM=xterm HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    unshare -m --propagation private bash -s "$root" "$rounds" <<'OUTSIDE'
set -eu
for kind in proc sysfs:sys tmpfs:dev/shm; do mount -t "${kind%:*}" none "$1/${kind#*:}"; done
mount -t tracefs none "$1/sys/kernel/tracing"
exec chroot "$1" bash -s "$2" <<'INSIDE'
set -eu
rounds=$1
cd /root/jdagent
if [[ ! -x /usr/local/bin/jdperf ]]; then
    scripts/quickstart.sh
    cmake --install build
fi >/root/quickstart.log 2>&1
work=$(mktemp -d)
jvm=''
# samply wants the kernel to allow it to everybody, also where root asks.
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
allow() {
    [[ ! -x /usr/local/bin/samply ]] || echo "$1" >/proc/sys/kernel/perf_event_paranoid
}
trap 'kill $jvm 2>/dev/null || :; allow "$paranoid"; rm -rf "$work"' EXIT
cd "$work"
cp -r /root/jdagent/build/sample classes
java -cp classes Market 3000 >/dev/null &
jvm=$!
sleep 3

# What async-profiler's launcher does, which its jar has not: start, wait, stop, by its library's own words.
asprof() {
    local event=cpu file='' more='' seconds=10
    while (($# > 1)); do
        case $1 in
        -e) event=$2 && shift ;;
        -d) seconds=$2 && shift ;;
        -f) file=$PWD/$2 && shift ;;
        --jfrsync) more=,jfrsync=$2 && shift ;;
        esac
        shift
    done
    jattach "$1" load /usr/local/lib/libasyncProfiler.so true "start,event=$event,file=$file$more"
    sleep "$seconds"
    jattach "$1" load /usr/local/lib/libasyncProfiler.so true "stop,file=$file"
}

# samply 0.13.1 does not end after `-d` seconds where it attaches: Ctrl-C ends it.
samply() {
    timeout --foreground --preserve-status -s INT 10 samply "$@"
}

# task WORDS SECONDS FILE COMMAND: types it, which has to make FILE.
task() {
    local what=$1 seconds=$2 file=$3 typed=$4 took least='' most='' from round
    for ((round = 0; round < rounds; round++)); do
        [[ ! $file ]] || rm -rf "$file"
        from=$EPOCHREALTIME
        eval "${typed//PID/$jvm}" >log 2>&1 </dev/null || { echo "$what: $typed: $(tail -n 3 log)" && return; }
        [[ ! $file || -s $file ]] || { echo "$what: $typed: no $file" && return; }
        took=$(awk -v a="$from" -v b="$EPOCHREALTIME" -v s="$seconds" 'BEGIN { printf "%.2f", b - a - s }')
        least=$(printf '%s\n' $least "$took" | sort -g | head -n 1) most=$(printf '%s\n' $most "$took" | sort -g | tail -n 1)
    done
    # A process id is five keys.
    typed=${typed//PID/15390}
    printf '| %s | `%s` | %d | %s to %s s |\n' "$what" "$typed" "${#typed}" "$least" "$most"
}

printf '| task | typed | keys | additional time |\n|---|---|---|---|\n'
task "find the JVM" 0 '' 'jdperf jvms'
task "flame graph" 10 x.html 'jdperf -d 10 -o x.html PID'
task "" 10 x.html 'asprof -d 10 -f x.html PID'
# It names Java's methods by a perf map alone, which has to be made first.
if [[ -x /usr/local/bin/samply ]]; then
    allow 1
    task "" 10 x.json.gz 'jcmd PID Compiler.perfmap; samply record -s -d 10 -o x.json.gz -p PID'
    allow "$paranoid"
fi
task "IntelliJ's and JMC's format" 10 x.jfr 'jdperf -d 10 -o x.jfr PID'
task "" 10 x.jfr 'asprof -d 10 -f x.jfr PID'
task "which method allocates" 10 a.html 'jdperf --alloc -d 10 -o a.html PID'
task "" 10 a.html 'asprof -e alloc -d 10 -f a.html PID'
task "why requests wait" 10 w.html 'jdperf --off -d 10 -o w.html PID'
task "" 10 w.html 'asprof -e wall -d 10 -f w.html PID'
task "pauses and compilations" 10 jdperf.profile 'jdperf --time -d 10 PID'
task "" 0 '' 'jdperf timeline'
task "" 10 t.jfr 'asprof -d 10 --jfrsync profile -f t.jfr PID'
task "hot line and instruction" 10 jdperf.profile 'jdperf -d 10 PID'
task "" 0 '' 'jdperf annotate Market'
# Four runs of two seconds.
task "whether a change helped" 8 jdperf.compare 'jdperf compare -n 2 -- java -cp classes Market 2 -- java -cp classes Market 2'
task "give it to a colleague" 0 jdperf.profile.tar.gz 'jdperf bundle'
INSIDE
OUTSIDE
