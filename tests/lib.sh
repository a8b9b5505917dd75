# shellcheck shell=bash
# What every test that is a script ends with. Sourced, by way of java-tests/lib.sh and
# tests/shell/lib.sh or alone: 0 passed, 1 failed after "FAILED: why", 77 skipped after
# "SKIPPED: why". Whether a test may be skipped on this machine is said in tests/required.txt.

skip() {
    printf 'SKIPPED: %s\n' "$*"
    exit 77
}

fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

note() {
    printf -- '-- %s\n' "$*"
}

# wait_until SECONDS WHAT COMMAND…: until the command succeeds; fails with "no WHAT within …".
wait_until() {
    local tenths=$(($1 * 10)) seconds=$1 what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((tenths-- > 0)) || fail "no $what within $seconds s"
        sleep 0.1
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

# rooted_stacks PERF_DATA: of the stacks with a frame of generated or interpreted code, how many there are and how
# many end where threads begin: "ALL ROOTED". Counted of what perf shows, not taken from a scorecard.
rooted_stacks() {
    perf script -f -i "$1" --no-inline --max-stack 2000 -F ip,sym,dso 2>/dev/null | awk '
        function judge() { all += java; rooted += java && root; java = root = 0 }
        NF == 0 { judge(); next }
        { root = $2 ~ /^(_start|start_thread|(__GI_)?(__)?clone3?)(\+0x|$)/ }
        /\(.*\.jit-[^ ]*\.so\)$|Interpreter|\(interpreted\)/ { java = 1 }
        END { judge(); print all + 0, rooted + 0 }'
}
