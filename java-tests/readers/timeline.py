"""timeline.py TIMELINE LOG SWITCHES [COMPILATIONS]: what jdperf timeline --json tells against what the same JVM wrote
itself: -Xlog with timenanos, which is CLOCK_MONOTONIC as the recording's times are; and where the JDK has no log of
deoptimisations, -XX:+LogCompilation. SWITCHES is perf script's word of when threads had a processor. Prints what was
compared; ends with 1 where something is missing or too much.

Each thing has to be there, once, of the thread that wrote the line. Its time is the probe's, and the log's is that at
which the line was made: the thread does a little between the two, and may lose its processor there, on a busy machine
for many milliseconds; and the machine below this one may stand, which nothing here can see. So each has to lie between
the same thread's lines before and after it, on the right side of its own; and that the times are right to 100 us is
held against those a quarter of which were disturbed least, by how long the thread ran from one to the other.
"""
import json
import re
import sys
from bisect import bisect
from collections import Counter, defaultdict

NEAR = 100e-6 * 1e9
FAR = 1e9


def fail(words):
    print(words)
    sys.exit(1)


def read_switches(path):
    """By thread, the times without a processor, in order."""
    away, since = defaultdict(list), {}
    for line in open(path, errors="replace"):
        found = re.match(r".*?\s(\d+)\s+(\d+)\.(\d{9}): PERF_RECORD_SWITCH\w* +(IN|OUT)", line)
        if found and found[4] == "OUT":
            since[int(found[1])] = int(found[2] + found[3])
        elif found and int(found[1]) in since:
            away[int(found[1])].append((since.pop(int(found[1])), int(found[2] + found[3])))
    for thread, time in since.items():
        away[thread].append((time, float("inf")))
    return away


def ran(thread, begin, end):
    """How long the thread had a processor between the two times, whichever is first."""
    begin, end = min(begin, end), max(begin, end)
    times = away[thread]
    time = end - begin
    for out, back in times[max(bisect(times, (begin, 0)) - 1, 0):bisect(times, (end, 0))]:
        time -= max(0, min(end, back) - max(begin, out))
    return time


