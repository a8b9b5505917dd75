# shellcheck shell=bash
# shellcheck disable=SC2154 # What target_describe sets.
# The staging directory: what a JVM of another user or in other namespaces has to read or write is put
# into a directory in its own /tmp, owned by its user, which we reach through /proc/PID/root. It goes
# when jdperf ends, unless staging_keep is called.

# Where it may be. The first that the JVM may run code from is taken, for the agent has to be mapped.
STAGING_PLACES=(/tmp /var/tmp /dev/shm)

# Makes the staging directory. STAGING is its path as the target sees it, STAGING_HERE as we do;
# STAGING_NOEXEC is yes when no agent can be loaded from it.
target_make_staging() {
    [[ -z ${STAGING:-} ]] || return 0
    local place options chosen=''
    STAGING_NOEXEC=''
    for place in "${STAGING_PLACES[@]}"; do
        staging_is_place "$TARGET_ROOT" "$place" || continue
        options=,$(target_mount_options "$place"),
        [[ $options != *,ro,* ]] || continue
        if [[ $options != *,noexec,* ]]; then
            chosen=$place STAGING_NOEXEC=''
            break
        elif [[ -z $chosen ]]; then
            chosen=$place STAGING_NOEXEC=yes
        fi
    done
    [[ $chosen ]] ||
        die "process $TARGET can write to none of ${STAGING_PLACES[*]}: mount a /tmp in it (docker: --tmpfs /tmp:exec, Kubernetes: an emptyDir), or start it with the agent"
    at_exit target_drop_staging
    # By a descriptor we reach it even when the process has ended.
    exec {place}<"$TARGET_ROOT$chosen"
    { STAGING_HERE=$(mktemp -d "/proc/$$/fd/$place/jdperf-$TARGET_NSPID.XXXXXXXX") && target_give "$STAGING_HERE"; } ||
        die "failed to make a directory in $chosen of process $TARGET"
    STAGING=$chosen/${STAGING_HERE##*/}
}

# Whether the directory $2 of the process whose root is $1 is one. A container's own symbolic links
# would lead to a place on our side.
staging_is_place() {
    [[ -d $1$2 && ! -L $1$2 ]] && [[ $2 == /*([^/]) || ! -L $1${2%/*} ]]
}

# The options that the directory $1 of the target is mounted with, parted by commas.
target_mount_options() {
    awk -v path="$1/" '
        { point = $5 == "/" ? "/" : $5 "/" }
        index(path, point) == 1 && length(point) >= length(best) { best = point; options = $6 }
        END { print options }' "/proc/$TARGET/mountinfo" 2>/dev/null || :
}

# Gives a file of ours to the target's user.
target_give() {
    [[ $TARGET_UID == "$EUID" ]] || chown -h "$TARGET_UID:$TARGET_GID" "$1"
}

target_drop_staging() {
    [[ -z ${STAGING_HERE:-} ]] || rm -rf "$STAGING_HERE"
    STAGING='' STAGING_HERE=''
}

# Leaves the staging directory to the session that writes into it; jdperf clean removes it later.
staging_keep() {
    STAGING='' STAGING_HERE=''
}

# Sets TARGET_AGENT: the path of the agent as the target can load it. One that is loaded already is
# used again, by the very same path: another path would be another agent.
target_choose_agent() {
    TARGET_AGENT=$(target_loaded_agent)
    [[ -z $TARGET_AGENT ]] || return 0
    need_agent
    if [[ $TARGET_SAME_FILES ]] && "${TARGET_AS[@]}" test -r "$JDPERF_AGENT"; then
        TARGET_AGENT=$JDPERF_AGENT
    else
        target_make_staging
        [[ -z $STAGING_NOEXEC ]] ||
            die "process $TARGET cannot load the agent from ${STAGING_PLACES[*]}: they are mounted noexec; mount one without (in a container: --tmpfs /tmp:exec), or start the JVM with the agent"
        { install -m 0500 "$JDPERF_AGENT" "$STAGING_HERE/libjdagent.so" &&
            target_give "$STAGING_HERE/libjdagent.so"; } ||
            die "failed to copy the agent to $STAGING for process $TARGET"
        TARGET_AGENT=$STAGING/libjdagent.so
    fi
}
