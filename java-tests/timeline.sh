#!/usr/bin/env bash
# Pauses, collections and deoptimisations of the timeline equal the JVM's own log. At the JVM's start and attached,
# without a flag; and the pauses where there are no probes, by a log that goes with the recording.
source "$(dirname "$0")/lib.sh"
begin "$@"
need_perf
need_uprobes
[ "$jdk_major" -ge 11 ] || skip "JDK $jdk_major has no unified logging to compare with"
readelf -S "$jdk/lib/server/libjvm.so" 2>/dev/null | grep stapsdt >/dev/null || skip "this JDK marks no places for tracers"
command -v python3 >/dev/null || skip "python3 is not installed"
compile

# What the JVM is asked to write. JDK 17 has no log of deoptimisations, but one of compilations.
flags=(-Xmx96m)
tags='gc*=info,safepoint*=info'
compilations=()
if [ "$jdk_major" -ge 20 ]; then
    tags+=',deoptimization=debug'
else
    flags+=(-XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation "-XX:LogFile=$scratch/compilations.xml")
    compilations=("$scratch/compilations.xml")
fi
flags+=("-Xlog:$tags:file=$scratch/jvm.log:timenanos,tid,tags:filecount=0")

# check PROFILE [COMPILATIONS]
check() {
    local profile=$1
    shift
    "$jdperf" timeline "$scratch/$profile" --json -o "$scratch/$profile.json" 2>"$scratch/err" ||
        fail "$profile: $(cat "$scratch/err")"
    perf script -i "$scratch/$profile/perf.jit.data" --show-switch-events --ns -F comm,tid,time 2>/dev/null |
        grep -a PERF_RECORD_SWITCH >"$scratch/switches"
    python3 "$tests_dir/readers/timeline.py" "$scratch/$profile.json" "$scratch/jvm.log" "$scratch/switches" "$@" >"$scratch/told" ||
        fail "$profile: $(cat "$scratch/told") ($(grep -oE '"[a-z]*_?lost_?[a-z]*": *[1-9][0-9]*' "$scratch/$profile/scorecard.json"))"
    sed "s/^/# $profile: /" "$scratch/told"
    "$jdperf" timeline "$scratch/$profile" >"$scratch/text" 2>&1 || fail "$profile: $(cat "$scratch/text")"
    grep -q '^Pauses: [1-9]' "$scratch/text" || fail "$profile: $(cat "$scratch/text")"
    grep -q 'unstable_if' "$scratch/text" || fail "$profile: no reason is named: $(cat "$scratch/text")"
    grep -qE 'Doings[$]Trap.applyAsInt[(]int, int[)]:[0-9]+' "$scratch/text" || fail "$profile: $(cat "$scratch/text")"
    no_probes "$profile"
}

rounds=25
[ "$long" = 0 ] || rounds=600
"$jdperf" record -o "$scratch/started" -F 49 --timeline --switch-events -- \
    "$jdk/bin/java" "${flags[@]}" -cp "$classes" Doings $rounds >"$scratch/log" 2>"$scratch/err" ||
    fail "record: $(tail -n 5 "$scratch/err")"
! grep -E 'left out|lost' "$scratch/err" || fail "started: something is missing: $(cat "$scratch/err")"
check started "${compilations[@]}"

# The code cache fills as the JVM compiles: each look finds what had been reported by then, though its stamps are dated back.
python3 - "$scratch/started.json" >"$scratch/told" <<'END' || fail "$(cat "$scratch/told")"
import json, sys
bytes = [look["bytes"] for look in json.load(open(sys.argv[1]))["code-cache"]]
growths = sum(a < b for a, b in zip(bytes, bytes[1:]))
print(f"{len(bytes)} looks at the code cache, from {bytes[0]} to {bytes[-1]} bytes, {growths} growths")
sys.exit(growths < 5 or bytes[0] >= bytes[-1])
END
sed 's/^/# started: /' "$scratch/told"

