#!/usr/bin/env bash
# Every test is for a feature and says what it shows, and docs/tests.md is the table of them.
# shellcheck source=tests/shell/lib.sh
source "$(dirname "$0")/lib.sh"

"$SOURCE/tests/features.sh" "$JDAGENT_BUILD" >tests.md 2>output || fail "tests without a feature"
if grep -E '^\| .* \| *\|$' tests.md >output; then fail "tests that do not say what they show"; fi
# A machine without clang or javac has fewer tests, never others.
if ! comm -13 <(sort "$SOURCE/docs/tests.md") <(sort tests.md) >output || [[ -s output ]]; then
    fail "docs/tests.md is not what tests/features.sh makes: tests/features.sh build > docs/tests.md"
fi
[[ $(wc -l <tests.md) -gt 100 ]] || fail "the table is short"
