"""timeline.py TIMELINE LOG [COMPILATIONS]: what jdperf timeline --json tells against what the same JVM wrote itself:
-Xlog with timenanos, which is CLOCK_MONOTONIC as the recording's times are; and where the JDK has no log of
deoptimisations, -XX:+LogCompilation. Prints what was compared; ends with 1 where something is missing or too much.

Each thing has to be there, once. Its time is the probe's, and the log's is that at which the line was made, some
microseconds away, unless the thread lost its processor in between: so nearly all have to be within 100 us, and each
within a second.
"""
import json
import re
import sys
from collections import Counter

NEAR = 100e-6 * 1e9
FAR = 1e9
SHARE = 0.8  # that is near, on a machine with more to do than it has processors


def fail(words):
    print(words)
    sys.exit(1)


def compare(what, pairs):
    """pairs: of times that should be the same."""
    if not pairs:
        fail(f"{what}: there is nothing to compare")
    off = sorted(abs(a - b) for a, b in pairs)
    near = sum(value <= NEAR for value in off)
    print(f"{what}: {len(off)} compared, off by {off[len(off) // 2] / 1e3:.1f} us in the median, at most "
          f"{off[-1] / 1e3:.1f} us, {near} within 100 us")
    if off[-1] > FAR or near < SHARE * len(off):
        fail(f"{what}: the times do not agree")


def match(what, marks, lines):
    """Both lists are in order, and of the same length and names."""
    if [name for _, name in marks] != [name for _, name in lines]:
        missing = Counter(name for _, name in lines) - Counter(name for _, name in marks)
        extra = Counter(name for _, name in marks) - Counter(name for _, name in lines)
        fail(f"{what}: {len(marks)} told, {len(lines)} in the log; missing {dict(missing)}, too many {dict(extra)}")
    compare(what, [(a, b) for (a, _), (b, _) in zip(marks, lines)])


timeline = json.load(open(sys.argv[1]))
lines = []
for line in open(sys.argv[2]):
    found = re.match(r"\[(\d+)ns\]\[(\d+)\]\[([\w,]+) *\] (.*)", line)
    if found:
        lines.append((int(found[1]), int(found[2]), found[3].split(","), found[4]))
if not lines:
    fail("the log is empty")

# What the recording can know of: it may have begun behind the JVM and ended before it.
times = [mark["time"] for kind in ("safepoint", "compile", "thread-start") for mark in timeline[kind]]
first, last = min(times), max(mark["time"] + mark["duration"] for mark in timeline["safepoint"] if "open" not in mark)

marks = [mark for mark in timeline["safepoint"] if "open" not in mark and mark["operation"]]
safepoints = []
for time, _, tags, text in lines:
    found = re.match(r'Safepoint "(\w+)".*Total: +(\d+) ns', text)
    if found and "safepoint" in tags:
        safepoints.append((time, found[1], int(found[2])))
# Of the recording's own pauses: from the line nearest to the end of the first to that nearest to the end of
# the last. A pause's length is the JVM's in the log, so its beginning says less about which one it is.
ends = [mark["time"] + mark["duration"] for mark in (marks[0], marks[-1])]
begin, end = (min(range(len(safepoints)), key=lambda i: abs(safepoints[i][0] - time)) for time in ends)
safepoints = safepoints[begin:end + 1]
match("ends of pauses", [(mark["time"] + mark["duration"], mark["operation"]) for mark in marks],
      [(time, name) for time, name, _ in safepoints])
compare("lengths of pauses", [(mark["duration"], total) for mark, (_, _, total) in zip(marks, safepoints)])

begun = {}
pauses = []
for time, _, tags, text in lines:
    found = re.match(r"GC\((\d+)\) Pause (\w+)", text)
    if found and tags == ["gc", "start"]:
        begun[found[1]] = time
    elif found and tags == ["gc"] and found[1] in begun and begun[found[1]] >= first and time <= last:
        pauses.append((begun[found[1]], time, found[2]))
# G1's Remark and Cleanup are collections' pauses as well, by the probes of those JDKs that mark them.
stopping = [pause for pause in pauses if pause[2] in ("Young", "Full")]
gcs = [mark for mark in timeline["gc"] if "open" not in mark and mark["time"] <= last]
pauses = stopping if len(gcs) == len(stopping) else pauses
match("beginnings of collections", [(mark["time"], "GC") for mark in gcs], [(begin, "GC") for begin, _, _ in pauses])
compare("ends of collections", [(mark["time"] + mark["duration"], end) for mark, (_, end, _) in zip(gcs, pauses)])

deopts = timeline["deopt"]
if sys.argv[3:] == ["-"]:
    print(f"deoptimisations: {len(deopts)} told, and no log of them")
elif len(sys.argv) > 3:  # JDK 17: no times worth the name
    truth = Counter()
    for found in re.finditer(r"<uncommon_trap thread='\d+' reason='(\w+)' action='(\w+)'", open(sys.argv[3], errors="replace").read()):
        truth[f"{found[1]}, {found[2]}"] += 1
    told = Counter(mark["reason"] for mark in deopts)
    print(f"deoptimisations: {sum(told.values())} told, {sum(truth.values())} in the log of compilations: {dict(told)}")
    if told != truth:
        fail(f"deoptimisations: the log of compilations has {dict(truth)}")
else:
    logged = []
    for time, _, tags, text in lines:
        found = re.match(r"cid=.* level=\d ([\w.$]+)\(.*trap_bci=\d+ (?:osr_bci=\d+ )?(\w+) (\w+) pc=", text)
        if found and "deoptimization" in tags and first <= time <= last:
            logged.append((time, f"{found[1]}: {found[2]}, {found[3]}"))
    told = [(mark["time"], re.sub(r"\(.*", "", mark["method"] or "?") + ": " + mark["reason"]) for mark in deopts
            if first <= mark["time"] <= last]
    match("deoptimisations", told, logged)
own = [mark for mark in deopts if "Trap.applyAsInt" in (mark["method"] or "")]
print(f"of the program's own: {len(own)}: {Counter(mark['reason'] for mark in own)}")
if len(own) < 5:
    fail("the program's own deoptimisations are not told")
if not [mark for mark in timeline["thread-start"] if mark["name"].startswith("short-lived-")]:
    fail(f"no thread's start is told: {timeline['thread-start'][:3]}")
if not [mark for mark in timeline["compile"] if mark["method"] == "Doings$Trap.applyAsInt(int, int)" and mark["compiler"] == "C2"]:
    fail(f"C2's compilation of the program is not told: {timeline['compile'][:3]}")