# The same marks wherever they are shown.
"$jdperf" export "$scratch/started" firefox -o "$scratch/firefox.json" 2>/dev/null
"$jdperf" flame "$scratch/started" -o "$scratch/flame.html" 2>/dev/null
python3 - "$scratch/started.json" "$scratch/firefox.json" "$scratch/flame.html" >"$scratch/told" <<'END' || fail "$(cat "$scratch/told")"
import base64, gzip, json, re, struct, sys
told, firefox = (json.load(open(path)) for path in sys.argv[1:3])
packed = base64.b64decode(re.search(r'application/x-jdflame"[^>]*>([^<]+)<', open(sys.argv[3]).read())[1])
data = gzip.decompress(packed)
flame = json.loads(data[12:12 + struct.unpack("<I", data[8:12])[0]])
names = firefox["shared"]["stringArray"]
markers = [(names[name], start) for thread in firefox["threads"]
           for name, start in zip(thread["markers"]["name"], thread["markers"]["startTime"])]
# The front end takes a track to be there from its start to its end; the JVM goes on telling after the last sample.
for thread in firefox["threads"]:
    at = [*thread["markers"]["startTime"], *(end for end in thread["markers"]["endTime"] if end is not None)]
    if at and not thread["registerTime"] <= min(at) <= max(at) <= thread["unregisterTime"]:
        sys.exit(f"markers from {min(at)} to {max(at)} ms on a track from {thread['registerTime']} to {thread['unregisterTime']} ms")
for kind, title, lane in ("safepoint", "Pause", "pauses"), ("compile", "Compilation", "compilations"), ("deopt", "Deoptimisation", "deoptimisations"):
    count = len(told[kind])
    shown = [start for name, start in markers if name == title]
    print(f"{kind}: {count} told, {len(shown)} markers, {len(flame['marks'][lane]) // 2} in the strip")
    if count == 0 or len(shown) != count or len(flame["marks"][lane]) != 2 * count:
        sys.exit(1)
    if abs(shown[0] - (told[kind][0]["time"] - told["from"]) / 1e6) > 1e-3 and kind != "compile":
        sys.exit(f"{kind}: a marker at {shown[0]} ms")
END
sed 's/^/# /' "$scratch/told"

# perf's own report knows the profile still.
perf report -i "$scratch/started/perf.jit.data" --stdio --no-children -g none --sort sym 2>/dev/null | grep 'applyAsInt' >/dev/null ||
    fail "perf report does not know the program's method"

# A collection for want of room that becomes a full one is told as such, which gc__begin does not. Each collector has its
# own name for it.
collectors=()
! my_part 0 "Serial and G1" || collectors+=(Serial G1)
! my_part 1 "Parallel" || collectors+=(Parallel)
for collector in "${collectors[@]}"; do
    "$jdperf" record -o "$scratch/full" -F 49 --timeline -- "$jdk/bin/java" "-XX:+Use${collector}GC" -Xmx19m \
        "-Xlog:gc*=info:file=$scratch/full.log:timenanos,tags:filecount=0" -cp "$classes" Doings 3 >"$scratch/log" 2>"$scratch/err" ||
        fail "$collector: $(tail -n 5 "$scratch/err" "$scratch/log")"
    "$jdperf" timeline "$scratch/full" --json -o "$scratch/full.json" 2>"$scratch/err" || fail "$collector: $(cat "$scratch/err")"
    python3 - "$scratch/full.json" "$scratch/full.log" >"$scratch/told" <<'END' || fail "$collector: $(cat "$scratch/told")"
import json, re, sys
told = [(mark["time"], mark["time"] + mark["duration"], mark["full"]) for mark in json.load(open(sys.argv[1]))["gc"] if "open" not in mark]
begun, full = {}, []
for line in open(sys.argv[2]):
    found = re.match(r"\[(\d+)ns\]\[gc(,start)? *\] GC\((\d+)\) Pause Full", line)
    if found and found[2]:
        begun[found[3]] = int(found[1])
    elif found:
        full.append((begun[found[3]], int(found[1])))
wrong = [mark for mark in told if mark[2] != any(begin <= mark[1] and mark[0] <= end for begin, end in full)]
print(f"{len(told)} collections, {sum(mark[2] for mark in told)} full, {len(full)} full ones in the log, {len(wrong)} told wrongly")
sys.exit(bool(wrong) or not full or not told)
END
    sed "s/^/# $collector: /" "$scratch/told"
    rm -r "$scratch/full" "$scratch/full.log"
