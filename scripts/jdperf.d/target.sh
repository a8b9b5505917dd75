# shellcheck shell=bash
# A JVM that runs already: who it is, where it lives, and how the agent gets into it.
#
# It may be another user's, and in other namespaces: then it sees other pids and other files. What
# it has to read or write is put into a staging directory in its own /tmp, owned by its user, which
# we reach through /proc/PID/root.

# target_find WORD: sets TARGET to the pid that WORD is, or to the one JVM whose name has WORD in it.
target_find() {
    local pid name matches=()
    if [[ $1 =~ ^[0-9]+$ ]]; then
        TARGET=$1
        [[ -d /proc/$TARGET ]] || die "there is no process $TARGET"
    else
        while read -r pid name; do
            [[ $name == *"$1"* ]] && matches+=("$pid $name")
        done < <(target_list)
        case ${#matches[@]} in
        0) die "no JVM's name contains '$1'; jcmd -l and ps show what runs" ;;
        1) TARGET=${matches[0]%% *} ;;
        *)
            say "'$1' is part of ${#matches[@]} JVMs' names; give a pid, or more of the name:"
            printf '    %s\n' "${matches[@]}" | cut -c 1-120 >&2
            exit 1
            ;;
        esac
    fi
    head -c 1 "/proc/$TARGET/maps" >/dev/null 2>&1 ||
        die "process $TARGET belongs to $(stat -c %U "/proc/$TARGET") and the kernel lets $(id -un) not look into it: be that user, or root"
    target_is_jvm "$TARGET" || die "process $TARGET is no HotSpot JVM: it has no libjvm.so loaded"
    target_describe
}

target_is_jvm() {
    grep -qs '/libjvm\.so' "/proc/$1/maps"
}

# "PID NAME" of every JVM that we can look into: jcmd's name for it, else its command line.
target_list() {
    local pid names=''
    names=$(jcmd -l 2>/dev/null | grep -v ' jdk\.jcmd/') || :
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        target_is_jvm "$pid" || continue
        grep -m 1 "^$pid " <<<"$names" ||
            printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
}

