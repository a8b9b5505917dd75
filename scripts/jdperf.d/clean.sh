# shellcheck shell=bash
# jdperf clean: what sessions, kills and other tools left behind.

# shellcheck source=scripts/jdperf.d/leftovers.sh
. "$JDPERF_LIB/leftovers.sh"

clean_usage() {
    cat <<END
usage: jdperf clean [-n] [--all]

Removes what jdperf left behind: the directories it made in /tmp for JVMs of
other users and in containers, when the session is over (as root: everybody's,
and those in containers that run), and its own when it was killed. Profiles
(-o DIR) are left alone.

  -n, --dry-run       only list it
      --all           what others may still want, too: perf maps in /tmp and
                      dumps below ~/.debug/jit of JVMs that have ended, and
                      the files of perf inject --jit in ~/.debug
END
}

verb_clean() {
    local dry='' all='' path size total=0 count=0
    while (($#)); do
        case $1 in
        -n | --dry-run) dry=yes ;;
        --all) all=yes ;;
        -h | --help) clean_usage; return 0 ;;
        *) wrong_usage "clean: unknown argument: $1" ;;
        esac
        shift
    done
    while IFS= read -r -d '' path; do
        size=$(du -sk -- "$path" 2>/dev/null | cut -f 1) || continue # it has gone meanwhile
        if [[ $dry ]]; then
            printf 'would remove %s (%s)\n' "$path" "$(human_size $((${size:-0} * 1024)))"
        elif rm -rf -- "$path"; then
            printf 'removed %s (%s)\n' "$path" "$(human_size $((${size:-0} * 1024)))"
        else
            continue
        fi
        total=$((total + ${size:-0}))
        count=$((count + 1))
    done < <(
        leftover_staging
        leftover_scratch
        if [[ $all ]]; then
            leftover_maps
            leftover_dumps
            leftover_injected
        fi
    )
    if ((count)); then
        say "$count ${dry:+to remove, }$(human_size $((total * 1024)))"
    else
        say "nothing to clean"
    fi
}
