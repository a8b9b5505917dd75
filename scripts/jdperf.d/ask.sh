# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # What is set here is read by the verbs; what target_describe sets.
# Talking with a JVM through jattach or jcmd. A JVM answers at a safepoint, and only if it lives: a
# question waits, which is said, and after a silence no second one is asked.

# target_ask SECONDS COMMAND…: sets ANSWER to what a command that talks with the JVM says, and returns
# its status; 124 when it has not ended after SECONDS. 0 SECONDS waits as long as it takes.
target_ask() {
    local answers status=0 more asker
    if target_is_deaf; then
        ANSWER='Could not start attach mechanism'
        return 1
    fi
    exec {answers}< <(timeout --foreground "$@" 2>&1)
    asker=$!
    IFS= read -r -d '' -t 3 -u "$answers" ANSWER || status=$?
    if ((status > 128)); then
        say "process $TARGET has not answered for 3 s: still waiting (Ctrl-C gives up)"
        IFS= read -r -d '' -u "$answers" more || :
        ANSWER+=$more
    fi
    exec {answers}<&-
    status=0
    wait "$asker" || status=$?
    return "$status"
}

# target_command OPTIONS: has the target load the agent with OPTIONS. 0, or 1 after the JVM's answer.
target_command() {
    local status=0 jcmd errors_file='' errors_from=0 tries asking
    # What the agent says goes to the JVM's standard error; a file we can read along.
    if [[ -f /proc/$TARGET/fd/2 && -r /proc/$TARGET/fd/2 ]]; then
        errors_file=/proc/$TARGET/fd/2
        errors_from=$(stat -L -c %s "$errors_file")
    fi
    if command -v jattach >/dev/null; then
        asking=(jattach "$TARGET" load "$TARGET_AGENT" true "$1")
    elif jcmd=$(target_jcmd); then
        # jcmd reads key=value as an argument of its own unless it is quoted.
        asking=("${TARGET_AS[@]}" "$jcmd" "$TARGET" JVMTI.agent_load "$TARGET_AGENT" "\"$1\"")
    else
        need_attach_tool
    fi
    for ((tries = 0; tries < 20; tries++)); do
        status=0
        target_ask 0 "${asking[@]}" || status=$?
        [[ $ANSWER =~ return\ code:\ (-?[0-9]+) ]] && status=${BASH_REMATCH[1]}
        # JDK 21 and later say so with a status of 0.
        [[ $ANSWER != *"Dynamic agent loading is not enabled"* ]] || status=1
        # JNI_EDETACHED: it listens before it has finished starting.
        ((status == -2)) || break
        sleep 0.5
    done
    ((status)) || return 0
    if ! target_is_jvm "$TARGET"; then
        say "process $TARGET has ended"
        return 1
    fi
    say "process $TARGET refused: $1"
    grep -vE '^(Connected to remote JVM|JVM response code = 0|[0-9]+:|)$' <<<"$ANSWER" | sed 's/^/    JVM: /' >&2
    if [[ $errors_file ]]; then
        tail -c "+$((errors_from + 1))" "$errors_file" 2>/dev/null | grep '^jdagent:' | sed 's/^/    /' >&2 || :
    elif [[ $ANSWER == *"return code:"* ]]; then
        say "  the agent's reason stands on the JVM's standard error"
    fi
    case $ANSWER in
    *"Dynamic agent loading is not enabled"*)
        say "  the JVM runs with -XX:-EnableDynamicAgentLoading: start it with -XX:+EnableDynamicAgentLoading, or with the agent: jdperf record -- java …" ;;
    *"DisableAttachMechanism"* | *"not open socket"* | *"Could not start attach mechanism"*)
        say "  $(target_silence)" ;;
    esac
    return 1
}

# Why the target does not answer, and the remedy.
target_silence() {
    if target_is_stopped; then
        echo "it is stopped (SIGSTOP, or a debugger): kill -CONT $TARGET"
    elif target_is_deaf; then
        echo "it runs with -XX:+DisableAttachMechanism: only a restart with the agent helps: jdperf record -- java …"
    elif [[ ,$(target_mount_options /tmp), == *,ro,* ]]; then
        echo "its /tmp is read-only, where it would listen: mount one that it can write to (docker: --tmpfs /tmp:exec, Kubernetes: an emptyDir), or start it with the agent"
    else
        echo "it hangs, or has not the time to answer; jattach $TARGET threaddump asks it again. If nothing helps: jdperf record -- java …"
    fi
}

target_is_stopped() {
    [[ $(sed 's/.*) //' "/proc/$TARGET/stat" 2>/dev/null) == [Tt]\ * ]]
}

target_is_deaf() {
    target_arguments | has -x -e '-XX:+DisableAttachMechanism'
}

# The arguments of the JVM, one a line.
target_arguments() {
    tr '\0' '\n' 2>/dev/null <"/proc/$TARGET/cmdline" || :
    tr '\0' '\n' 2>/dev/null <"/proc/$TARGET/environ" | sed -n 's/^\(JAVA_TOOL_OPTIONS\|JDK_JAVA_OPTIONS\|_JAVA_OPTIONS\)=//p' | tr ' ' '\n'
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

need_attach_tool() {
    command -v jattach >/dev/null || target_jcmd >/dev/null || die "failed to find jattach or jcmd: apt-get install jattach"
}

# target_flag NAME: sets FLAG to the value of a -XX flag, true or false, empty when the JVM does not
# know it. Fails, and sets TARGET_SILENT, when the JVM does not answer.
target_flag() {
    local jcmd status=0
    FLAG='' ANSWER=''
    [[ -z ${TARGET_SILENT:-} ]] || return 1
    if command -v jattach >/dev/null; then
        target_ask 15 jattach "$TARGET" printflag "$1" || status=$?
    elif jcmd=$(target_jcmd); then
        target_ask 15 "${TARGET_AS[@]}" "$jcmd" "$TARGET" VM.flags -all || status=$?
        ANSWER=$(grep -w "$1" <<<"$ANSWER") || :
    fi
    case $ANSWER in
    *"-XX:+$1"* | *"$1"*"= true"*) FLAG=true ;;
    *"-XX:-$1"* | *"$1"*"= false"*) FLAG=false ;;
    esac
    ((status)) || return 0
    TARGET_SILENT=yes
    return 1
}

# JDK 21 and later warn when an agent comes into a running JVM.
target_announce_warning() {
    [[ ${TARGET_JAVA:-0} -ge 21 && -z $(target_loaded_agent) ]] || return 0
    ! target_arguments | has -x -e '-XX:[+-]EnableDynamicAgentLoading' || return 0
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
