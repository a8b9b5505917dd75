# shellcheck shell=bash
# jdperf attach: a session in a JVM that runs already.

# shellcheck source=scripts/jdperf.d/target.sh
. "$JDPERF_LIB/target.sh"

attach_usage() {
    cat <<END
usage: jdperf attach PID [-o DIR] [--agent-options LIST]

Loads the agent into a running JVM: it describes all generated code that is
there and from then on what comes, until jdperf stop PID. PID is a number, or a
unique part of a name that jcmd -l shows; the JVM may be another user's (for
root) or in a container.

  -o DIR              an existing directory for the dump (default: one below
                      \$JITDUMPDIR, else the agent's own, below \$HOME of the
                      JVM; for another user's JVM or a container's, one in
                      its /tmp)
      --agent-options LIST  key=value,… for the agent

jdperf record -p PID attaches, records and stops in one go.
END
}

verb_attach() {
    local dir='' agent_options=''
    read_options attach 'dir -o --output' 'agent_options --agent-options' : "$@"
    one_word attach JVM
    [[ ${WORDS[0]:-} ]] || wrong_usage "attach: to which JVM? (jdperf attach PID)"
    target_find "${WORDS[0]}"
    target_status || die "the agent in process $TARGET does not answer"
    if [[ $STATUS_LINES == *state=running* ]]; then
        say "a session runs in process $TARGET already, and goes on as it is:"
        printf '%s\n' "$STATUS_LINES"
        return 0
    fi
    target_announce_warning
    target_choose_agent
    if [[ $dir ]]; then
        target_is_like_us || die "process $TARGET cannot write to $dir: it is another user's, or in a container; leave -o out"
        [[ -d $dir ]] || wrong_usage "attach: there is no directory $dir"
        agent_options=dir=$(cd "$dir" && pwd -P)${agent_options:+,$agent_options}
    elif [[ ${JITDUMPDIR:-} ]] && target_is_like_us; then
        # The agent would look into the JVM's environment, not into ours.
        { mkdir -p "$JITDUMPDIR/.debug/jit" &&
            dir=$(mktemp -d "$JITDUMPDIR/.debug/jit/java-jit-$(date +%Y%m%d).XXXXXXXX"); } ||
            die "failed to make a directory below $JITDUMPDIR"
        agent_options=dir=$(cd "$dir" && pwd -P)${agent_options:+,$agent_options}
    elif ! target_is_like_us; then
        target_make_staging
        agent_options=dir=$STAGING${agent_options:+,$agent_options}
    fi
    target_command "$agent_options" || exit 1
    target_status || die "the agent in process $TARGET does not answer"
    printf '%s\n' "$STATUS_LINES"
    # The dump is in it, when it is not in the agent's own place.
    [[ -z $STAGING || ($agent_options != *"dir=$STAGING"* && $TARGET_AGENT != "$STAGING"/*) ]] || staging_keep
}
