# shellcheck shell=bash
# What every test that is a script ends with. Sourced, by way of java-tests/lib.sh and
# tests/shell/lib.sh or alone: 0 passed, 1 failed after "FAILED: why", 77 skipped after
# "SKIPPED: why". Whether a test may be skipped on this machine is said in tests/required.txt.

# What tests build themselves: ninja takes a tenth of make's own time, and starts no cmake to tell of each step.
! command -v ninja >/dev/null || export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}

skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# part WHAT COMMAND…: whether the machine has what a part of the test needs, which the command finds out. A part
# that is left out is named: "LEFT OUT: WHAT: needs COMMAND".
part() {
    local what=$1
    shift
    "$@" >/dev/null 2>&1 || { printf 'LEFT OUT: %s: needs %s\n' "$what" "$*"; return 1; }
}

is_root() {
    [ "${EUID:-$(id -u)}" = 0 ]
}

# other_user_runs: whether programs can be run as somebody else.
other_user_runs() {
    is_root && command -v setpriv
}

# own_mounts: whether a mount can be made that nobody else sees.
own_mounts() {
    is_root && unshare --mount true
}

note() {
    printf -- '-- %s\n' "$*"
}

# wait_until SECONDS WHAT COMMAND…: until the command succeeds; fails with "no WHAT within …". Looks after a tenth of a
# second, and later every four tenths: to ask a running watch costs as much of a processor as it does itself.
wait_until() {
    local tenths=$(($1 * 10)) pause=0 seconds=$1 what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((tenths > 0)) || fail "no $what within $seconds s"
        pause=$((pause < 4 ? pause + 1 : 4)) tenths=$((tenths - pause))
        sleep "0.$pause"
    done
}

# wait_still FILE [SECONDS]: until nothing has been added to it for so long (1 s); for what comes late and says
# nothing when it is the last.
wait_still() {
    local tenths=600 still=0 size=-1 now
    while ((still < ${2:-1} * 10)); do
        ((tenths-- > 0)) || fail "$1 goes on growing for a minute"
        sleep 0.1
        now=$(stat -c %s "$1" 2>/dev/null) || now=-1
        still=$((still + 1))
        ((now == size)) || still=0
        size=$now
    done
}

# listens PID: whether the JVM has come so far that it catches SIGQUIT, by which one attaches; a process that
# does not would die of it.
listens() {
    (($(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$1/status") & 4))
}

# is_up PID: whether the JVM has started the last of its own threads. Before, it may still remove a
# /tmp/.java_pid<PID> that somebody else has put there (AttachListener::vm_start).
is_up() {
    grep -q '^VM Peri' "/proc/$1"/task/*/comm
}

# has_worked PID SECONDS: whether the process has had so much processor time. On a busy machine that says what a
# pause does not.
has_worked() {
    (($(awk '{ print $14 + $15 }' "/proc/$1/stat") >= $2 * $(getconf CLK_TCK)))
}

# works_on PID MILLISECONDS: until the process has had so much more processor time, a minute at most.
works_on() {
    local enough
    enough=$(awk -v more="$2" -v hz="$(getconf CLK_TCK)" '{ print $14 + $15 + more * hz / 1000 }' "/proc/$1/stat")
    # shellcheck disable=SC2016
    wait_until 60 "processor time of $1" awk -v enough="$enough" '$14 + $15 < enough { exit 1 }' "/proc/$1/stat"
}

# generated_frames: of what perf script shows of a result with ip, sym and dso, the frames in generated code and
# those with a name: "ALL NAMED". What jdtool knew is in its images; what it did not stays in anonymous memory, which
# perf takes for that of a map, whether there is one or not. Counted of what perf shows, not taken from a scorecard.
generated_frames() {
    awk '/\(\/tmp\/perf-[0-9]+\.map\)$/ { all++ }
        /\(.*\.jit-[^ ]*\.so\)$/ { all++; named += !/ \[unknown\] \(/ }
        END { print all + 0, named + 0 }'
}

# rooted_stacks PERF_DATA [EVENT]: of the stacks with a frame of generated or interpreted code, how many there are and
# how many end where threads begin: "ALL ROOTED"; of one event, by its name without the group's. Counted of what perf shows.
rooted_stacks() {
    perf script -f -i "$1" --no-inline --max-stack 2000 -F event,ip,sym,dso 2>/dev/null | awk -v event="${2:-}" '
        function judge() { all += java; rooted += java && root; java = root = 0 }
        NF == 0 { judge(); next }
        !/^\t/ { n = split($1, word, ":"); wanted = event == "" || word[n - 1] == event; next } # GROUP:NAME:
        !wanted { next }
        / \[idle\] \(/ { next } # behind the root, from jdtool: a wait for work
        { root = $2 ~ /^(_start|start_thread|(__GI_)?(__)?clone3?)(\+0x|$)/ }
        /\(.*\.jit-[^ ]*\.so\)$|Interpreter|\(interpreted\)/ { java = 1 }
        END { judge(); print all + 0, rooted + 0 }'
}

# perf_record ARGUMENT...: without events of BPF programs, for whose thread perf waits up to a second
# at the end of every recording. On a busy machine half a second is not enough for it to read a JVM's
# mappings, and it leaves the rest of them out.
perf_record() {
    perf record -q --no-bpf-event --proc-map-timeout 20000 "$@"
}

# Skips the test where perf is missing or cannot sample on the monotonic clock. What samples for one test does for all
# of a run: the answer is kept as long as the machine runs and grants the same.
need_perf() {
    command -v perf >/dev/null || skip "perf is not installed"
    local probe samples why try machine known=${JDAGENT_BUILD:-$build}/tests/perf-samples
    machine="$(cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/perf_event_paranoid) $EUID $(command -v perf)"
    [ "$(cat "$known" 2>/dev/null)" != "$machine" ] || return 0
    probe=$(mktemp -d)
    for try in 1 2 3; do # a busy machine may fail once, and a test that is skipped tests nothing
        if perf_record -o "$probe/perf.data" -e cpu-clock -F 999 -k mono -- \
            bash -c 'for ((i = 0; i < 30000; i++)); do :; done' >"$probe/log" 2>&1; then
            samples=$(perf script -i "$probe/perf.data" -F ip 2>/dev/null | wc -l)
            if [ "$samples" -gt 5 ]; then
                printf '%s\n' "$machine" >"$known.$$"
                mv "$known.$$" "$known"
                rm -rf "$probe"
                return 0
            fi
            why="perf takes no samples here ($samples of a busy loop)"
        else
            why="perf cannot sample here: $(head -n 1 "$probe/log")"
        fi
        note "try $try: $why"
    done
    rm -rf "$probe"
    skip "$why (perf_event_paranoid is $(cat /proc/sys/kernel/perf_event_paranoid))"
}