# Sets what is to know of TARGET:
#   TARGET_NSPID         its pid as it sees itself
#   TARGET_UID, _GID     its user, as we see it
#   TARGET_SAME_FILES    yes when it sees the files that we see
#   TARGET_ROOT          what stands before a path of its to reach it from here
#   TARGET_JAVA_HOME     of its JDK or JRE, as it sees it; TARGET_JAVA: its major version
target_describe() {
    local status=/proc/$TARGET/status version
    TARGET_NSPID=$(awk '/^NSpid:/ { print $NF }' "$status")
    TARGET_UID=$(awk '/^Uid:/ { print $3 }' "$status")
    TARGET_GID=$(awk '/^Gid:/ { print $3 }' "$status")
    TARGET_NSPID=${TARGET_NSPID:-$TARGET}
    TARGET_SAME_FILES=yes TARGET_ROOT=''
    if [[ $(readlink "/proc/$TARGET/ns/mnt") != "$(readlink /proc/self/ns/mnt)" ||
        $(stat -L -c %d:%i "/proc/$TARGET/root") != "$(stat -L -c %d:%i /)" ]]; then
        TARGET_SAME_FILES='' TARGET_ROOT=/proc/$TARGET/root
        [[ -x /proc/$TARGET/root/ ]] || die "process $TARGET lives in a container: only root can attach to it from outside"
    fi
    TARGET_JAVA_HOME=$(target_mapped '/libjvm\.so' | sed -n '1s|/lib/\(amd64/\|aarch64/\)\{0,1\}server/.*||p')
    version=$(sed -n 's/^JAVA_VERSION="\([0-9.]*\).*/\1/p' "$TARGET_ROOT$TARGET_JAVA_HOME/release" 2>/dev/null) || :
    version=${version#1.}
    TARGET_JAVA=${version%%.*}
    target_wait_until_it_listens
}

# Attaching begins with SIGQUIT, which ends a JVM that does not catch it yet: one that has just been
# started. (One with -Xrs never does, but has its socket from the start.)
target_wait_until_it_listens() {
    local tries
    for ((tries = 0; tries < 50; tries++)); do
        if [[ -S $TARGET_ROOT/tmp/.java_pid$TARGET_NSPID ]] || target_catches_quit; then
            return 0
        fi
        sleep 0.1
    done
    die "process $TARGET does not listen to requests to attach, which would end it: it is starting still, or its signals are blocked; try again later"
}

target_catches_quit() {
    local caught
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$TARGET/status")
    (((16#${caught: -1} & 4) != 0)) # SIGQUIT is the third signal
}

# Runs a command with the target's user, where we are root and it is not.
target_as_user() {
    if ((EUID == 0 && TARGET_UID != 0)); then
        setpriv --reuid="$TARGET_UID" --regid="$TARGET_GID" --clear-groups -- "$@"
    else
        "$@"
    fi
}

# Whether the target can simply be given the files that we have.
target_is_like_us() {
    [[ $TARGET_SAME_FILES && $TARGET_UID == "$EUID" ]]
}

# Makes the staging directory. STAGING is its path as the target sees it, STAGING_HERE as we do.
target_make_staging() {
    [[ -z ${STAGING:-} ]] || return 0
    local tmp=$TARGET_ROOT/tmp
    # A container's own symbolic link would lead to a place on our side.
    [[ -d $tmp && ! -L $tmp ]] || die "failed to reach /tmp of process $TARGET"
    { STAGING_HERE=$(mktemp -d "$tmp/jdperf-$TARGET_NSPID.XXXXXXXX") && target_give "$STAGING_HERE"; } ||
        die "failed to make a directory in /tmp of process $TARGET"
    STAGING=${STAGING_HERE#"$TARGET_ROOT"}
}

# Gives a file of ours to the target's user.
target_give() {
    [[ $TARGET_UID == "$EUID" ]] || chown -h "$TARGET_UID:$TARGET_GID" "$1"
}

target_drop_staging() {
    [[ -z ${STAGING_HERE:-} ]] || rm -rf "$STAGING_HERE"
    STAGING='' STAGING_HERE=''
}

# Sets TARGET_AGENT: the path of the agent as the target can load it. One that is loaded already is
# used again, by the very same path: another path would be another agent.
target_choose_agent() {
    TARGET_AGENT=$(target_loaded_agent)
    [[ -z $TARGET_AGENT ]] || return 0
    need_agent
    if [[ $TARGET_SAME_FILES ]] && target_as_user test -r "$JDPERF_AGENT"; then
        TARGET_AGENT=$JDPERF_AGENT
    else
        target_make_staging
        { install -m 0500 "$JDPERF_AGENT" "$STAGING_HERE/libjdagent.so" &&
            target_give "$STAGING_HERE/libjdagent.so"; } ||
            die "failed to copy the agent to $STAGING for process $TARGET"
        TARGET_AGENT=$STAGING/libjdagent.so
    fi
}

target_loaded_agent() {
    target_mapped '/libjdagent\.so' | sed -n 1p
}

# The paths of mapped files that end with the pattern $1, as the target sees them: the kernel puts
# the directory that a process was chrooted to in front.
target_mapped() {
    local root
    root=$(readlink "/proc/$TARGET/root")
    sed -n "s|^[^/]* \(/.*$1\)\( (deleted)\)\{0,1\}\$|\1|p" "/proc/$TARGET/maps" | uniq |
        sed "s|^${root%/}/|/|"
}

# The dump that the target has mapped, as it sees it; empty when it writes none.
target_dump() {
    target_mapped '/jit-[0-9]*\.dump' | tail -n 1
}

# target_command OPTIONS: has the target load the agent with OPTIONS. 0, or 1 after the JVM's answer.
target_command() {
    local answer status=0 jcmd errors_file='' errors_from=0
    # What the agent says goes to the JVM's standard error; a file we can read along.
    if [[ -f /proc/$TARGET/fd/2 && -r /proc/$TARGET/fd/2 ]]; then
        errors_file=/proc/$TARGET/fd/2
        errors_from=$(stat -L -c %s "$errors_file")
    fi
    if command -v jattach >/dev/null; then
        answer=$(jattach "$TARGET" load "$TARGET_AGENT" true "$1" 2>&1) || status=$?
    elif jcmd=$(target_jcmd); then
        # jcmd reads key=value as an argument of its own unless it is quoted.
        answer=$(target_as_user "$jcmd" "$TARGET" JVMTI.agent_load "$TARGET_AGENT" "\"$1\"" 2>&1) || status=$?
    else
        die "failed to find jattach or jcmd: apt-get install jattach"
    fi
    [[ $answer =~ return\ code:\ (-?[0-9]+) ]] && status=${BASH_REMATCH[1]}
    ((status)) || return 0
    say "process $TARGET refused: $1"
    grep -vE '^(Connected to remote JVM|JVM response code = 0|[0-9]+:|)$' <<<"$answer" | sed 's/^/    JVM: /' >&2
    if [[ $errors_file ]]; then
        tail -c "+$((errors_from + 1))" "$errors_file" 2>/dev/null | grep '^jdagent:' | sed 's/^/    /' >&2 || :
    elif [[ $answer == *"return code:"* ]]; then
        say "  the agent's reason stands on the JVM's standard error"
    fi
    case $answer in
    *[Dd]ynamic*agent*loading*|*"Dynamic agent loading is not enabled"*)
        say "  the JVM runs with -XX:-EnableDynamicAgentLoading: start it with -XX:+EnableDynamicAgentLoading, or with the agent: jdperf record -- java …" ;;
    *"DisableAttachMechanism"* | *"not open socket"* | *"Could not start attach mechanism"*)
        say "  does it run with -XX:+DisableAttachMechanism? Then only a restart with the agent helps: jdperf record -- java …" ;;
    esac
    return 1
}

# A jcmd that can speak with the target: its own JDK's, ours.
target_jcmd() {
    local jcmd
    [[ $TARGET_SAME_FILES ]] || return 1
    for jcmd in "$TARGET_JAVA_HOME/bin/jcmd" ${JAVA_HOME:+"$JAVA_HOME/bin/jcmd"}; do
        [[ ! -x $jcmd ]] || { printf '%s\n' "$jcmd"; return 0; }
    done
    command -v jcmd
}

# target_flag NAME: the value of a -XX flag, empty when it cannot be had. A JVM that is known not to
# answer (TARGET_SILENT) is not asked: each question to it takes seconds.
target_flag() {
    local jcmd answer=''
    if [[ ${TARGET_SILENT:-} ]]; then
        return
    elif command -v jattach >/dev/null; then
        answer=$(jattach "$TARGET" printflag "$1" 2>/dev/null) || :
    elif jcmd=$(target_jcmd); then
        answer=$(target_as_user "$jcmd" "$TARGET" VM.flags -all 2>/dev/null | grep -w "$1") || :
    fi
    case $answer in
    *"-XX:+$1"* | *"$1"*"= true"*) echo true ;;
    *"-XX:-$1"* | *"$1"*"= false"*) echo false ;;
    esac
}

# JDK 21 and later warn when an agent comes into a running JVM.
target_announce_warning() {
    [[ ${TARGET_JAVA:-0} -ge 21 && -z $(target_loaded_agent) ]] || return 0
    ! tr '\0' '\n' <"/proc/$TARGET/cmdline" | has -x -e '-XX:+EnableDynamicAgentLoading' || return 0
    say "the JVM (JDK $TARGET_JAVA) will print a warning that an agent was loaded; started with -XX:+EnableDynamicAgentLoading it prints none"
}

# Sets STATUS_LINES to the agent's answer, "state=… mode=…" a line; fails when it gives none.
target_status() {
    local file
    STATUS_LINES=state=absent
    [[ $(target_loaded_agent) ]] || return 0
    target_choose_agent
    target_make_staging
    file=status.$RANDOM$RANDOM
    target_command "status=$STAGING/$file" || return 1
    STATUS_LINES=$(cat "$STAGING_HERE/$file" 2>/dev/null)
    rm -f "$STAGING_HERE/$file"
    [[ $STATUS_LINES ]]
}
