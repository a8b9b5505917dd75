#!/usr/bin/env bash
# features.sh BUILD: lists the tests of each feature as Markdown (docs/tests.md). What a test checks is the first
# sentence of its file's first comment. Ends with 1, and names them, if tests belong to no feature.
set -euo pipefail
build=${1:?usage: features.sh BUILD}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)

# A Java test runs for every JDK, and is one here.
mapfile -t tests < <(cd "$build" && ctest -N | sed -n 's/^ *Test *#[0-9]*: //p' |
    sed -E 's/^(java\.[a-z_0-9]*)\..*/\1/' | sort -u)

# The file that a test is.
source_of() {
    case $1 in
    unit.*) echo "tests/${1#unit.}.c" ;;
    java.recording_removed) echo java-tests/recording.sh ;;
    java.*) echo "java-tests/${1#java.}.sh" ;;
    lint.*) echo tests/shell/lint.sh ;;
    sanitized.*) echo tests/sanitized.sh ;;
    shell.*) echo "tests/shell/${1#shell.}.sh" ;;
    fuzz.*) echo "tests/fuzz/${1#fuzz.}_fuzzer.c" ;;
    bench.*) echo bench/run.sh ;;
    mutants.*) echo scripts/mutants.sh ;;
    esac
}

# The first sentence of the first comment of a file.
says() {
    awk '
        NR == 1 && /^#!/ { next }
        FILENAME ~ /\.sh$/ { if (/^# shellcheck/) next; if (!/^#/) exit; sub(/^# ?/, ""); text = text " " $0; next }
        NR == 1 && !/^\/\*/ { exit }
        { done = /\*\//; gsub(/^ ?\/?\*+\/?|\*\/$/, ""); text = text " " $0; if (done) exit }
        END {
            gsub(/  +/, " ", text); sub(/^ /, "", text)
            if (match(text, /[.;] /)) text = substr(text, 1, RSTART - 1)
            sub(/[.:;] *$/, "", text); gsub(/\|/, "\\|", text)
            print text
        }' "$root/$1"
}

declare -A seen=()
echo "# Tests by feature"
echo
echo "\`ctest -R NAME\` in the build directory runs one test. Tests named \`java.\` run once for each JDK under /usr/lib/jvm;"
echo "those in which JDKs do not differ run for one of them, and for all with \`scripts/test.sh --long\`."
echo "To update this page after changing \`tests/features.txt\` or a test's first comment: \`tests/features.sh build > docs/tests.md\`."
while IFS=$'\t' read -r feature pattern; do
    rows=''
    for test in "${tests[@]}"; do
        [[ $test =~ $pattern ]] || continue
        seen[$test]=1
        file=$(source_of "$test")
        rows+="| \`$test\` | [$file](../$file) | $(says "$file") |"$'\n'
    done
    [[ -n $rows ]] || continue
    printf '\n## %s\n\n| test | file | checks |\n|---|---|---|\n%s' "$feature" "$rows"
done < <(grep -vE '^(#|$)' "$here/features.txt")

echo
cat "$here/mutants.md"

status=0
for test in "${tests[@]}"; do
    [[ -n ${seen[$test]:-} ]] || { echo "features.sh: $test belongs to no feature (tests/features.txt)" >&2; status=1; }
done
exit $status
