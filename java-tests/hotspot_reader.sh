#!/usr/bin/env bash
# KDAB hotspot's parser shows the same frames as perf script, and a name for every frame in generated code.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
parser=
for candidate in /usr/lib/*/libexec/hotspot-perfparser /usr/libexec/hotspot-perfparser; do
    [ ! -x "$candidate" ] || parser=$candidate
done
[ -n "$parser" ] || skip "KDAB hotspot is not installed (Debian: hotspot)"
compile

# judge NAME PERF-OPTIONS -- COMMAND
judge() {
    local name=$1
    local dir=$scratch/$name
    shift
    mkdir -p "$dir"
    JAVA_TOOL_OPTIONS="-XX:+PreserveFramePointer -agentpath:$agent=dir=$dir,methods=on" \
        perf_record -k mono -e cpu-clock -o "$dir/perf.data" "$@" >"$dir/log" 2>&1 ||
        fail "$name: $(tail -n 3 "$dir/log")"
    for mode in expand dwarf; do
        "$jdtool" inject -q -i "$dir/perf.data" -o "$dir/$mode.data" --inline "$mode" ||
            fail "$name: jdtool inject"
    done
    python3 "$tests_dir/readers/hotspot.py" "$parser" "$dir/dwarf.data" "$dir/expand.data" \
        >"$dir/said" 2>&1 || fail "$name: $(head -c 3000 "$dir/said")"
    note "$name: $(head -n 2 "$dir/said" | paste -sd ';')"
    # With the inlined methods in the chains, too, everything has a name.
    python3 "$tests_dir/readers/hotspot.py" "$parser" "$dir/expand.data" >"$dir/said" 2>&1 ||
        fail "$name: expanded: $(head -c 3000 "$dir/said")"
}

judge streams -F 499 -g -- "$jdk/bin/java" -cp "$classes" Streams 2
judge copied -F 199 --call-graph dwarf,16384 -- "$jdk/bin/java" -cp "$classes" Streams 2
# A small code cache is full soon, and freed places are taken again.
judge reused -F 999 -g -- "$jdk/bin/java" -XX:ReservedCodeCacheSize=3m -cp "$classes" ComeAndGo 800
# The agent has frame pointers, too: the JVM calls it, and no address that lies in its lists of code.
perf script -i "$scratch/reused/expand.data" -F ip,sym,dso --max-stack 10000 >"$scratch/script" 2>/dev/null
awk '/\/libjdagent\.so\)$/ { agent = 1; frames++; next } agent && /-java(-frames|\.[0-9]+)?\.so\)$/ { print } { agent = 0 }
    END { exit frames < 10 }' "$scratch/script" >"$scratch/callers" || fail "too few frames in the agent"
[ ! -s "$scratch/callers" ] || fail "callers of the agent: $(head -n 6 "$scratch/callers")"
[ -e "$scratch/reused/dwarf-java.2.so" ] || fail "no code took the place of other code"
if [ "$long" = 1 ]; then
    javac_workload
    judge javac -F 499 -g -- "$jdk/bin/javac" "${javac_args[@]}"
fi
