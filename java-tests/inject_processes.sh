#!/usr/bin/env bash
# jdtool inject handles all kinds of recordings: several JVMs, child JVMs, running JVMs, several events, compressed
# data, moved dumps, pid namespaces. Each JVM's own methods must be found in its own image.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
compile

sampling=(-e cpu-clock -F 999 -g)
jvm=("$jdk/bin/java" -XX:+PreserveFramePointer "-agentpath:$agent=dir=$scratch" -cp "$classes")

inject() {
    local case=$1
    shift
    "$jdtool" inject -i "$scratch/$case.data" -o "$scratch/$case.jit.data" \
        --scorecard "$scratch/$case.json" "$@" >"$scratch/$case.out" 2>&1 ||
        fail "$case: $(tail -n 3 "$scratch/$case.out")"
    perf script -i "$scratch/$case.jit.data" --max-stack 1000 -F comm,pid,event,ip,sym,dso \
        >"$scratch/$case.txt" 2>"$scratch/$case.err"
    ! grep -v -e '^$' -e 'addr2line' "$scratch/$case.err" | grep . || fail "$case: perf complains"
}

# good CASE [PID...]: of the frames in generated code at most 1 % have no name. Of what -a saw these processes count:
# other JVMs may be at work on this machine, without an agent or with one that came late, and other tests run such
# programs, too.
good() {
    local frames named
    read -r frames named < <(awk -v pids=" ${*:2} " '
        !/^\t/ { pid = NF ? $(NF - 1) : ""; next }
        pids ~ /^ *$/ || index(pids, " " pid " ")' "$scratch/$1.txt" | generated_frames)
    note "$1: $frames frames in generated code, $((frames - named)) unnamed"
    [ "$frames" -ge 100 ] || fail "$1: only $frames frames in generated code"
    [ $(((frames - named) * 100)) -le "$frames" ] || fail "$1: too many unnamed frames: $(cat "$scratch/$1.out")"
}

# seen CASE PATTERN [LEAST]: lines of the resolved stacks.
seen() {
    local count
    count=$(grep -cE -e "$2" "$scratch/$1.txt" || true)
    [ "$count" -ge "${3:-20}" ] || fail "$1: '$2' is there $count times"
    note "$1: $2: $count"
}

# record CASE PERF-OPTIONS -- COMMAND
record() {
    local case=$1
    shift
    perf_record -k mono -o "$scratch/$case.data" "$@" \
        >"$scratch/$case.log" 2>&1 || fail "$case: $(tail -n 3 "$scratch/$case.log")"
}

# end PID: of a JVM of ours, which has been recorded. It ends as by Ctrl-C, and its dump with it.
end() {
    kill "$1"
    wait "$1" || [ $? = 143 ]
}

# compiled PID PROGRAM: whether code of the program is in the JVM's dump, so that samples can be in it.
compiled() {
    grep -qs "$2\." "$scratch/jit-$1.dump"
}

# perf's command: until the processes have had so much of a processor, "MILLISECONDS PID…". By the clock there would be
# few samples of them on a busy machine.
export -f wait_until works_on fail
# shellcheck disable=SC2016 # for the inner shell
at_work=(bash -c 'for pid in "${@:2}"; do works_on "$pid" "$1"; done' -)

# Two JVMs, the whole machine.
"${jvm[@]}" Streams 60 >"$scratch/1.log" &
first=$!
"${jvm[@]}" Forker 60 >"$scratch/2.log" &
second=$!
children+=("$first" "$second")
wait_until 60 "code of Streams" compiled "$first" Streams
wait_until 60 "code of Forker" compiled "$second" Forker
record all "${sampling[@]}" -a -- "${at_work[@]}" 1000 "$first" "$second"
end "$first"
end "$second"
inject all
good all "$first" "$second"
images=$(awk -v first="$first" -v second="$second" '
    !/^\t/ { pid = NF ? $(NF - 1) : ""; next }
    pid == first || pid == second' "$scratch/all.txt" |
    sed -nE 's/.*(Streams|Forker)\..*all\.jit-(java|[0-9]+)(-frames)?(\.[0-9]+)?\.so.*/\1 \2/p' |
    sort | uniq -c | sort -rn)
note "all: ${images//$'\n'/,}"
[ "$(wc -l <<<"$images")" -eq 2 ] || fail "all: each program is not in an image of its own: $images"
[ "$(awk '{ print $3 }' <<<"$images" | sort -u | wc -l)" -eq 2 ] || fail "all: both are in one image: $images"

# One that was there before perf, by pid; at the end its dump is beside the recording only.
"${jvm[@]}" Streams 60 >"$scratch/1.log" &
first=$!
children+=("$first")
wait_until 60 "code of Streams" compiled "$first" Streams
record pid "${sampling[@]}" -p "$first" -- "${at_work[@]}" 1000 "$first"
end "$first"
mkdir "$scratch/moved"
mv "$scratch/pid.data" "$scratch/moved/"
mv "$scratch/jit-$first.dump" "$scratch/moved/"
mv "$scratch/moved/pid.data" "$scratch/pid.data"
if "$jdtool" inject -i "$scratch/pid.data" -o "$scratch/pid.none" --scorecard "$scratch/none.json" \
    >"$scratch/none.out" 2>&1; then
    fail "pid: nothing was named, and the exit status is that of success"
fi
grep -q "dump .*jit-$first.dump of process $first is missing" "$scratch/none.out" || fail "pid: a dump is missing and nobody says so"
grep -q '"verdict": "bad"' "$scratch/none.json" || fail "pid: without a dump the profile is good"
[ -s "$scratch/pid.none" ] || fail "pid: native code is lost for want of a dump"
inject pid --dump "$scratch/moved/jit-$first.dump"
good pid
seen pid "Streams.*pid.jit-java(-frames)?.so"
mv "$scratch/moved/jit-$first.dump" "$scratch/"
inject pid
good pid

# A JVM that starts another one.
record fork "${sampling[@]}" -- "${jvm[@]}" Forker 1 "${jvm[@]}" Forker 1
inject fork
good fork
mapfile -t images < <(grep -oE 'Forker\.work.*fork\.jit-(java|[0-9]+)(\.[0-9]+)?\.so' "$scratch/fork.txt" |
    grep -oE 'fork\.jit-(java|[0-9]+)' | sort -u)
[ "${#images[@]}" -eq 2 ] || fail "fork: the method is in ${#images[@]} images instead of two"

# Two events with different sample types.
record events -e cpu-clock/call-graph=fp,freq=999/ -e page-faults/call-graph=no,period=20/ -- "${jvm[@]}" Streams 1
inject events
good events
seen events "Streams.*events.jit"
for event in cpu-clock page-faults; do
    [ "$(grep -c " $event" "$scratch/events.txt")" -gt 20 ] || fail "events: no $event"
done

# Compressed by perf.
record packed "${sampling[@]}" -z -- "${jvm[@]}" Streams 1
inject packed
good packed
seen packed "Streams.*packed.jit"

# In a pid namespace and with a /tmp of its own: the dump's name has the pid of in there.
if part "namespaces" unshare --pid --fork --mount --mount-proc true; then
    mkdir "$scratch/inside"
    record space "${sampling[@]}" -a -- unshare --pid --fork --mount --mount-proc \
        bash -c "mount --bind '$scratch/inside' /mnt && exec \"\$@\"" - \
        "$jdk/bin/java" -XX:+PreserveFramePointer "-agentpath:$agent=dir=/mnt" -cp "$classes" Forker 1
    dump=$(the_dump "$scratch/inside")
    inject space --dump "$dump"
    good space
    seen space 'Forker\.work.*space\.jit-'

    # The JVM's libraries under names that are none out here: its stacks are unwound with them
    # while it lives, and with perf's copies of them later.
    rooted() {
        local all rooted
        read -r all rooted < <(rooted_stacks "$scratch/inside.jit.data")
        note "inside, $1: $rooted of $all stacks are rooted"
        [ "$all" -ge 100 ] || fail "inside, $1: only $all stacks of Java"
        at_least "$rooted" "$all" 90 || fail "inside, $1: stacks without roots: $(cat "$scratch/inside.out")"
    }
    unshare --mount bash -c "mount --bind '$jdk' /mnt && exec \"\$@\"" - \
        /mnt/bin/java "-agentpath:$agent=dir=$scratch,methods=on" -cp "$classes" Streams 60 \
        >"$scratch/1.log" &
    first=$!
    children+=("$first")
    wait_until 60 "code of Streams" compiled "$first" Streams
    perf --buildid-dir "$scratch/buildid" record -q --buildid-all -k mono -o "$scratch/inside.data" \
        -e cpu-clock -F 199 --call-graph dwarf,16384 -p "$first" -- "${at_work[@]}" 1500 "$first" \
        >"$scratch/inside.log" 2>&1 || fail "inside: $(tail -n 3 "$scratch/inside.log")"
    kill -STOP "$first" # it need not be busy while files are read
    inject inside
    rooted alive
    kill -KILL "$first"
    wait "$first" 2>/dev/null || true
    inject inside --buildid-dir "$scratch/buildid"
    rooted dead
fi
