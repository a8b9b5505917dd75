#!/usr/bin/env bash
# Faults of the environment cost the profile, never the JVM: it has the same output and exit status, and one message.
source "$(dirname "$0")/lib.sh"
begin "$@"
compile

rounds=30
java=("$jdk/bin/java" -XX:+UseSerialGC -Xmx64m -cp "$classes")
"${java[@]}" Churn $rounds >"$scratch/expected"

# run NAME OPTIONS [ARGUMENT...]: Churn with the agent in a directory of its own, $dir. Its status
# goes to `status`, its output and messages to $scratch/NAME.out and NAME.err.
run() {
    name=$1
    local options=$2
    shift 2
    dir=$scratch/$name
    mkdir -p "$dir"
    status=0
    "${wrapper[@]}" "${java[0]}" "-agentpath:$agent=dir=$dir$options" "${java[@]:1}" Churn $rounds "$@" \
        >"$dir.out" 2>"$dir.err" || status=$?
}
wrapper=(env)

# unharmed [STATUS]: the last run did what it does without the agent.
unharmed() {
    [ "$status" -eq "${1:-0}" ] || fail "$name: exit status $status: $(head -n 5 "$dir.err")"
    head -n 1 "$dir.out" | cmp -s - "$scratch/expected" ||
        fail "$name: other output: $(head -n 3 "$dir.out")"
}

# messages COUNT: the agent had that many lines to say.
messages() {
    [ "$(grep -c '^jdagent: ' "$dir.err")" -eq "$1" ] ||
        fail "$name: not $1 messages but: $(cat "$dir.err")"
}

# sound: the last run left one dump, without a fault.
sound() {
    verify "$(the_dump "$dir")"
    note "$name: JVM unharmed, $(stat -c %s "$(the_dump "$dir")") bytes of sound dump$(sed -n 's/^jdagent: /; said: /p' "$dir.err")"
}

run plain ""
unharmed
messages 0
sound
full=$(stat -c %s "$(the_dump "$dir")")

run exit "" exit
unharmed 3
messages 0
sound

run halt "" halt
unharmed 4
messages 0
sound

# A child must inherit nothing of ours, and an exec that fails must not disturb us.
run exec "" exec
unharmed
messages 0
sound
grep -q 'exec failed, as it must' "$dir.out" || fail "exec: $(cat "$dir.out")"
! grep -q "$dir" "$dir.out" || fail "exec: the child inherited $(grep "$dir" "$dir.out")"

# A disk quota of sorts: EFBIG, and SIGXFSZ on the way.
limit=$((full / 3))
wrapper=(prlimit "--fsize=$limit" --)
run fsize ""
wrapper=(env)
unharmed
messages 1
sound
[ "$(stat -c %s "$(the_dump "$dir")")" -le "$limit" ] || fail "fsize: the dump is too long"

run max ",max=$limit"
unharmed
messages 1
sound
[ "$(stat -c %s "$(the_dump "$dir")")" -le "$limit" ] || fail "max: the dump is too long"

# A directory that cannot be written, and, with strict, a JVM that does not start.
touch "$scratch/file"
dir=$scratch/nodir name=nodir
status=0
"${java[0]}" "-agentpath:$agent=dir=$scratch/file/below" "${java[@]:1}" Churn $rounds >"$dir.out" 2>"$dir.err" ||
    status=$?
unharmed
messages 1
note "nodir: $(cat "$dir.err")"
name=strict dir=$scratch/strict status=0
"${java[0]}" "-agentpath:$agent=dir=$scratch/file/below,strict" "${java[@]:1}" Churn $rounds >"$dir.out" 2>"$dir.err" ||
    status=$?
[ "$status" -ne 0 ] || fail "strict: the JVM started all the same"
[ ! -s "$dir.out" ] || [ "$(grep -c sum "$dir.out")" -eq 0 ] || fail "strict: the program ran"

# A wrong option is the user's to mend: said by name, and the JVM does not start.
name=option dir=$scratch/option status=0
"${java[0]}" "-agentpath:$agent=dri=$scratch" "${java[@]:1}" Churn $rounds >"$dir.out" 2>"$dir.err" || status=$?
[ "$status" -ne 0 ] || fail "option: the JVM started all the same"
grep -q "^jdagent: .*dri" "$dir.err" || fail "option: the culprit is not named: $(cat "$dir.err")"

# Signals. What is in the file has to be sound, but for a torn tail where nobody could tidy up.
for signal in TERM SEGV; do
    name=$signal dir=$scratch/$signal
    mkdir "$dir"
    "${java[0]}" "-agentpath:$agent=dir=$dir" -XX:-CreateCoredumpOnCrash "-XX:ErrorFile=$dir/hs_err" \
        "${java[@]:1}" Churn $rounds wait >"$dir.out" 2>"$dir.err" &
    children=("$!")
    wait_for "$dir.out" ready
    kill "-$signal" "${children[0]}"
    status=0
    wait "${children[0]}" || status=$?
    [ "$status" -ne 0 ] || fail "$signal: exit status 0"
    head -n 1 "$dir.out" | cmp -s - "$scratch/expected" || fail "$signal: other output"
    if [ $signal = TERM ]; then
        verify "$(the_dump "$dir")"
    else
        [ -s "$dir/hs_err" ] || fail "SEGV: the JVM did not crash"
        verify_torn "$(the_dump "$dir")"
    fi
    "$jdtool" stat "$(the_dump "$dir")" | grep . >/dev/null || fail "$signal: nothing in the dump"
    note "$signal: exit status $status, $(stat -c %s "$(the_dump "$dir")") bytes of sound dump"
done

# A directory that is removed in mid-run. A link from outside shows what went on being written.
name=rmdir dir=$scratch/rmdir
mkdir "$dir"
"${java[0]}" "-agentpath:$agent=dir=$dir" "${java[@]:1}" Churn $((rounds * 4)) >"$dir.out" 2>"$dir.err" &
children=("$!")
tenths=3000
until compgen -G "$dir/jit-*.dump" >/dev/null; do
    [ $((tenths--)) -gt 0 ] || fail "rmdir: no dump"
    sleep 0.1
done
ln "$(the_dump "$dir")" "$scratch/linked.dump"
rm -r "$dir"
wait "${children[0]}" || fail "rmdir: the JVM failed: $(cat "$dir.err")"
"${java[@]}" Churn $((rounds * 4)) | cmp -s - "$dir.out" || fail "rmdir: other output"
verify "$scratch/linked.dump"
note "rmdir: JVM unharmed, $(stat -c %s "$scratch/linked.dump") bytes of sound dump"

# Somebody else's link in the place of the perf map is refused, not followed.
name=symlink dir=$scratch/symlink
mkdir "$dir"
echo precious >"$scratch/precious"
# shellcheck disable=SC2016 # for the inner shell, whose pid becomes the JVM's
status=0
bash -c 'ln -s "$1" "/tmp/perf-$$.map"; echo "$$" >"$2"; shift 2; exec "$@"' - "$scratch/precious" "$dir/pid" \
    "${java[0]}" "-agentpath:$agent=mode=map" "${java[@]:1}" Churn $rounds >"$dir.out" 2>"$dir.err" || status=$?
rm -f "/tmp/perf-$(cat "$dir/pid").map"
unharmed
messages 1
[ "$(cat "$scratch/precious")" = precious ] || fail "symlink: it was written through"
note "symlink: $(cat "$dir.err")"
