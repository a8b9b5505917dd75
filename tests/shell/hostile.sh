# shellcheck shell=bash
# A hostile user works beside root: what jdperf_race and jdperf_swap share. Sourced, behind lib.sh; ends the test as
# skipped where the user cannot be played.

need_real_profile
((EUID == 0)) || skip "only root can be steered"
for tool in strace perl; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
compile_sample
chmod 755 "$WORK"
hostile=''

# Files of root's that must stay as they are are in precious/.
state() {
    find "$WORK/precious" -printf '%p %u %g %m %i %s %l ' -type f -exec cksum {} \; -o -printf '\n' | sort
}

# hostile ARGUMENT… <<PROGRAM: from now on the user runs it, perl's, with these arguments.
hostile() {
    before=$(state)
    cat >hostile.pl
    "${AS_NOBODY[@]}" perl hostile.pl "$@" >hostile.out 2>&1 </dev/null &
    hostile=$!
}

# unharmed WHAT STATUS: fails if WHAT, which ended so, hung or changed something, or if nobody tried to have it do so.
unharmed() {
    (($2 != 124)) || fail "$1 hangs"
    kill -0 "$hostile" || fail "the hostile user has given up: $(cat hostile.out)"
    [[ $(state) == "$before" ]] || fail "$1 changed a file of root's: $(diff <(echo "$before") <(state))"
}
