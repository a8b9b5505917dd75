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
    # Only what the build compiles, and each once: a file without its flags cannot be judged. It takes
    # some two seconds a file, so the tests' own sources wait for a long run.
    wanted=.
    [[ ${JDAGENT_LONG:-0} == 1 ]] || wanted="^$PWD/(agent|writer|jdtool|format)/"
    mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' \
        "${JDAGENT_BUILD:-build}/compile_commands.json" | sort -u | grep -E "$wanted")
    ((${#files[@]})) || skip "there is no compile_commands.json"
    printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" \
        clang-tidy -p "${JDAGENT_BUILD:-build}" --quiet 2>&1 | sed -E '/^[0-9]+ warnings? generated\.$/d'
    ;;
*)
    echo "lint.sh: unknown check: $check" >&2
    exit 2
    ;;
esac
printf '%s: %d files\n' "$check" "${#files[@]}"
