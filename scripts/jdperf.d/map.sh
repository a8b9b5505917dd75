# shellcheck shell=bash
# jdperf map: a perf map for tools that read nothing else.

# shellcheck source=scripts/jdperf.d/target.sh
. "$JDPERF_LIB/target.sh"

map_usage() {
    cat <<END
usage: jdperf map PID [--follow] [--agent-options LIST]

Writes the perf map of a JVM, /tmp/perf-PID.map, which perf top, perf report,
bcc and bpftrace name generated code by. A map has no times: it is right for the
moment, wrong for code that came and went.

      --follow        keep it up to date until Ctrl-C
      --agent-options LIST  names=…, unfold=…, suffixes=on and other options
                      for the agent (default: \$PERF_MAP_OPTIONS)

For a JVM in a container the map is written where the container's /tmp is, and
copied to the host's /tmp under the host's pid. perf top and perf report as root
need -f (--force) for a map that belongs to another user.
END
}

verb_map() {
    local follow='' agent_options=${PERF_MAP_OPTIONS:-}
    read_options map 'follow=yes --follow' 'agent_options --agent-options' : "$@"
    one_word map JVM
    [[ ${WORDS[0]:-} ]] || wrong_usage "map: of which JVM? (jdperf map PID)"
    # perf-map-agent's PERF_MAP_OPTIONS are parted by blanks.
    agent_options=${agent_options//+([[:space:]])/,}
    target_find "${WORDS[0]}"
    target_status || die "the agent in process $TARGET does not answer"
    MAP=$TARGET_ROOT/tmp/perf-$TARGET_NSPID.map
    MAP_HERE=/tmp/perf-$TARGET.map
    if [[ $STATUS_LINES == *"state=running"*mode=map* ]]; then
        map_of_running_session
    elif [[ $STATUS_LINES == *state=running* ]]; then
        map_of_dump
    else
        map_of_own_session
    fi
}

# Brings the map to where tools on this side look for it.
map_publish() {
    [[ $TARGET_ROOT && -f $MAP && ! -L $MAP ]] || return 0
    make_scratch
    cp "$MAP" "$SCRATCH/map" && mv "$SCRATCH/map" "$MAP_HERE"
}

map_tell() {
    map_publish
    say "$(wc -l <"$MAP") names in $MAP_HERE"
}

# Keeps the map on this side fresh until Ctrl-C or the JVM's end.
map_follow() {
    local stopped=''
    trap 'stopped=yes' INT TERM HUP
    say "keeping it up to date; Ctrl-C ends that"
    while [[ -z $stopped ]] && target_is_jvm "$TARGET"; do
        sleep 1 || :
        "$@" || break
    done
    trap - INT TERM HUP
}

map_of_own_session() {
    target_announce_warning
    target_choose_agent
    target_command "mode=map${agent_options:+,$agent_options}" || exit 1
    map_tell
    [[ -z $follow ]] || map_follow map_publish
    ! target_is_jvm "$TARGET" || target_command stop || :
    map_publish
}

map_of_running_session() {
    say "a session in process $TARGET keeps the map already"
    map_tell
    [[ -z $follow ]] || map_follow map_publish
}

# A session that writes a dump cannot be joined by another; its dump holds all that a map needs.
map_of_dump() {
    DUMP=$TARGET_ROOT$(target_dump)
    [[ -r $DUMP ]] || die "the session in process $TARGET writes neither a map nor a dump: jdperf stop $TARGET first"
    say "a session runs in process $TARGET: the map is made from its dump"
    map_from_dump || die "failed to make a map of $DUMP"
    say "$(wc -l <"$MAP_HERE") names in $MAP_HERE"
    [[ -z $follow ]] || map_follow map_from_dump
}

map_from_dump() {
    make_scratch
    "$JDPERF_TOOL" map "$DUMP" >"$SCRATCH/map" || return 1
    [[ ! -L $MAP_HERE ]] && cat "$SCRATCH/map" >"$MAP_HERE"
}
