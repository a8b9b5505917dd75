# shellcheck shell=bash
# perf: is it there, may it sample, and with what event.

# The user's own perfconfig (percent-limit, order=caller) cannot change what the verbs rely on. jdtool
# asks for perf's version.
export PERF=${PERF:-perf} PERF_CONFIG=/dev/null

need_perf() {
    command -v "$PERF" >/dev/null ||
        die "failed to find perf: apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora, RHEL, SUSE)"
}

# perf as this profile's files want it: build-ids are looked up inside the directory, never in
# ~/.debug.
perf_in_profile() {
    command "$PERF" --buildid-dir "$PROFILE/buildid" "$@"
}
