#!/usr/bin/env bash
# Manual pages and shell completions have every verb and every option. Each verb has a page of its own; what the
# documents name as a test is one, and what they link to is there.
set -euo pipefail
# shellcheck source=tests/lib.sh
source "$JDAGENT_SOURCE/tests/lib.sh"

failed=0
complain() {
    echo "FAILED: $*"
    failed=1
}

man=$JDAGENT_SOURCE/man
export PATH=$JDAGENT_SOURCE/scripts:$JDAGENT_BUILD:$PATH

# plain PAGE: without the fonts, and with dashes that can be searched for.
plain() {
    sed -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' -e 's/\\ / /g' "$man/$1"
}

# verbs PROGRAM: what it takes, not only what its help tells.
verbs() {
    if [ "$1" = jdperf ]; then
        sed -n "s/^JDPERF_VERBS='\(.*\)'/\1/p" "$JDAGENT_SOURCE/scripts/jdperf" | tr ' ' '\n'
    else
        jdtool --help | sed -n 's/^  jdtool \([a-z]*\) .*/\1/p'
    fi
}

# options PROGRAM VERB: those that its help has a line or a place in the usage for, but not perf's,
# which it mentions in passing.
options() {
    "$1" "$2" --help | awk '
        function tell(word) {
            gsub(/[][,]|=.*/, "", word)
            if (word ~ /^--?[A-Za-z]/) print word
        }
        /^usage:/ || /^ +jd(perf|tool) / { for (i = 1; i <= NF; i++) tell($i) }
        /^ +-/ && index($0, "-") <= 7 {
            for (i = 1; i <= NF && ($i ~ /^-/ || toupper($i) == $i || $i ~ /[|]/); i++) tell($i)
        }' | sort -u
}

# complete WORD...: what bash offers behind these words.
# shellcheck source=/dev/null
source "$JDAGENT_SOURCE/completion/jdperf"
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _jdagent "$1" "${!#}" "${@:$#-1:1}"
    printf '%s\n' "${COMPREPLY[@]}"
}

# zsh_words WORD...: what zsh offers behind these. Its completion system is for terminals: stubs of the functions
# that a completion calls print what they are given.
# shellcheck disable=SC2016,SC2317 # zsh's own; called by name
zsh_words() {
    zsh -f -c 'compadd() { [[ $1 == -a ]] && print -l -- ${(P)2} || print -l -- $@ }
        _describe() { print -l -- ${(P)2%%:*} }
        _files() { : }
        words=("$@") CURRENT=$# PREFIX=${@[-1]}
        source "$JDAGENT_SOURCE/completion/_jdperf"' zsh "$@"
}

# shellcheck disable=SC2317
fish_words() {
    fish --no-config -c "source '$JDAGENT_SOURCE/completion/jdperf.fish'; complete -C '$*'" | cut -f 1
}

helps=$(mktemp -d)
trap 'rm -rf "$helps"' EXIT

# The shells beside bash whose completion is looked at.
shells=()
! part "what zsh completes" command -v zsh || shells+=(zsh)
! part "what fish completes" command -v fish || shells+=(fish)

for program in jdperf jdtool; do
    page=$(plain "$program.1")
    mapfile -t all < <(verbs "$program")
    [ "${#all[@]}" -ge 6 ] || complain "$program has only the verbs ${all[*]}"
    offered=$(complete_words "$program" '')
    for verb in "${all[@]}"; do
        grep -qE "^\.SS $verb( |$)" <<<"$page" || complain "$program(1) has no section on $verb"
        grep -qx "$verb" <<<"$offered" || complain "the completion of $program does not offer $verb"
        section=$(awk -v verb="$verb" '/^\.S[SH] / { inside = $2 == verb } inside' <<<"$page")
        in_verb=$(complete_words "$program" "$verb" -)
        # zsh and fish offer the same.
        for shell in "${shells[@]}"; do
            grep -qx "$verb" < <("${shell}_words" "$program" '') || complain "$shell does not offer $program $verb"
            missing=$(comm -23 <(sort -u <<<"$in_verb") <("${shell}_words" "$program" "$verb" - | sort -u))
            [ -z "$missing" ] || complain "$shell does not offer $program $verb ${missing//$'\n'/ }"
        done
        "$program" "$verb" --help >"$helps/$program-$verb.help"
        # Made of the section by CMake (man/verb_pages.awk).
        own=$JDAGENT_BUILD/man/$program-$verb.1
        grep -qE "^$program\\\\-$verb \\\\- [a-z].* .*[A-Za-z]$" "$own" || complain "there is no page $program-$verb(1), or its NAME says nothing"
        while read -r option; do
            grep -qE -e "(^|[^-a-z])$option([^-a-z]|$)" <<<"$section" ||
                complain "$program(1) does not tell of $verb $option"
            grep -qx -e "$option" <<<"$in_verb" ||
                complain "the completion does not offer $program $verb $option"
        done < <(options "$program" "$verb")
    done
