"""Holds what others read in a JFR file against our collapsed stacks: to the unit, event by event.

jfr_readers.py print FILE.json COLLAPSED[=EVENT]…   what "jfr print --json --stack-depth …" gave
jfr_readers.py jmc LINES COLLAPSED[=EVENT]…         what JmcStacks.java gave, which has no parameters of methods
jfr_readers.py jfrconv STACKS COLLAPSED             the profile's own event, without threads and parameters
jfr_readers.py joined FILE.json TIMELINE.json       a JVM's own recording as "jfr print --json" gave it, and "jdperf timeline --json" of
                                                    the profile that it was joined to
jfr_readers.py labels FILE.json FIELD yes|no         the threads of Held.java, which have their label in FIELD; whether there is a
                                                    virtual one

Of a COLLAPSED file all samples are of EVENT, jdk.ExecutionSample by default, and with "weight:" before it the lines are weights.
"""
import collections
import datetime
import json
import re
import sys

import jfr_file
import stacks


def nanoseconds(text):
    """PT1M2.5S"""
    parts = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", text)
    jfr_file.check(parts, f"a duration {text}")
    hours, minutes, seconds, part = (int(value or 0) for value in (parts[1], parts[2], parts[3], (parts[4] or "").ljust(9, "0")))
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + part


def printed(path):
    """(event, weight, thread, stack) of each sample."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["recording"]["events"]
    for event in events:
        kind, fields = event["type"], event["values"]
        if not fields.get("stackTrace"):
            continue
        stack = [jfr_file.frame_name(frame) for frame in reversed(fields["stackTrace"]["frames"])]
        subject = fields.get(jfr_file.SUBJECTS.get(kind))
        if subject:
            stack.append(jfr_file.class_name(subject["name"]))
        weight = nanoseconds(fields["duration"]) if "duration" in fields else fields.get("weight", 0)
        yield kind, weight, (fields.get("sampledThread") or fields["eventThread"])["osName"], ";".join(stack)


def of_jmc(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, weight, stack = line.rstrip("\n").split("\t")
            thread, _, stack = stack.partition(";")
            if stack:
                yield kind, int(weight), thread, stack


NATIVE = {"jdk.NativeMethodSample": "jdk.ExecutionSample"}


def simple(stack):
    """Without what a reader leaves out: parameters, and how hidden classes are spelled."""
    frames = []
    for frame in stack.split(";"):
        is_java = re.match(r"[^ <(:]*[./][^ (:]*\(|[^ (:]+\.[\w$<>]+\(", frame) is not None
        frame = frame[:frame.index("(")] if is_java else frame
        frames.append(re.sub(r"[/+.]0x", "/0x", frame).replace("/", "."))
    return ";".join(frames)


def moment(text):
    """Nanoseconds since 1970 of 2026-11-25T01:36:41.010998777Z, or with +01:00 behind it."""
    seconds, part, zone = re.fullmatch(r"([^.Z+]*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text).groups()
    whole = datetime.datetime.fromisoformat(seconds + zone.replace("Z", "+00:00"))
    return int(whole.timestamp()) * 10**9 + int((part or "0").ljust(9, "0"))


def joined(printed_path, timeline_path):
    with open(timeline_path, encoding="utf-8") as file:
        timeline = json.load(file)
    with open(printed_path, encoding="utf-8") as file:
        events = json.load(file)["recording"]["events"]
    ours = collections.defaultdict(list)
    for mark in timeline["jfr"]:
        ours[mark["event"]].append((mark["time"] + timeline["wall_offset"], mark.get("duration", 0)))
    first, last = (timeline[key] + timeline["wall_offset"] for key in ("from", "until"))
    counts = collections.Counter()
    for event in events:
        kind = event["type"].removeprefix("jdk.")
        start, duration = moment(event["values"]["startTime"]), nanoseconds(event["values"].get("duration", "PT0S"))
        if first < start and start + duration < last:
            counts[kind] += 1
            jfr_file.check(any(abs(start - its) < 2000 and abs(duration - lasts) < 2000 for its, lasts in ours[kind]),
                           f"{kind} at {start} of {duration} ns is not joined")
    jfr_file.check(counts["GarbageCollection"] and counts["GCPhasePause"], f"there are only {dict(counts)}")
    for kind, count in counts.items():
        jfr_file.check(count <= len(ours[kind]) <= count + 2, f"{len(ours[kind])} of {count} {kind}")
    print("joined:", dict(counts))


def labels(path, field, virtual):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["recording"]["events"]
    shops = {"order-processing-worker-north": "north", "order-processing-worker-south": "south", "visitor-of-the-online-shop": "online"}
    counts = collections.Counter()
    for event in events:
        fields = event["values"]
        thread = fields.get("sampledThread") or fields.get("eventThread")
        shop = thread and shops.get(thread["javaName"])
        if shop and fields.get("stackTrace"):
            label = thread[field]
            # None: before the thread has set it.
            jfr_file.check(label in (shop, None), f"{thread['javaName']} has {label}")
            jfr_file.check(thread["virtual"] == (shop == "online"), f"virtual: {thread}")
            counts[shop] += label is not None
            counts[event["type"]] += label is not None
    wanted = {"north", "south", "jdk.ExecutionSample"} | ({"online"} if virtual == "yes" else set())
    jfr_file.check(all(counts[name] for name in wanted), f"labels: {dict(counts)}")
    print("labels:", dict(counts))


def main():
    reader, path, *told = sys.argv[1:]
    if reader == "labels":
        labels(path, *told)
        return
    if reader == "joined":
        joined(path, told[0])
        return
    found = collections.defaultdict(collections.Counter)
    if reader == "jfrconv":
        found["jdk.ExecutionSample"] = stacks.collapsed(path)
    for kind, weight, thread, stack in {"print": printed, "jmc": of_jmc}.get(reader, lambda _: ())(path):
        kind = NATIVE.get(kind, kind)
        found[kind][f"{thread};{stack}"] += 1
        found[f"weight:{kind}"][f"{thread};{stack}"] += weight
    for file in told:
        name, _, event = file.partition("=")
        event = event or "jdk.ExecutionSample"
        ours = stacks.collapsed(name, threads=reader != "jfrconv")
        theirs = found[event]
        if reader == "print":
            change = lambda text: text.replace(", ", ",").replace(";", ":")
        else:
            change = lambda text: simple(re.sub(r"_\[[0-9a-z]\]", "", text))
        results = []
        for counter in (ours, theirs):
            result = collections.Counter()
            for stack, count in counter.items():
                result[";".join(map(change, stack.split(";"))) if reader == "print" else change(stack)] += count
            results.append(result)
        jfr_file.check(sum(results[0].values()) > 0, f"no samples of {event}")
        stacks.same(results[1], results[0], f"{reader} reads other stacks of {event}")
        print(f"{reader}: {event}: {len(results[0])} stacks, {sum(results[0].values())} as in {name}")


main()
