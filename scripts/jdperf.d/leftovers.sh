# shellcheck shell=bash
# What is left behind by sessions that ended badly, for clean and doctor. Each function prints paths,
# NUL-terminated.

# shellcheck source=scripts/jdperf.d/staging.sh
. "$JDPERF_LIB/staging.sh"

# Where staging may have been, in this and, for root, in all other mount namespaces, as we reach it;
# a directory that several namespaces share only once.
temporary_directories() {
    local pid namespace seen place found=("${STAGING_PLACES[@]}") other
    printf '%s\n' "${found[@]}"
    ((EUID == 0)) || return 0
    seen=" $(readlink /proc/self/ns/mnt)$(readlink /proc/self/root) "
    for pid in /proc/[0-9]*; do
        # A process may be chrooted in its namespace, too.
        namespace=$(readlink "$pid/ns/mnt" 2>/dev/null)$(readlink "$pid/root" 2>/dev/null) || continue
        [[ $seen != *" $namespace "* ]] || continue
        seen+="$namespace "
        for place in "${STAGING_PLACES[@]}"; do
            staging_is_place "$pid/root" "$place" || continue
            for other in "${found[@]}"; do
                [[ ! $pid/root$place -ef $other ]] || continue 2
            done
            found+=("$pid/root$place")
            printf '%s\n' "$pid/root$place"
        done
    done
}

# Whether some process has mapped a file below $1 (a path as that process sees it).
is_mapped() {
    grep -qsF -- " $1/" /proc/[0-9]*/maps 2>/dev/null
}

# Staging directories that no JVM writes a dump in any more.
leftover_staging() {
    local tmp path inside
    while IFS= read -r tmp; do
        for path in "$tmp"/jdperf-[0-9]*.????????; do
            [[ -d $path && ! -L $path && -O $path || $EUID -eq 0 ]] || continue
            inside=${path/#\/proc\/+([0-9])\/root/}
            # A chrooted process's maps have its root in front.
            grep -qsE " (/.*)?$inside/jit-[0-9]+\.dump\$" /proc/[0-9]*/maps 2>/dev/null || printf '%s\0' "$path"
        done
    done < <(temporary_directories)
}

# The temporary directories of jdperfs that were killed.
leftover_scratch() {
    local path pid
    for path in "${TMPDIR:-/tmp}"/jdperf.[0-9]*.????????; do
        pid=${path##*/jdperf.}
        pid=${pid%.*}
        [[ $pid =~ ^[0-9]+$ && -d $path && ! -L $path ]] || continue
        [[ -O $path || $EUID -eq 0 ]] || continue
        [[ -d /proc/$pid ]] || printf '%s\0' "$path"
    done
}

# Perf maps of processes that are gone. In a container's /tmp pids are the container's, so only maps
# on this side can be judged.
leftover_maps() {
    local path pid
    for path in /tmp/perf-[0-9]*.map; do
        pid=${path#/tmp/perf-}
        pid=${pid%.map}
        [[ $pid =~ ^[0-9]+$ && -f $path && ! -L $path ]] || continue
        [[ -O $path || $EUID -eq 0 ]] || continue
        [[ -d /proc/$pid ]] || printf '%s\0' "$path"
    done
}

# What perf inject --jit put into the build-id cache of the home directory: useless without the
# recording it was made for, and by the ten thousand.
leftover_injected() {
    [[ -d $HOME/.debug ]] || return 0
    find "$HOME/.debug" -name 'jitted-*.so' -prune -print0 2>/dev/null
}

# Dumps below ~/.debug/jit whose JVM has ended.
leftover_dumps() {
    local directory
    for directory in "${JITDUMPDIR:-$HOME}"/.debug/jit/java-jit-*; do
        [[ -d $directory && ! -L $directory ]] || continue
        is_mapped "$directory" || printf '%s\0' "$directory"
    done
}
