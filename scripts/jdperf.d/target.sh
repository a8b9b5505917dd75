# shellcheck shell=bash
# A JVM that runs already: who it is, where it lives, and how the agent gets into it.
#
# It may be another user's, and in other namespaces: then it sees other pids and other files.

# shellcheck source=scripts/jdperf.d/staging.sh
. "$JDPERF_LIB/staging.sh"
# shellcheck source=scripts/jdperf.d/ask.sh
. "$JDPERF_LIB/ask.sh"

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
    ! target_is_stopped || die "process $TARGET is stopped (SIGSTOP, or a debugger) and cannot answer: kill -CONT $TARGET"
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
#   TARGET_AS            what stands before a command to run it with the target's user, if we are root
#   TARGET_SAME_FILES    yes when it sees the files that we see
#   TARGET_ROOT          what stands before a path of its to reach it from here
#   TARGET_JAVA_HOME     of its JDK or JRE, as it sees it; TARGET_JAVA: its major version
target_describe() {
    local status=/proc/$TARGET/status version
    TARGET_NSPID=$(awk '/^NSpid:/ { print $NF }' "$status")
    TARGET_UID=$(awk '/^Uid:/ { print $3 }' "$status")
    TARGET_GID=$(awk '/^Gid:/ { print $3 }' "$status")
    TARGET_NSPID=${TARGET_NSPID:-$TARGET}
    TARGET_AS=()
    if ((EUID == 0 && TARGET_UID != 0)); then
        TARGET_AS=(setpriv --reuid="$TARGET_UID" --regid="$TARGET_GID" --clear-groups --)
    fi
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

# Whether the target can simply be given the files that we have.
target_is_like_us() {
    [[ $TARGET_SAME_FILES && $TARGET_UID == "$EUID" ]]
}

target_loaded_agent() {
    target_mapped '/libjdagent\.so' | sed -n 1p
}

# The paths of files that are mapped to be executed, the agent's dump among them, and end with the
# pattern $1, as the target sees them: the kernel puts the directory that a process was chrooted to in
# front. A library that failed to load may leave a mapping behind, but none that can be executed.
target_mapped() {
    local root
    root=$(readlink "/proc/$TARGET/root") || return 0
    { sed -n "s|^[^ ]* ..x[^/]* \(/.*$1\)\( (deleted)\)\{0,1\}\$|\1|p" "/proc/$TARGET/maps" 2>/dev/null || :; } | uniq |
        sed "s|^${root%/}/|/|"
}

# The dump that the target has mapped, as it sees it; empty when it writes none.
target_dump() {
    target_mapped '/jit-[0-9]*\.dump' | tail -n 1
}
