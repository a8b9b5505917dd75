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
