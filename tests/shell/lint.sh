#!/usr/bin/env bash
# lint.sh shellcheck|clang-format|clang-tidy: how the project's own sources look.
set -euo pipefail
cd "${JDAGENT_SOURCE:-$(dirname "$0")/../..}"
# shellcheck source=tests/lib.sh
source tests/lib.sh

check=$1
command -v "$check" >/dev/null || skip "$check is not installed"

# Files that git would take: neither build directories nor what .gitignore names.
sources() {
    if git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git -c safe.directory='*' ls-files --cached --others --exclude-standard
    else
        find . -type f -not -path './build*' -printf '%P\n'
    fi | while IFS= read -r file; do [[ -f $file ]] && printf '%s\n' "$file"; done
}

# Of the files named on standard input, "KEY FILE": a hash of what clang-tidy has to judge there, the
# file, the project's headers that it includes, the checks and the program's version.
analyzed_keys() {
    local version file command
    version=$(clang-tidy --version | grep -o 'version [0-9]*')
    while IFS= read -r file; do
        command=$(grep -F -- "-c $file\"" "$build/compile_commands.json" | head -n 1 | sed 's/^ *"command": "//; s/ -o .*//')
        # Its flags are the project's own.
        # shellcheck disable=SC2086
        printf '%s %s\n' "$({
            echo "$version"
            cat .clang-tidy
            ${command//-Werror/} -MM "$file" | tr -s ' \\\n' '\n' | sed -n "s|^$PWD/||p" | sort -u |
                while IFS= read -r header; do echo "$header"; cat "$header"; done
        } | sha256sum | cut -c 1-32)" "$file"
    done
}

case $check in
shellcheck)
    mapfile -t files < <(sources | while IFS= read -r file; do
        case $file in
        *.sh | *.bash) echo "$file" ;;
        *.*) ;;
        *) ! head -n 1 "$file" | grep -aqE '^#!.*(ba)?sh' || echo "$file" ;;
        esac
    done)
    # SC2119, SC2120: functions may have optional arguments.
    shellcheck -x -P SCRIPTDIR -e SC2119,SC2120 "${files[@]}"
    ;;
clang-format)
    mapfile -t files < <(sources | grep -E '\.[ch]$')
    clang-format --dry-run -Werror "${files[@]}"
    ;;
clang-tidy)
    # Only what the build compiles, and each once: a file without its flags cannot be judged. Nearly all
    # of the time, two to five seconds a file, goes to clang's analyzer of paths. So it is left out where
    # the same text, its headers included, has passed before (tests/analyzed.txt), and the tests' own
    # sources wait for a long run, which leaves out nothing.
    wanted=.
    [[ ${JDAGENT_LONG:-0} == 1 ]] || wanted="^$PWD/(agent|writer|jdtool|format)/"
    build=${JDAGENT_BUILD:-build}
    mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u | grep -E "$wanted")
    ((${#files[@]})) || skip "there is no compile_commands.json"
    new=() passed=()
    while IFS=' ' read -r key file; do
        if [[ ${JDAGENT_LONG:-0} != 1 ]] && grep -qsF "$key" tests/analyzed.txt; then
            passed+=("$file")
        else
            new+=("$file")
        fi
    done < <(printf '%s\n' "${files[@]}" | analyzed_keys)
    tidy() {
        local options=("$1")
        shift
        (($# == 0)) || printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet "${options[@]}" 2>&1 |
            sed -E '/^[0-9]+ warnings? generated\.$/d'
    }
    tidy "--checks=-clang-analyzer-*" ${passed[@]+"${passed[@]}"}
    tidy --checks= ${new[@]+"${new[@]}"}
    # To be put into tests/analyzed.txt by whoever wants the next run to be short.
    printf '%s\n' "${files[@]}" | analyzed_keys | sed "s|$PWD/||" >"$build/analyzed.txt"
    printf 'the analyzer looked at %d files that are new or changed\n' "${#new[@]}"
    ;;
*)
    echo "lint.sh: unknown check: $check" >&2
    exit 2
    ;;
esac
printf '%s: %d files\n' "$check" "${#files[@]}"
