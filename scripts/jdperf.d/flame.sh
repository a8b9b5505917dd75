# shellcheck shell=bash
# jdperf flame: a flame graph, one HTML file that needs no network.

# shellcheck source=scripts/jdperf.d/view.sh
. "$JDPERF_LIB/view.sh"

FLAME_LIB=${JDPERF_LIB%/*}/flame

flame_usage() {
    cat <<END
usage: jdperf flame [DIR] [-o FILE] [--title TEXT] [-- PERF-SCRIPT-OPTION…]

Draws a flame graph of the profile DIR (default: $JDPERF_DEFAULT_DIR) into
DIR/flamegraph.html or FILE: one file, with everything in it, for any browser.
Click zooms, search marks; colours tell compiled, inlined, interpreted, native
and kernel frames apart.

Options of perf script narrow it down, as -- --comm NAME or -- --tid N.
END
}

verb_flame() {
    local out='' title='' said
    read_options flame 'out -o --output' 'title --title' \
        '-- options of perf script stand behind --' : "$@"
    one_word flame profile
    view_profile "${WORDS[0]:-$JDPERF_DEFAULT_DIR}"
    out=${out:-$PROFILE/flamegraph.html}
    [[ -r $FLAME_LIB/page.html ]] || die "failed to find $FLAME_LIB/page.html: $JDPERF_MISSING"
    need_writable "$out"
    make_scratch
    if ! flame_data "${MORE[@]}" >"$SCRATCH/flame.json"; then
        said=$(view_complaint "$SCRATCH/flame.log")
        [[ -z $said ]] || wrong_usage "flame: perf script says: $said ($PERF script -h lists its options)"
        die "there are no samples to draw${MORE[*]:+ that match ${MORE[*]}}"
    fi
    flame_page "${title:-$(flame_title)}" >"$SCRATCH/flame.html"
    cat "$SCRATCH/flame.html" >"$out" || die "failed to write $out"
    say "flame graph of $(sed -n 's/.*"samples": \([0-9]*\).*/\1/p' "$SCRATCH/flame.json") samples: $out"
}

flame_title() {
    local command
    command=$(profile_get "$PROFILE" command)
    [[ $command ]] && command=${command//\'/} || command="process $(profile_get "$PROFILE" pid)"
    printf '%s' "${command:0:160}"
}

html_escape() {
    sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g' <<<"$1"
}

flame_data() {
    local unit event
    event=$(profile_get "$PROFILE" event)
    case $event in
    *clock*) unit=ns ;;
    *) unit=$event ;;
    esac
    printf '{\n"unit": "%s", "about": "%s", "note": "%s",\n' "$(flame_json "$unit")" \
        "$(flame_json "$event at $(profile_get "$PROFILE" frequency) Hz, $(profile_get "$PROFILE" stacks) stacks, $(profile_get "$PROFILE" created)")" \
        "$(flame_json "$(flame_note)")"
    cat <<'END'
"kinds": [
{"id": "root", "name": "all", "hue": 0, "saturation": 0, "light": 80},
{"id": "thread", "name": "thread", "hue": 220, "saturation": 12, "light": 78},
{"id": "compiled", "name": "compiled Java", "hue": 105, "saturation": 55, "light": 62},
{"id": "inlined", "name": "inlined Java", "hue": 178, "saturation": 52, "light": 64},
{"id": "interpreted", "name": "interpreted Java", "hue": 78, "saturation": 55, "light": 72},
{"id": "stub", "name": "JVM stub", "hue": 45, "saturation": 60, "light": 76},
{"id": "native", "name": "native (JVM, libraries)", "hue": 12, "saturation": 72, "light": 68},
{"id": "kernel", "name": "kernel", "hue": 32, "saturation": 85, "light": 62},
{"id": "unknown", "name": "no name", "hue": 0, "saturation": 0, "light": 66}
],
END
    view_perf script -F comm,tid,period,event,ip,sym,dso "$@" 2>"$SCRATCH/flame.log" |
        awk -f "$FLAME_LIB/fold.awk" || return
    printf '}\n'
}

flame_json() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '%s' "${text//</\\u003c}" | tr -d '\000-\037'
}

# A graph of stacks that do not reach their root misleads; it says so itself.
flame_note() {
    local card=$PROFILE/scorecard.json rooted
    [[ -r $card ]] || return 0
    rooted=$(sed -n 's/.*"rooted_share": \([0-9.]*\).*/\1/p' "$card")
    awk -v rooted="${rooted:-1}" -v stacks="$(profile_get "$PROFILE" stacks)" 'BEGIN {
        if (stacks == "none") print "This profile was recorded without stacks: each frame stands alone."
        else if (rooted < 0.9) printf "Only %.1f %% of the stacks reach the root of their thread: callers are missing below many frames. See jdperf record --stacks.\n", 100 * rooted
    }'
}

flame_page() {
    local line title
    title=$(html_escape "$1")
    while IFS= read -r line; do
        case $line in
        @@scripts@@) cat "$FLAME_LIB/d3-selection.min.js" "$FLAME_LIB/d3-flamegraph.min.js" ;;
        @@data@@) cat "$SCRATCH/flame.json" ;;
        *) printf '%s\n' "${line//@@title@@/"$title"}" ;;
        esac
    done <"$FLAME_LIB/page.html"
}
