#!/usr/bin/env bash
# lint.sh shellcheck|clang-format|clang-tidy: how the project's own sources look.
set -euo pipefail
cd "${JDAGENT_SOURCE:-$(dirname "$0")/../..}"
# shellcheck source=tests/lib.sh
source tests/lib.sh

check=$1
build=${JDAGENT_BUILD:-build}
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
# file, the project's headers that it includes (as the build has noted them, which takes no compiler), the checks
# and the program's version.
analyzed_keys() {
    local version file directory command object
    version=$(clang-tidy --version | grep -o 'version [0-9]*')
    while IFS= read -r file; do
        { IFS= read -r directory && IFS= read -r command; } < <(grep -B 1 -m 1 -F -- "-c $file\"" "$build/compile_commands.json" |
            sed 's/^ *"[a-z]*": "//; s/",$//')
        object=${command##* -o }
        object=$directory/${object%% *}
        printf '%s %s\n' "$({
            echo "$version"
            cat .clang-tidy
            if [[ -e $object.d ]]; then
                cat "$object.d"
            else
                # Its flags are the project's own.
                # shellcheck disable=SC2086
                (cd "$directory" && ${command%% -o *} -MM "$file")
            fi | tr -s ' \\\n' '\n' | sed '/:$/d; /^$/d' | (cd "$directory" && xargs realpath -ms --relative-base="$OLDPWD") |
                grep -v '^/' | sort -u |
                xargs tail -v -n +1
        } | sha256sum | cut -c 1-32)" "${file#"$PWD/"}"
    done
}

# The same for shellcheck: of each of the scripts it, what it sources, and what that sources. Sourced files
# are found by their names without directories; two of one name both count.
shellchecked_keys() {
    local file sourced
    awk '
        FNR == 1 { name = FILENAME; sub(/.*\//, "", name); of[name] = of[name] " " FILENAME; files[++count] = FILENAME }
        /^ *(\.|source) / || /shellcheck source=/ {
            for (line = $0; match(line, /[A-Za-z0-9_-]+\.(sh|bash)/); line = substr(line, RSTART + RLENGTH))
                named[FILENAME] = named[FILENAME] " " substr(line, RSTART, RLENGTH)
        }
        function add(file,  names, paths, i, j, n, m) {
            if (file in seen) return
            seen[file]
            all = all " " file
            n = split(named[file], names, " ")
            for (i = 1; i <= n; i++) {
                m = split(of[names[i]], paths, " ")
                for (j = 1; j <= m; j++) add(paths[j])
            }
        }
        END { for (i = 1; i <= count; i++) { split("", seen); all = ""; add(files[i]); print all } }' "$@" |
        while read -r file sourced; do
            # No name of ours has a blank.
            # shellcheck disable=SC2086
            printf '%s %s\n' "$({
                shellcheck --version
                echo "${options[*]}"
                tail -n +1 "$file" $sourced
            } | sha256sum | cut -c 1-32)" "$file"
        done
}

# split_passed LIST: of the "KEY FILE" on standard input those files that LIST does not have as they are now, into
# `new`. What has passed as it is passes again; a long run takes nobody's word for it.
split_passed() {
    local key file
    new=()
    while IFS=' ' read -r key file; do
        [[ ${JDAGENT_LONG:-0} != 1 ]] && grep -qsxF "$key $file" "$1" || new+=("$file")
    done
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
    # SC2119, SC2120: functions may have optional arguments.
    options=(-x -P SCRIPTDIR -e SC2119 -e SC2120)
    keys=$(shellchecked_keys "${files[@]}")
    split_passed tests/shellchecked.txt <<<"$keys"
    ((${#new[@]} == 0)) || shellcheck "${options[@]}" "${new[@]}"
    [[ ! -d $build ]] || printf '%s\n' "$keys" >"$build/shellchecked.txt"
    printf '%d files are new or changed\n' "${#new[@]}"
    ;;
clang-format)
    mapfile -t files < <(sources | grep -E '\.[ch]$')
    clang-format --dry-run -Werror "${files[@]}"
    ;;
clang-tidy)
    # Only what the build compiles, and each once: a file without its flags cannot be judged. The tests' own
    # sources wait for a long run: clang's analyzer of paths takes two to five seconds a file.
    wanted=.
    [[ ${JDAGENT_LONG:-0} == 1 ]] || wanted="^$PWD/(agent|writer|jdtool|format)/"
    mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | sort -u | grep -E "$wanted")
    ((${#files[@]})) || skip "there is no compile_commands.json"
    keys=$(printf '%s\n' "${files[@]}" | analyzed_keys)
    split_passed tests/analyzed.txt <<<"$keys"
    ((${#new[@]} == 0)) || printf '%s\0' "${new[@]}" |
        xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet 2>&1 | sed -E '/^[0-9]+ warnings? generated\.$/d'
    printf '%s\n' "$keys" >"$build/analyzed.txt"
    printf '%d files are new or changed\n' "${#new[@]}"
    ;;
*)
    echo "lint.sh: unknown check: $check" >&2
    exit 2
    ;;
esac
printf '%s: %d files\n' "$check" "${#files[@]}"