done

# A script runs another JDK than the one that JAVA_HOME names, in whose libjvm.so the probes are: nothing comes, which is said.
mkdir -p "$scratch/other/bin" "$scratch/other/lib/server"
cp "$jdk/bin/java" "$scratch/other/bin/"
cp "$jdk/lib/server/libjvm.so" "$scratch/other/lib/server/"
JAVA_HOME=$scratch/other "$jdperf" record -o "$scratch/script" -F 49 --timeline --exceptions -- \
    sh -c "'$jdk/bin/java' -cp '$classes' Doings 2; :" >"$scratch/log" 2>"$scratch/err" || fail "record: $(tail -n 5 "$scratch/err")"
grep -q 'the profile is fair: .*1 of 1 JVMs report no exception events' "$scratch/err" || fail "another JDK: $(tail -n 12 "$scratch/err")"
grep -q 'no exception, deopt events: it runs another JDK' "$scratch/err" || fail "another JDK: $(tail -n 12 "$scratch/err")"
rm -r "$scratch/other" "$scratch/script"

# Attached to a JVM that runs, which was started without anything for us.
rm -f "$scratch/jvm.log" "$scratch/compilations.xml" "$scratch/log"
"$jdk/bin/java" "${flags[@]}" -cp "$classes" Doings 3000 >"$scratch/log" 2>&1 &
pid=$!
children+=("$pid")
wait_until 60 "the program runs" grep -q ready "$scratch/log"
"$jdperf" record -p "$pid" -d 2 -o "$scratch/attached" -F 49 --timeline --switch-events 2>"$scratch/err" ||
    fail "attached: $(tail -n 5 "$scratch/err")"
grep -q "\"dump\": \"$scratch/attached/jit-$pid.dump\"" "$scratch/attached/scorecard.json" ||
    fail "attached: $(grep '"dump"' "$scratch/attached/scorecard.json")"
kill -STOP "$pid" # it need not be busy while files are read
# The log of compilations has no times: attached, JDK 17's deoptimisations cannot be held against it.
if [ "$jdk_major" -ge 20 ]; then
    check attached
else
    check attached -
fi
kill -CONT "$pid"

# Without probes: the pauses alone, by the JVM's own log, to the nanosecond what its other log says; with the recording
# that one goes.
"$jdperf" record -p "$pid" -d 2 -o "$scratch/logged" -F 49 --agent-options log=on 2>"$scratch/err" ||
    fail "logged: $(tail -n 5 "$scratch/err")"
"$jdperf" timeline "$scratch/logged" --json -o "$scratch/logged.json" 2>"$scratch/err" || fail "logged: $(cat "$scratch/err")"
python3 - "$scratch/logged.json" "$scratch/jvm.log" >"$scratch/told" <<'END' || fail "logged: $(cat "$scratch/told")"
import json, re, sys
told = json.load(open(sys.argv[1]))
ends = {mark["time"] + mark["duration"] for mark in told["safepoint"]}
line = re.compile(r'\[(\d+)ns\]\[\d+\]\[safepoint *\] Safepoint ".*Total: *(\d+) ns')
logged = [found for found in map(line.match, open(sys.argv[2])) if found]
wanted = {int(found[1]) for found in logged if min(ends) <= int(found[1]) <= max(ends)}
print(f"{len(ends)} pauses and {len(told['gc'])} collections by the log, {len(ends ^ wanted)} not as the JVM's other log has them")
sys.exit(ends != wanted or len(ends) < 3 or not told["gc"])
END
sed 's/^/# logged: /' "$scratch/told"
"$jdk/bin/jcmd" "$pid" VM.log list >"$scratch/outputs" || fail "jcmd: $(cat "$scratch/outputs")"
grep -q 'jvm.log' "$scratch/outputs" || fail "the JVM's own log is gone: $(cat "$scratch/outputs")"
! grep 'jit-' "$scratch/outputs" >&2 || fail "our log is still written"
kill "$pid"
