# shellcheck shell=bash
# The page that jdperf flame and jdperf diff make: scripts/flame/page.html with its scripts and data in
# it.

FLAME_LIB=${JDPERF_LIB%/*}/flame
FLAME_SCRIPTS=(data.js view.js graph.js strip.js heatmap.js main.js)

flame_title() {
    local command
    command=$(profile_get "$PROFILE" command)
    [[ $command ]] && command=${command//\'/} || command="process $(profile_get "$PROFILE" pid)"
    printf '%s' "${command:0:160}"
}

flame_about() {
    printf '%s at %s Hz, %s stacks, %s' "$(profile_get "$PROFILE" event)" "$(profile_get "$PROFILE" frequency)" \
        "$(profile_get "$PROFILE" stacks)" "$(profile_get "$PROFILE" created)"
}

# A graph of a profile that is not good misleads; it says so itself.
flame_note() {
    if [[ $(profile_get "$PROFILE" stacks) == none ]]; then
        printf 'This profile was recorded without stacks: each frame stands alone.'
        return
    fi
    profile_doubts "$PROFILE"
}

html_escape() {
    sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g' <<<"${1//[[:cntrl:]]/?}"
}

# flame_page TITLE ABOUT NOTE DATA NAME…: prints the page of one profile, or the difference of two.
flame_page() {
    local line title about note
    title=$(html_escape "$1") about=$(html_escape "$2") note=$(html_escape "$3")
    shift 3
    [[ -r $FLAME_LIB/page.html ]] || die "failed to find $FLAME_LIB/page.html: $JDPERF_MISSING"
    while IFS= read -r line; do
        case $line in
        @@scripts@@) (cd "$FLAME_LIB" && cat "${FLAME_SCRIPTS[@]}") ;;
        @@data@@)
            while (($#)); do
                printf '<script type="application/x-jdflame" data-title="%s">' "$(html_escape "$2")"
                cat "$1"
                printf '</script>\n'
                shift 2
            done
            ;;
        *)
            line=${line//@@title@@/"$title"}
            line=${line//@@about@@/"$about"}
            printf '%s\n' "${line//@@note@@/"$note"}"
            ;;
        esac
    done <"$FLAME_LIB/page.html"
}
