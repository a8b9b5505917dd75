#!/usr/bin/env bash
# From a clone to a profile: installs what is missing, builds, records a Java program, shows it.
set -euo pipefail

usage() {
    cat <<END
usage: scripts/quickstart.sh [-- COMMAND…]

Installs the packages that are missing (as root), builds into build/, records
the sample program scripts/sample/Market.java, or COMMAND, and prints the top of
the report and the hottest method's machine code beside its source.
The profile stays in $profile for jdperf report and the other verbs.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
profile=quickstart.profile
jdperf=$root/scripts/jdperf
# shellcheck source=scripts/packages.sh
. "$root/scripts/packages.sh"

step() {
    printf '\n== %s\n' "$1"
}

case ${1:-} in
-h | --help) usage; exit 0 ;;
--) shift ;;
'') ;;
*) usage >&2; exit 2 ;;
esac

needed=("${PACKAGES_BUILD[@]}" "${PACKAGES_RUN[@]}")
jdk_present || needed+=("${PACKAGES_JDK[@]}")
packages_install "${needed[@]}" || exit 1

step "Building into $build"
mkdir -p "$build"
# The tests need more packages; a build directory that has them already keeps them.
if [[ ! -f $build/CMakeCache.txt ]]; then
    cmake -S "$root" -B "$build" -DJDAGENT_TESTS=OFF >"$build/quickstart.log" 2>&1 ||
        { tail -n 30 "$build/quickstart.log"; exit 1; }
fi
cmake --build "$build" -j "$(nproc)" >"$build/quickstart.log" 2>&1 ||
    { tail -n 30 "$build/quickstart.log"; exit 1; }
echo "built $build/libjdagent.so and $build/jdtool"

sources=()
if (($# == 0)); then
    javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac
    "$javac" -d "$build/sample" "$root/scripts/sample/Market.java"
    set -- "${JAVA_HOME:+$JAVA_HOME/bin/}java" -cp "$build/sample" Market
    sources=(--source-path "$root/scripts/sample")
fi

step "Recording: $*"
status=0
"$jdperf" record -o "$profile" -- "$@" || status=$?
((status == 0 || status == 3)) || exit "$status"

step "Where the time went, by method: jdperf report $profile"
"$jdperf" report "$profile" --limit 12

step "The same by source line: jdperf report $profile --lines"
"$jdperf" report "$profile" --lines --limit 12

# The hottest method that has a package or class in front, so not a stub and not native code.
hottest=$(COLUMNS=1000 "$jdperf" report "$profile" |
    sed -n 's/^ *[0-9.]*% *[0-9.]*%  \([[:alnum:]_$.]*\.[[:alnum:]_$<>]*(.*)\) .*$/\1/p' | sed -n 1p)
if [[ $hottest ]]; then
    step "Its hottest code: jdperf annotate $profile '$hottest'"
    # The full listing is long: what lies around the line with most samples.
    "$jdperf" annotate "$profile" "$hottest" "${sources[@]}" 2>/dev/null | awk '
        { line[NR] = $0 }
        NR < 3 { print }
        $1 + 0 > most { most = $1 + 0; at = NR }
        END { for (n = at - 14; n <= at + 8; n++) if (n > 2 && n in line) print line[n] }' | cut -c 1-120
fi

step "A flame graph: jdperf flame $profile"
"$jdperf" flame "$profile"

step "Done"
echo "The profile is in $profile. Go on with:"
echo "    $jdperf report $profile"
echo "    $jdperf annotate $profile METHOD"
exit "$status"