done

# Without a verb, options are record's.
for shell in complete "${shells[@]}"; do
    for word in '' 15390; do
        # shellcheck disable=SC2086 # none, or one
        grep -qx -e --off-cpu < <("${shell}_words" jdperf $word -) || complain "${shell/complete/bash} does not offer jdperf $word --off-cpu"
    done
done

# lint.prose judges the documents and the manual pages.
words=$(awk -f "$JDAGENT_SOURCE/tests/shell/prose.awk" "$JDAGENT_SOURCE/tests/prose.txt" "$helps"/*.help) || complain "$words"

page=$(plain libjdagent.7)
mapfile -t keys < <(sed -n '/^} table/,/^};/s/^    {"\([a-z-]*\)", .*/\1/p' "$JDAGENT_SOURCE/agent/session/options.c")
[ "${#keys[@]}" -ge 20 ] || complain "found only ${#keys[@]} options in options.c"
for key in "${keys[@]}"; do
    grep -qE -e "^\.B.*[^-a-z]$key([^-a-z]|$)" <<<"$page" || complain "libjdagent(7) does not tell of $key"
done
# The values of those that have a few words.
while read -r key values; do
    for value in ${values//,/ }; do
        grep -qE -e "^\.BR? $key.*[^-a-z]$value([^-a-z]|$)" <<<"$page" ||
            complain "libjdagent(7) does not tell of $key=$value"
    done
done < <(sed -n '/^} table/,/^};/s/^    {"\([a-z]*\)", "\([a-z, ]*\)[",].*/\1 \2/p' "$JDAGENT_SOURCE/agent/session/options.c" |
    grep -E ' (on|off|java|full|monotonic|jitdump),' | sed 's/joined by.*//')

# tests.md has every test (shell.features).
documents=("$JDAGENT_SOURCE"/*.md "$JDAGENT_SOURCE"/docs/*.md)
# shellcheck disable=SC2016 # Markdown's backquotes
while read -r name; do
    grep -qF "| \`$name\` |" "$JDAGENT_SOURCE/docs/tests.md" || complain "the documents tell of a test $name, which is not"
done < <(grep -hoE '`(java|shell|unit|fuzz|lint|sanitized|bench|mutants)\.[a-z_0-9]+`' "${documents[@]}" | tr -d '`' | sort -u)
for document in "${documents[@]}"; do
    while read -r link; do
        [ -e "$(dirname "$document")/$link" ] || complain "${document#"$JDAGENT_SOURCE"/} links to $link, which is not there"
    done < <(grep -oE '\]\([^)# ]+' "$document" | cut -c 3- | grep -v :// | sort -u)
done

# Who builds elsewhere than on Debian installs what README names.
while read -r library; do
    sed -n '/^On other distributions/,/^$/p' "$JDAGENT_SOURCE/README.md" | grep -qw "$library" || complain "README does not name $library, which the build needs"
done < <(sed -nE 's/^pkg_check_modules\([A-Z_]+ REQUIRED (IMPORTED_TARGET )?([a-z-]+)\).*/\2/p' "$JDAGENT_SOURCE/jdtool/CMakeLists.txt")

# On Debian quickstart.sh builds all that jdtool can: what it lacks is made up for by perf, which takes longer, and nobody hears of it.
if part "what quickstart.sh builds with" dpkg -S "$(command -v clang)"; then
    # shellcheck source=scripts/packages.sh
    . "$JDAGENT_SOURCE/scripts/packages.sh"
    mapfile -t files < <(sed -nE 's/^pkg_check_modules\(.* ([a-z-]+)\).*/\1/p' "$JDAGENT_SOURCE/jdtool/CMakeLists.txt" |
        while read -r library; do echo "$(pkg-config --variable=pcfiledir "$library")/$library.pc"; done)
    mapfile -t packages < <(dpkg -S "${files[@]}") # all at once: it reads every package's list
    ((${#packages[@]} == ${#files[@]})) || complain "of ${files[*]} only these are some package's: ${packages[*]}"
    for package in "${packages[@]%%:*}"; do
        [[ " ${PACKAGES_BUILD[*]} " == *" $package "* ]] || complain "quickstart.sh does not install $package, which jdtool is built with"
    done
    [[ " ${PACKAGES_BUILD[*]} " == *" clang "* ]] || complain "quickstart.sh does not install clang, which compiles what runs in the kernel"
fi

if part "how the manual pages are set" command -v groff; then
    for page in "$man"/*.[17] "$JDAGENT_BUILD"/man/*; do
        said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || complain "groff on $page: $said"
    done
fi
exit "$failed"
