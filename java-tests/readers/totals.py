"""Totals of a profile's events.

totals.py truth PROFILE SMALL EVENT...: against what the program (programs/Events.java) counted, in PROFILE.log; SMALL
is what an object of two longs takes. PROFILE.EVENT has the event's stacks, collapsed, with their weights; of off-cpu runnable's, too.
totals.py shown PROFILE REPORT FLAME VIEW: the scorecard's against perf report's text, the flame page, and the
profile that jdperf view serves at the address in VIEW.
Ends with 1 where one is another.
"""
import base64
import gzip
import json
import math
import re
import struct
import sys
import urllib.parse
import urllib.request
from collections import Counter, defaultdict

profile = sys.argv[2]
with open(f"{profile}/scorecard.json", encoding="utf-8") as file:
    card = json.load(file)
events = {event["name"]: event for event in card["events"]}


def read_truth(small):
    """What the program printed, one number for each event."""
    told = defaultdict(dict)
    with open(f"{profile}.log", encoding="utf-8") as file:
        for line in file:
            what, name, number = line.split()
            told[what][name] = int(number)
    size = {"byte[]": 1024, "int[]": 512, "Events$Small": small}
    return {"cpu-clock": told["time"]["process"], "alloc": sum(size[name] * count for name, count in told["alloc"].items()),
            "lock": sum(told["lock"].values()), "off-cpu": sum(told["wait"].values())}


def is_counted(event, thread, frames):
    """Whether the program counts it, which tells of some threads, and of some of what they do."""
    if event == "alloc":
        return thread == "allocator"
    if event == "lock":
        return frames[-1] == "Events$1"
    # A thread waits elsewhere, too: at safepoints, and for classes that its first string needs.
    names = [frame.partition("(")[0] for frame in frames]
    if thread == "blocked":
        inner = names[names.index("Events.blocked") + 1:] if "Events.blocked" in names else ["java.lang.Thread.run"]
        return not any(name.startswith(("java.", "Events.")) for name in inner)
    waits = {"sleeper": "Events.pause", "parker": "java.util.concurrent.locks.LockSupport.parkNanos", "waiter": "java.lang.Object.wait"}
    return thread in waits and waits[thread] in names


def total_of(event):
    """What is to be the program's number, and how many samples that is of."""
    if event == "cpu-clock":
        return events[event]["weight"], events[event]["samples"]
    weight = count = 0
    with open(f"{profile}.{event}", encoding="utf-8") as file:
        for line in file:
            stack, number = line.rsplit(" ", 1)
            thread, *frames = stack.split(";")
            if is_counted(event, thread, frames):
                weight += float(number)
    return weight, events[event]["samples"]


# Waits are measured, all of them; contended ones of less than 1 ms, and allocations, are sampled, and a clock's
# ticks are: 4.5 sigma of that many independent samples is more than chance allows in 150,000 runs.
EXACT = {"off-cpu": 0.04, "lock": 0.02}


def check_truth(small, wanted):
    truth = read_truth(small)
    bad = False
    print({key: card[key] for key in ("lost_samples", "lost_records", "waits_lost", "samples_let_go_early")})
    for event in wanted:
        told, samples = total_of(event)
        most = max(4.5 / math.sqrt(samples or 1) if event not in EXACT else 0, EXACT.get(event, 0))
        off = told / truth[event] - 1
        print(f"{event}: {told:.0f}, really {truth[event]}, {100 * off:.2f} % off, of {samples} samples; {100 * most:.1f} % allowed")
        bad |= abs(off) > most
    sys.exit(bad)


def of_report(path):
    found, event = {}, None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if head := re.match(r"# Samples: .* of event '(?:\w+:)?(.*)'", line):
                event = {"sched_switch": "off-cpu"}.get(head[1], head[1])
            elif count := re.match(r"# Event count \(approx\.\): (\d+)", line):
                found[event] = found.get(event, 0) + int(count[1])
    return found


def as_perf_has_them(weights):
    """To perf a switch is a switch, whether the thread was blocked until then or waited for a processor."""
    merged = dict(weights)
    merged["off-cpu"] += merged.pop("runnable")
    return merged


def of_flame(path):
    with open(path, encoding="utf-8") as file:
        data = gzip.decompress(base64.b64decode(re.search(r'application/x-jdflame"[^>]*>([^<]+)<', file.read())[1]))
    header = json.loads(data[12:12 + struct.unpack("<I", data[8:12])[0]])
    return {event["name"]: event["weight"] for event in header["events"]}


def of_view(path):
    with open(path, encoding="utf-8") as file:
        url = next(line.strip() for line in file if "symbolServer" in line)
    base = urllib.parse.unquote(url.split("symbolServer=")[1])
    with urllib.request.urlopen(f"{base}/profile.json", timeout=60) as answer:
        body = answer.read()
    served = json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
    first = [entry["value"] for entry in served["meta"]["extra"][0]["entries"] if entry["label"] == "Event"][0]
    found, kinds = Counter(), {}
    for thread in served["threads"]:
        event = re.search(r" \(([\w-]+)\)$", thread["name"])
        event = event[1] if event and event[1] in events else first
        samples = thread["samples"]
        kinds[event] = samples["weightType"] if samples["weight"] else "processor"
        scale = 1e6 if kinds[event] == "tracing-ms" else 1
        found[event] += sum(round(weight * scale) for weight in samples["weight"] or samples["threadCPUDelta"])
    print(f"view: {kinds}")
    if kinds != {"cpu-clock": "processor", "off-cpu": "tracing-ms", "runnable": "tracing-ms", "lock": "tracing-ms",
                 "alloc": "bytes"}:
        sys.exit(1)
    return dict(found)


def check_shown(report, flame, view):
    wanted = {name: event["weight"] for name, event in events.items()}
    bad = False
    for name, found in ("perf report", of_report(report)), ("flame", of_flame(flame)), ("view", of_view(view)):
        known = as_perf_has_them(wanted) if name == "perf report" else wanted
        print(f"{name}: {found}{'' if found == known else ', but the scorecard has ' + str(known)}")
        bad |= found != known
    sys.exit(bad)


if sys.argv[1] == "truth":
    check_truth(int(sys.argv[3]), sys.argv[4:])
check_shown(*sys.argv[3:])
