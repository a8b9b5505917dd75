#!/usr/bin/env python3
"""Holds a profile against what the program itself measured (Truth.java).

usage: score.py MODE TRUTH SAMPLES SOURCE

TRUTH is the program's output, SAMPLES what JfrSamples or perf_samples.py printed, SOURCE Truth.java.
Prints NAME<tab>VALUE lines:

    samples           all of them
    share error       of the kinds of work: half the sum of |share - truth|, in percent
    noise             the same for a perfect sampler of as many samples, on average
    found             the kinds' part of all samples, in percent of their part of the process' time
    broken            samples with a frame that has no name, in percent
    rooted            samples whose stack reaches its thread's beginning, in percent
    line error        mode lines: the share error by the line of hotLines
    depth wrong       modes deep and parked: stacks from the chain's end on without the frames that its depth says, in
                      percent
    kernel share      mode kernel: samples in the kernel less the kernel's time, in points of percent
"""
import collections
import math
import re
import sys

# Where stacks end: the JVM's or the C library's beginning of a thread, or Java's.
ROOTS = re.compile(r"^(Truth\.main|java\.util\.concurrent\.ForkJoinWorkerThread\.run|java\.lang\.Thread\.run(With)?|java\.lang\.VirtualThread\.run"
                   r"|.*Continuation\.enter(Special)?0?|(.*\.)?start_thread|(.*\.)?clone3?|(.*\.)?_start"
                   r"|(.*\.)?__libc_start_main.*|(.*\.)?thread_native_entry.*|(.*\.)?ret_from_fork.*)$")
UNKNOWN = re.compile(r"^(\[?unknown\]?.*|\[?unknown_.*|break_.*|not_walkable.*|.*\[truncated\].*|\[?0x[0-9a-f]+\]?"
                     r"|[0-9a-f]{6,}|.*\.\[?unknown.*|\[[^\]]*\]|no_Java_frame|stale_jmethodID|GC_active|deoptimization)$")


def error(seen, truth):
    total, expected = sum(seen.values()), sum(truth.values())
    if not total or not expected:
        return float("nan")
    return 50 * sum(abs(seen.get(k, 0) / total - truth[k] / expected) for k in truth)


def noise(count, truth):
    """The mean of error() over samples of that many: E|binomial| is sqrt(2 p q / (pi n)) each."""
    total = sum(truth.values())
    if not count:
        return float("nan")
    return 50 * sum(math.sqrt(2 / math.pi * (t / total) * (1 - t / total) / count) for t in truth.values())


def kind_of(names, kinds):
    for name in names:
        method = name.rsplit(".", 1)[-1]
        if name.startswith("Truth.") and method in kinds:
            return method
        if "_" in name and name.split("_")[0] in kinds:  # made classes: madeA_17.run
            return name.split("_")[0]
    return None


def main():
    mode, truth_path, samples_path, source = sys.argv[1:]
    truth, process = {}, {}
    for line in open(truth_path):
        words = line.split()
        if words[:1] == ["truth"]:
            truth[words[1]] = int(words[2])
        elif words[:1] == ["process"]:
            process = {"user": int(words[1]), "kernel": int(words[2])}
    markers = {}
    for number, line in enumerate(open(source), 1):
        found = re.search(r"// LINE (\w+)", line)
        if found:
            markers[number] = found.group(1)
    seen, by_line = collections.Counter(), collections.Counter()
    total = broken = rooted = deep = wrong = kernel = 0
    for row in open(samples_path):
        thread, *frames = row.rstrip("\n").split("\t")
        frames = [frame.rsplit("@", 2) for frame in frames]
        names = [frame[0] for frame in frames]
        total += 1
        broken += any(UNKNOWN.match(name) for name in names) or not names
        rooted += bool(names) and bool(ROOTS.match(names[-1]))
        kernel += bool(frames) and frames[0][2] == "Kernel"
        if mode == "gc":
            kind = ("gcThreads" if thread.startswith("GC Thread") else
                    "compilerThreads" if re.match("C[12] Comp", thread) else
                    "javaThreads" if thread in ("java", "main", "DestroyJavaVM") else "otherThreads")
        elif mode == "lines":
            lines = [markers.get(int(line)) for name, line, _ in frames if name == "Truth.hotLines"]
            kind = lines[0] if lines else None
        else:
            kind = kind_of(names, truth)
        if kind:
            seen[kind] += 1
        if mode in ("deep", "parked") and "Truth.mix" in names:
            deep += 1
            called, calls = ("down", int(kind[4:])) if kind and mode == "deep" else (kind, 200)
            wrong += not kind or names.count(f"Truth.{called}") != calls + 1
    def tell(name, value):
        print("%s\t%.3f" % (name, value))
    tell("samples", total)
    if total == 0:
        return
    tell("share error %", error(seen, truth))
    tell("noise %", noise(sum(seen.values()), truth))
    if mode != "gc":
        part = sum(truth.values()) / sum(process.values())
        tell("found %", 100 * sum(seen.values()) / total / part)
    tell("broken %", 100 * broken / total)
    tell("rooted %", 100 * rooted / total)
    if mode in ("deep", "parked"):
        tell("depth wrong %", 100 * wrong / max(1, deep))
    if mode == "kernel":
        tell("kernel share off", 100 * kernel / total - 100 * process["kernel"] / sum(process.values()))


main()
