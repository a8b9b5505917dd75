#!/usr/bin/env bash
# features.sh BUILD: which test is for which feature, and what it shows, as Markdown (docs/tests.md). What
# a test shows is its first comment. Ends with 1, and names them, when tests are for no feature.
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
echo "# Which test is for which feature"
echo
echo "Made by \`tests/features.sh build > docs/tests.md\` from \`tests/features.txt\`. \`ctest -R NAME\` runs one; \`java.\`"
echo "tests run once for each JDK under /usr/lib/jvm."
while IFS=$'\t' read -r feature pattern; do
    rows=''
    for test in "${tests[@]}"; do
        [[ $test =~ $pattern ]] || continue
        seen[$test]=1
        file=$(source_of "$test")
        rows+="| \`$test\` | [$file](../$file) | $(says "$file") |"$'\n'
    done
    [[ -n $rows ]] || continue
    printf '\n## %s\n\n| test | file | what it shows |\n|---|---|---|\n%s' "$feature" "$rows"
done < <(grep -vE '^(#|$)' "$here/features.txt")

echo
cat "$here/mutants.md"

status=0
for test in "${tests[@]}"; do
    [[ -n ${seen[$test]:-} ]] || { echo "features.sh: $test is for no feature (tests/features.txt)" >&2; status=1; }
done
exit $status
