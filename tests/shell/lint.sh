#!/usr/bin/env bash
# Checks the style of sources and documents. usage: lint.sh shellcheck|clang-format|clang-tidy|includes|prose
set -euo pipefail
cd "${JDAGENT_SOURCE:-$(dirname "$0")/../..}"
# shellcheck source=tests/lib.sh
source tests/lib.sh

check=$1
build=${JDAGENT_BUILD:-build}
[[ $check == prose || $check == includes ]] || command -v "$check" >/dev/null || skip "$check is not installed"

# Files that git would take: neither build directories nor what .gitignore names.
sources() {
    if git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -c safe.directory='*' ls-files --cached --others --exclude-standard
    else
        find . -type f -not -path './build*' -printf '%P\n'
    fi | while IFS= read -r file; do [[ -f $file ]] && printf '%s\n' "$file"; done
}

# Versions of LLVM differ in what they would have: Debian 12's is the one that judges.
case $check in
clang-*)
    version=$("$check" --version | grep -o 'version [0-9]*')
    [[ $version == 'version 14' ]] || skip "$check is $version; the sources are judged by 14, Debian 12's"
    ;;
esac

case $check in
shellcheck)
    mapfile -t files < <(sources | while IFS= read -r file; do
        case $file in
        *.sh | *.bash) echo "$file" ;;
        *.*) ;;
        *) ! head -n 1 "$file" | grep -aqE '^#!.*(ba)?sh' || echo "$file" ;;
        esac
    done)
    # A hundred scripts source one of three libraries, and shellcheck would look into it a hundred times: they are judged
    # with an outline of it, in a copy of the scripts. SC2119, SC2120: functions may have optional arguments.
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp --parents java-tests/.shellcheckrc "${files[@]}" "$copy"
    judge() { printf '%s\0' "$@" | xargs -0 -n 8 -P "$(nproc)" shellcheck -x -P SCRIPTDIR -e SC2119 -e SC2120; }
    # outline FILE…: sets and reads the variables that they set and read, but for those of their functions.
    outline() {
        awk '{
                sub(/^[ \t]*#.*/, ""); line = $0
                if (line ~ /^}/) split("", own)
                if (line ~ /^ *local /) { gsub(/=("[^"]*"|[^ ]*)/, "", line); n = split(line, word, " "); for (i = 2; i <= n; i++) own[word[i]] }
                while (match(line, /(^|[ ;(])[A-Za-z_][A-Za-z_0-9]*\+?=\(?/)) {
                    name = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
                    if (name ~ /\($/) array[letters(name)]
                    name = letters(name)
                    if (!(name in own)) set[name]
                }
                for (line = $0; match(line, /\$\{?[#!]?[A-Za-z_][A-Za-z_0-9]*/); line = substr(line, RSTART + RLENGTH))
                    got[letters(substr(line, RSTART, RLENGTH))]
            }
            function letters(text) { gsub(/[^A-Za-z_0-9]/, "", text); return text }
            END {
                print "#!/usr/bin/env bash\nset -e"
                for (name in set) print name "=" (name in array ? "(\"$@\")" : "$*")
                for (name in got) if (name in set) print ": \"${" name (name in array ? "[@]" : "") "}\""
            }' "$@"
    }
    libraries=(tests/lib.sh tests/shell/lib.sh java-tests/lib.sh)
    judge "${libraries[@]}"
    for library in "${libraries[@]}"; do outline tests/lib.sh "$library" >"$copy/$library"; done
    mapfile -t others < <(printf '%s\n' "${files[@]}" | grep -vxF "$(printf '%s\n' "${libraries[@]}")")
    cd "$copy"
    judge "${others[@]}"
    # The check finds what it is for.
    { head -n 4 tests/shell/jdperf_arguments.sh && echo "echo \"\$nobody_sets_it\""; } >tests/shell/spoilt.sh
    ! judge tests/shell/spoilt.sh >/dev/null || { echo "a variable that nobody sets is not found"; exit 1; }
    ;;
clang-format)
    mapfile -t files < <(sources | grep -E '\.[ch]$')
    clang-format --dry-run -Werror "${files[@]}"
    ;;
clang-tidy)
    # Only what the build compiles, and each once: a file without its flags cannot be judged. clang's analyzer of
    # paths takes two to five seconds a file, thirty times what the checks take, so it waits for a long run.
    analyzer='-clang-analyzer-*'
    [[ ${JDAGENT_LONG:-0} != 1 ]] || analyzer=
    mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u |
        grep -E "^$PWD/(agent|writer|jdtool|format|hotspot)/")
    ((${#files[@]})) || skip "there is no compile_commands.json"
    printf '%s\0' "${files[@]}" |
        xargs -0 -n 8 -P "$(nproc)" clang-tidy -p "$build" --quiet --extra-arg=-Wno-ignored-optimization-argument ${analyzer:+"--checks=$analyzer"} 2>&1 |
        sed -E '/^[0-9]+ warnings? generated\.$/d'
    ;;
includes)
    # No room of jdtool includes one above it; rooms of one floor may.
    floors='base; perf jitdump objects confined; unwind sampler walk events; resolve; profile; images exports score; pipeline; live record watch view compare doctor inspect look top'
    mapfile -t files < <(sources | grep -E '^jdtool/[a-z]+/.*\.[ch]$')
    # upward: the lines "FILE ROOM" of includes that go up.
    upward() {
        grep -HoE '^#include "jdtool/[a-z]+/' "$@" | awk -F '[:/"]' -v floors="$floors" '
            BEGIN {
                count = split(floors, list, "; ")
                for (i = 1; i <= count; i++) { rooms = split(list[i], names, " "); for (k = 1; k <= rooms; k++) floor[names[k]] = i }
            }
            !($(NF - 1) in floor) { print $(NF - 1) " is on no floor"; next }
            { from = $0; sub(/:.*/, "", from); room = from; sub(/.*jdtool\//, "", room); sub(/\/.*/, "", room) }
            floor[$(NF - 1)] > floor[room] { print from " jdtool/" $(NF - 1) }' | sort -u
    }
    up=$(upward "${files[@]}")
    [[ -z $up ]] || { printf '%s\n' "lint.sh: includes that go up:" "$up"; exit 1; }
    # What reads HotSpot's structures knows no JVMTI: from outside of a JVM there is none.
    ! grep -nE '^#include <(jni|jvmti|jvmticmlr)\.h>' {agent/,}hotspot/*.[ch] || exit 1
    ! grep -nE '^#include "(agent|jdtool)/' {agent/,}hotspot/*.[ch] | grep -v '"agent/hotspot/' || exit 1
    # The check finds what it is for.
    spoilt=$(mktemp -d)
    trap 'rm -rf "$spoilt"' EXIT
    mkdir -p "$spoilt/jdtool/base"
    echo '#include "jdtool/perf/perf_data.h"' >"$spoilt/jdtool/base/up.h"
    [[ $(upward "$spoilt/jdtool/base/up.h" "${files[0]}" | wc -l) == 1 ]] || { echo "an include that goes up is not found"; exit 1; }
    ;;
prose)
    # vale's package fetches its binary from elsewhere, proselint takes a minute: the rules are our own.
    mapfile -t files < <(sources | grep -E '^([A-Z]+|docs/[a-z-]+)\.md$|^man/')
    awk -f tests/shell/prose.awk tests/prose.txt "${files[@]}"
    # The rules find what they are for.
    spoilt=$(mktemp -d)
    trap 'rm -rf "$spoilt"' EXIT
    printf '%s\n\n' 'The doings of the JVM.' 'What it costs is here.' "$(printf 'word %.0s' {1..40})." >"$spoilt/spoilt.md"
    [[ $(awk -f tests/shell/prose.awk tests/prose.txt "$spoilt/spoilt.md" | wc -l) == 3 ]] || { echo "the rules of tests/prose.txt find nothing"; exit 1; }
    ;;
*)
    echo "lint.sh: unknown check: $check" >&2
    exit 2
    ;;
esac
printf '%s: %d files\n' "$check" "${#files[@]}"
