#!/usr/bin/env bash
# Every test belongs to a feature and says what it checks, and docs/tests.md lists them all.
# shellcheck source=tests/shell/lib.sh
source "$(dirname "$0")/lib.sh"

"$SOURCE/tests/features.sh" "$JDAGENT_BUILD" >tests.md 2>output || fail "tests without a feature"
if grep -E '^\| .* \| *\|$' tests.md >output; then fail "tests that do not say what they show"; fi
# A machine without clang or javac has fewer tests, never others.
if ! comm -13 <(sort "$SOURCE/docs/tests.md") <(sort tests.md) >output || [[ -s output ]]; then
    fail "docs/tests.md is not what tests/features.sh makes: tests/features.sh build > docs/tests.md"
fi
[[ $(wc -l <tests.md) -gt 100 ]] || fail "the table is short"

# ways REGEX: each way through its groups, as regular expressions without any.
ways() {
    local before words after word
    if [[ $1 =~ ^(.*)\(([^()]*)\)(.*)$ ]]; then
        before=${BASH_REMATCH[1]} words=${BASH_REMATCH[2]} after=${BASH_REMATCH[3]}
        IFS='|' read -ra words <<<"$words"
        for word in "${words[@]}"; do ways "$before$word$after"; done
    else
        tr '|' '\n' <<<"$1"
    fi
}

# No name in the list is that of a test that has gone. The documents know them all, also those that this machine lacks.
# shellcheck disable=SC2016
{ sed -n 's/^| `\([^`]*\)` .*/\1/p' "$SOURCE/docs/tests.md"; (cd "$SOURCE/java-tests" && printf 'java.%s\n' *.sh | sed 's/\.sh$//'); } >tests
while IFS=$'\t' read -r feature pattern; do
    while read -r way; do
        grep -qE "^$way\$" tests || fail "tests/features.txt, $feature: there is no test $way"
    done < <(ways "${pattern//[\^\$]/}" | sort -u)
done < <(grep -vE '^(#|$)' "$SOURCE/tests/features.txt")
