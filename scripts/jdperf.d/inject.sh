# shellcheck shell=bash
# jdperf inject: perf.data and the dumps become perf.jit.data, in which generated code has names.

# shellcheck source=scripts/jdperf.d/perf.sh
. "$JDPERF_LIB/perf.sh"

INJECTOR=''

inject_usage() {
    cat <<END
usage: jdperf inject [DIR] [OPTION…] [-- JDTOOL-INJECT-OPTION…]

Names the generated code of a recording: DIR/perf.data and the dumps become
DIR/perf.jit.data. jdperf record does this by itself; repeat it to use other
options.

      --injector jdtool|perf  jdtool inject (default: one file for all code,
                      inlined frames, a scorecard) or perf inject --jit

Some options of jdtool inject: -- --leaf attributes self time to the innermost
inlined method, -- --inline off leaves out inlined methods.
END
}

verb_inject() {
    read_options inject 'INJECTOR --injector' '-- options of jdtool inject stand behind --' : "$@"
    one_word inject profile
    check_injector
    need_perf
    open_profile "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    [[ -r $PROFILE/perf.data ]] || die "this profile has no perf.data: it was discarded; record again"
    inject_profile "${MORE[@]}"
}

check_injector() {
    case $INJECTOR in
    '' | jdtool | perf) ;;
    *) wrong_usage "unknown injector: $INJECTOR (jdtool, perf)" ;;
    esac
}

# inject_profile [OPTION…]: makes PROFILE/perf.jit.data. 0, 1 when it could not, 3 when its scorecard
# is bad.
inject_profile() {
    local status=0 dumps=("$PROFILE"/jit-*.dump "$PROFILE"/jvm-*/jit-*.dump)
    inject_put_aside
    if [[ $INJECTOR == perf ]]; then
        inject_with_perf || return 1
    else
        need_tool
        "$JDPERF_TOOL" live inject "$PROFILE" "$@" || status=$?
        case $status in
        0 | 3) ;;
        2) exit 2 ;;
        *) return 1 ;;
        esac
        if ((status == 3 && ${#dumps[@]} == 0)) && [[ -d $PROFILE/before ]]; then
            die "the dumps of this profile are missing: its names are unchanged"
        fi
    fi
    rm -rf "$PROFILE/before"
    profile_set "$PROFILE" injector "${INJECTOR:-jdtool}"
    [[ $INJECTOR == perf ]] || profile_set "$PROFILE" source_root "$PROFILE/src"
    return "$status"
}

# What was made by an earlier injection comes back unless this one succeeds.
inject_put_aside() {
    local made
    inject_put_back
    made=("$PROFILE"/perf.jit* "$PROFILE"/jitted-*.so "$PROFILE"/scorecard.jso[n])
    [[ $INJECTOR == perf ]] || made+=("$PROFILE"/samples.save[d]) # perf makes none
    ((${#made[@]})) || return 0
    at_exit inject_put_back
    { mkdir "$PROFILE/before" && mv "${made[@]}" "$PROFILE/before/"; } || die "failed to write into $PROFILE"
}

inject_put_back() {
    [[ -d $PROFILE/before ]] || return 0
    rm -rf "$PROFILE"/perf.jit* "$PROFILE"/jitted-*.so "$PROFILE/scorecard.json"
    [[ ! -e $PROFILE/before/samples.saved ]] || rm -f "$PROFILE/samples.saved"
    mv "$PROFILE/before"/* "$PROFILE/" && rmdir "$PROFILE/before"
}

inject_with_perf() {
    say "naming generated code with perf inject --jit"
    perf_in_profile inject --jit -i "$PROFILE/perf.data" -o "$PROFILE/perf.jit.data" || {
        rm -f "$PROFILE/perf.jit.data"
        return 1
    }
}
