# shellcheck shell=bash
# shellcheck disable=SC2154 # The variables of verb_record.
# record -p: a session in a JVM for as long as perf watches it.

# shellcheck source=scripts/jdperf.d/target.sh
. "$JDPERF_LIB/target.sh"

# Attaches. A session that runs in the JVM already is used, and left alone afterwards: OWN_SESSION
# is empty then. DUMP_DIRECTORY is where the dump is, as we reach it even when the JVM has ended.
running_attach() {
    local dump
    OWN_SESSION=yes
    target_status || die "the agent in process $TARGET does not answer"
    if [[ $STATUS_LINES == *"state=running mode=jitdump"* ]]; then
        say "a session runs in process $TARGET already (attached, or another recording's): its dump is used, and it is not stopped"
        [[ -z $agent_options ]] || say "--agent-options has no effect on it"
        OWN_SESSION=''
    else
        [[ $STATUS_LINES != *state=running* ]] ||
            die "a session without a dump runs in process $TARGET (mode=map?): jdperf stop $TARGET first"
        target_announce_warning
        target_choose_agent
        AGENT_OPTIONS=$agent_options
        if target_is_like_us; then
            add_agent_option dir "$PROFILE"
        else
            target_make_staging
            add_agent_option dir "$STAGING"
        fi
        [[ $stacks != dwarf ]] || add_agent_option methods on
        # Should we be killed, the JVM is not left with a session for good.
        [[ -z $duration ]] || add_agent_option duration $((duration + 60))
        # Before the request: the JVM acts on it even if we are ended while it is under way.
        at_exit running_abandon
        if ! target_command "$AGENT_OPTIONS"; then
            OWN_SESSION=''
            exit 1
        fi
    fi
    dump=$(target_dump)
    [[ $dump ]] || die "the agent in process $TARGET writes no dump"
    exec {DUMP_DIRECTORY}<"$TARGET_ROOT${dump%/*}"
    profile_set "$PROFILE" pid "$TARGET"
}

# Ends the session and brings its files into the profile.
running_detach() {
    local file here=/proc/self/fd/$DUMP_DIRECTORY
    if ! target_is_jvm "$TARGET"; then
        :
    elif [[ $OWN_SESSION ]]; then
        target_command stop || say "going on with what the dump holds"
    elif [[ -z $(target_dump) ]]; then
        say "the session that was used ended before the recording did: code made after that has no name"
    fi
    OWN_SESSION=''
    for file in "$here/jit-$TARGET_NSPID.dump" "$here/jit-$TARGET_NSPID.methods"; do
        # A regular file only: the directory is another user's.
        [[ -f $file && ! -L $file && ! $file -ef $PROFILE/${file##*/} ]] || continue
        cp "$file" "$PROFILE/${file##*/}" || die "failed to copy ${file##*/} into $PROFILE"
    done
    exec {DUMP_DIRECTORY}<&-
}

# A recording that comes to nothing leaves the JVM as it was.
running_abandon() {
    [[ -z $OWN_SESSION ]] || ! target_is_jvm "$TARGET" || target_command stop || :
}