def say(what, off, ran):
    off, ran = sorted(off), sorted(ran)
    print(f"{what}: {len(off)} compared, off by {off[len(off) // 2] / 1e3:.1f} us in the median, at most "
          f"{off[-1] / 1e3:.1f} us; {ran[len(ran) // 4] / 1e3:.1f} us in the lower quartile when only the thread's own "
          f"time counts, {sum(value <= NEAR for value in ran)} within 100 us")
    return off[-1] <= FAR and ran[len(ran) // 4] <= NEAR


def compare(what, pairs, first=None):
    """pairs: of a mark's thread and time and the line's, in order. first: which is always the earlier one, 0 or 1."""
    if not pairs:
        fail(f"{what}: there is nothing to compare")
    before, after = {}, {}  # by thread, the line before the mark's own, and the mark after the line
    for (mark_thread, mark), (line_thread, line) in pairs:
        if mark_thread != line_thread:
            fail(f"{what}: told of thread {mark_thread} at {mark}, logged by {line_thread} at {line}")
        if first is not None and (mark < line if first else mark > line):
            fail(f"{what}: told at {mark}, logged at {line}, which is the wrong order")
        if mark <= before.get(mark_thread, 0) or line <= after.get(mark_thread, 0):
            fail(f"{what}: told at {mark} and logged at {line}, and the thread's last ones were logged at "
                 f"{before[mark_thread]} and told at {after[mark_thread]}")
        before[mark_thread], after[mark_thread] = line, mark
    if not say(what, [abs(mark[1] - line[1]) for mark, line in pairs],
               [ran(mark[0], mark[1], line[1]) for mark, line in pairs]):
        fail(f"{what}: the times do not agree")


def match(what, marks, lines, first=None):
    """Both lists, of a name, a thread and a time, are in order, and of the same length and names."""
    if [mark[0] for mark in marks] != [line[0] for line in lines]:
        missing = Counter(line[0] for line in lines) - Counter(mark[0] for mark in marks)
        extra = Counter(mark[0] for mark in marks) - Counter(line[0] for line in lines)
        fail(f"{what}: {len(marks)} told, {len(lines)} in the log; missing {dict(missing)}, too many {dict(extra)}")
    compare(what, [(mark[1:], line[1:]) for mark, line in zip(marks, lines)], first)


def end_of(mark):
    return mark["time"] + mark["duration"]


timeline = json.load(open(sys.argv[1]))
away = read_switches(sys.argv[3])
if not away:
    fail("nothing tells when threads had a processor")
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
for time, thread, tags, text in lines:
    found = re.match(r'Safepoint "(\w+)".*Total: +(\d+) ns', text)
    if found and "safepoint" in tags:
        safepoints.append((found[1], thread, time, int(found[2])))
# Of the recording's own pauses: from the line nearest to the end of the first to that nearest to the end of
# the last. A pause's length is the JVM's in the log, so its beginning says less about which one it is.
begin, end = (min(range(len(safepoints)), key=lambda i: abs(safepoints[i][2] - end_of(mark))) for mark in (marks[0], marks[-1]))
safepoints = safepoints[begin:end + 1]
# SafepointTracing::end writes the line and then tells of the end.
match("ends of pauses", [(mark["operation"], mark["tid"], end_of(mark)) for mark in marks],
      [line[:3] for line in safepoints], first=1)
compare("beginnings of pauses", [((mark["tid"], mark["time"]), (thread, time - total))
                                 for mark, (_, thread, time, total) in zip(marks, safepoints)])
away_then = [mark["duration"] - ran(mark["tid"], mark["time"], end_of(mark)) for mark in marks]
print(f"of {sum(mark['duration'] for mark in marks) / 1e6:.1f} ms of pauses the VM thread had no processor for {sum(away_then) / 1e6:.1f} ms")

# perf turns its events on thread by thread, and attached it may be at the VM thread's behind others.
first = marks[0]["time"]
begun = {}
pauses = []
for time, thread, tags, text in lines:
    found = re.match(r"GC\((\d+)\) Pause (\w+)", text)
    if found and tags == ["gc", "start"]:
        begun[found[1]] = time
    elif found and tags == ["gc"] and found[1] in begun and begun[found[1]] >= first and time <= last:
        pauses.append((begun[found[1]], time, found[2], thread))
# G1's Remark and Cleanup are collections' pauses as well, by the probes of those JDKs that mark them.
stopping = [pause for pause in pauses if pause[2] in ("Young", "Full")]
gcs = [mark for mark in timeline["gc"] if "open" not in mark and first <= mark["time"] <= last]
pauses = stopping if len(gcs) == len(stopping) else pauses
if len(gcs) != len(pauses):
    fail(f"collections: {len(gcs)} told, {len(pauses)} in the log")
compare("beginnings of collections", [((mark["tid"], mark["time"]), (pause[3], pause[0]))
                                      for mark, pause in zip(gcs, pauses) if pause in stopping], first=0)
# At the other two the JVM asks each of its memory pools for its size (G1ConcGCMonitoringScope) between the line and the
# mark, which takes 80 to 160 us.
POOLS = 200_000
late, late_ran = [], []
for mark, (begin, end, kind, thread) in zip(gcs, pauses):
    if kind in ("Young", "Full"):
        continue
    if not (mark["tid"] == thread and begin <= mark["time"] <= end):
        fail(f"{kind} from {begin} to {end} by {thread}: told to begin at {mark['time']} by {mark['tid']}")
    late.append(max(0, mark["time"] - begin - POOLS))
    late_ran.append(max(0, ran(thread, begin, mark["time"]) - POOLS))
if late and not say("beginnings of Remark and Cleanup, later than by 200 us", late, late_ran):
    fail("beginnings of Remark and Cleanup: the times do not agree")
compare("ends of collections", [((mark["tid"], end_of(mark)), (thread, end)) for mark, (_, end, _, thread) in zip(gcs, pauses)])

deopts = timeline["deopt"]
if sys.argv[4:] == ["-"]:
    print(f"deoptimisations: {len(deopts)} told, and no log of them")
elif len(sys.argv) > 4:  # JDK 17: no times worth the name
    truth = Counter()
    for found in re.finditer(r"<uncommon_trap thread='\d+' reason='(\w+)' action='(\w+)'", open(sys.argv[4], errors="replace").read()):
        truth[f"{found[1]}, {found[2]}"] += 1
    told = Counter(mark["reason"] for mark in deopts)
    print(f"deoptimisations: {sum(told.values())} told, {sum(truth.values())} in the log of compilations: {dict(told)}")
    if told != truth:
        fail(f"deoptimisations: the log of compilations has {dict(truth)}")
else:
    first = max(first, deopts[0]["time"] if deopts else first)  # and of the program's threads
    logged = []
    for time, thread, tags, text in lines:
        found = re.match(r"cid=.* level=\d ([\w.$]+)\(.*trap_bci=\d+ (?:osr_bci=\d+ )?(\w+) (\w+) pc=", text)
        if found and "deoptimization" in tags and first <= time <= last:
            logged.append((f"{found[1]}: {found[2]}, {found[3]}", thread, time))
    told = [(re.sub(r"\(.*", "", mark["method"] or "?") + ": " + mark["reason"], mark["tid"], mark["time"]) for mark in deopts
            if first <= mark["time"] <= last]
    match("deoptimisations", told, logged, first=0)  # the function writes the line where it knows all
own = [mark for mark in deopts if "Trap.applyAsInt" in (mark["method"] or "")]
print(f"of the program's own: {len(own)}: {Counter(mark['reason'] for mark in own)}")
if not own:  # on a busy machine there are few in three seconds
    fail("the program's own deoptimisations are not told")
if not [mark for mark in timeline["thread-start"] if mark["name"].startswith("short-lived-")]:
    fail(f"no thread's start is told: {timeline['thread-start'][:3]}")
if not [mark for mark in timeline["compile"] if mark["method"] == "Doings$Trap.applyAsInt(int, int)" and mark["compiler"] == "C2"]:
    fail(f"C2's compilation of the program is not told: {timeline['compile'][:3]}")
