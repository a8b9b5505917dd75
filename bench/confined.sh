#!/usr/bin/env bash
# What it costs the start of `jdperf record` that others' data are read without rights: the time until the command begins
# and until all is done, with jdtool and with one that confines nobody, by turns; medians and quartiles in ms.
#
# usage: bench/confined.sh [ROUNDS]     JDAGENT_BUILD=build
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
rounds=${1:-30}
export JDAGENT_BUILD=${JDAGENT_BUILD:-$root/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$root/jdtool/confined/confined.c
compile=$(SOURCE=$source perl -0777 -ne '/"command": "([^"\n]*(?:\\"[^"\n]*)*?) -o \S+ -c \Q$ENV{SOURCE}\E"/ and print $1' "$JDAGENT_BUILD/compile_commands.json")
mkdir "$work/free"
ln -s "$JDAGENT_BUILD/libjdagent.so" "$work/free/"
(
    cd "$JDAGENT_BUILD/jdtool.d"
    eval "${compile//\\\"/\"} -DCANNOT_BE_CONFINED=1 -I'$(dirname "$source")' -o '$work/confined.o' -c '$source'"
    link=$(head -n 1 CMakeFiles/jdtool.dir/link.txt)
    eval "$(sed -E "s| -o \S+| $work/confined.o -o $work/free/jdtool|" <<<"$link")"
)
now() { date +%s%N; }
one() { # BUILD NAME
    local began ended
    began=$(now)
    JDAGENT_BUILD=$1 "$root/scripts/jdperf" record -o "$work/p" -- sh -c "date +%s%N >'$work/begun'" >"$work/log" 2>&1 || (($? == 3))
    ended=$(now)
    echo "$2-start $((($(<"$work/begun") - began) / 1000))" >>"$work/times"
    echo "$2-whole $(((ended - began) / 1000))" >>"$work/times"
    rm -rf "$work/p"
}
for ((round = 0; round < rounds; round++)); do
    one "$JDAGENT_BUILD" confined
    one "$work/free" free
done
for name in confined-start free-start confined-whole free-whole; do
    sed -n "s/^$name //p" "$work/times" | sort -n | awk -v name="$name" '{ t[NR] = $1 / 1000 }
        END { printf "%s\t%.1f\t(%.1f to %.1f)\n", name, t[int((NR + 1) / 2)], t[int((NR + 3) / 4)], t[int((3 * NR + 3) / 4)] }'
done
