# shellcheck shell=bash
# jdperf inject: perf.data and the dumps become perf.jit.data, in which generated code has names.

# shellcheck source=scripts/jdperf.d/perf.sh
. "$JDPERF_LIB/perf.sh"

INJECTOR=''

inject_usage() {
    cat <<END
usage: jdperf inject [DIR] [OPTION…] [-- JDTOOL-INJECT-OPTION…]

Names the generated code of a recording: DIR/perf.data and the dumps become
DIR/perf.jit.data. jdperf record does this by itself; do it again to get it
another way.

      --injector jdtool|perf  jdtool inject (default: one file for all code,
                      inlined frames, a scorecard) or perf inject --jit

Of jdtool inject's options (see jdtool inject --help) -- --leaf gives self time
to the innermost inlined method, -- --inline off leaves inlined methods out.
END
}

verb_inject() {
    read_options inject 'INJECTOR --injector' '-- options of jdtool inject stand behind --' : "$@"
    one_word inject profile
    check_injector
    need_perf
    open_profile "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    [[ -r $PROFILE/perf.data ]] || die "the raw recording of this profile was discarded; record again"
    inject_profile "${MORE[@]}"
}

check_injector() {
    case $INJECTOR in
    '' | jdtool | perf) ;;
    *) wrong_usage "unknown injector: $INJECTOR (jdtool, perf)" ;;
    esac
}

jdtool_has() {
    [[ -x $JDPERF_TOOL ]] && "$JDPERF_TOOL" --help 2>&1 | has -E "(^|[[:space:]])$1([[:space:]]|\$)"
}

# inject_profile [OPTION…]: makes PROFILE/perf.jit.data. 0, 1 when it could not, 3 when its scorecard
# is bad.
inject_profile() {
    local injector=${INJECTOR:-jdtool} status=0 dumps=("$PROFILE"/jit-*.dump)
    # In a recording of the whole machine they are where the JVMs were told to put them.
    if ((${#dumps[@]} == 0)) && [[ ! -s $PROFILE/perf.jit.data && $(profile_get "$PROFILE" command) ]]; then
        say "there is no dump in $PROFILE: no JVM took the agent up, so no generated code can be named"
        say "  if it was a JVM that ran: a script that sets JAVA_TOOL_OPTIONS has to keep what is in it (JAVA_TOOL_OPTIONS=\"\$JAVA_TOOL_OPTIONS …\"), and one that clears its environment to keep the variable; a daemon that runs already (gradle) is recorded with jdperf record -p PID"
    fi
    inject_put_aside
    if [[ $injector == jdtool ]]; then
        if jdtool_has inject; then
            inject_with_jdtool "$@" || status=$?
            if ((status == 3 && ${#dumps[@]} == 0)) && [[ -d $PROFILE/before ]]; then
                die "the dumps of this profile are gone: it stays as it was named before"
            fi
            ((status == 1)) || {
                rm -rf "$PROFILE/before"
                profile_set "$PROFILE" injector jdtool
                profile_set "$PROFILE" source_root "$PROFILE/src"
                return "$status"
            }
            if [[ $PROGRESS_OUTPUT == *"No space left"* ]]; then
                say "the disk is full: make room, then jdperf inject $PROFILE"
                return 1
            fi
            say "falling back to perf inject --jit"
        else
            say "this jdtool cannot inject: using perf inject --jit"
        fi
    fi
    inject_with_perf || return 1
    rm -rf "$PROFILE/before"
    profile_set "$PROFILE" injector perf
}

# What was made by an earlier injection comes back unless this one succeeds.
inject_put_aside() {
    local made
    inject_put_back
    made=("$PROFILE"/perf.jit* "$PROFILE"/jitted-*.so "$PROFILE"/scorecard.jso[n])
    ((${#made[@]})) || return 0
    at_exit inject_put_back
    { mkdir "$PROFILE/before" && mv "${made[@]}" "$PROFILE/before/"; } || die "failed to write into $PROFILE"
}

inject_put_back() {
    [[ -d $PROFILE/before ]] || return 0
    rm -rf "$PROFILE"/perf.jit* "$PROFILE"/jitted-*.so "$PROFILE/scorecard.json"
    mv "$PROFILE/before"/* "$PROFILE/" && rmdir "$PROFILE/before"
}

inject_with_perf() {
    with_progress "naming generated code with perf inject --jit" \
        perf_in_profile inject --jit -i "$PROFILE/perf.data" -o "$PROFILE/perf.jit.data" || {
        rm -f "$PROFILE/perf.jit.data"
        return 1
    }
}

inject_with_jdtool() {
    local dumps=("$PROFILE"/jit-*.dump) status=0
    mkdir -p "$PROFILE/src"
    with_progress "naming generated code" \
        "$JDPERF_TOOL" inject -i "$PROFILE/perf.data" -o "$PROFILE/perf.jit.data" \
        "${dumps[@]/#/--dump=}" \
        --source-path "$PROFILE/src" --buildid-dir "$PROFILE/buildid" --scorecard "$PROFILE/scorecard.json" "$@" || status=$?
    ((status != 2)) || exit 2
    if ((status)); then
        # There is a result all the same when no dump could be used: perf could not use them either.
        [[ ! -s $PROFILE/perf.jit.data ]] || return 3
        rm -f "$PROFILE/scorecard.json"
        return 1
    fi
    inject_cache_images
    printf '%s\n' "$PROGRESS_OUTPUT" | sed 's/^/    /' >&2
    if grep -q '"verdict": "bad"' "$PROFILE/scorecard.json"; then
        say "the profile is bad: too many frames without a name, or too few stacks that reach their root; the scorecard above tells why"
        return 3
    fi
}

# Links the images into the profile's build-id directory. perf looks for a file of a JVM that lives
# in a container in the container, but for a build-id here.
inject_cache_images() {
    local image images=("$PROFILE"/perf.jit-*.so)
    for image in "${images[@]}"; do
        perf_in_profile buildid-cache --add "$image" >/dev/null 2>&1 || :
    done
}
