"""check.py DIR [--names]: whether all exports in DIR (files called by their format) tell the same.

--names: threads may have been renamed, so only stacks are compared. With DIR/truth.json each is held against that, too.
"""
import collections
import json
import os
import sys

import stacks

directory = sys.argv[1]
threads = "--names" not in sys.argv
truth = stacks.collapsed(f"{directory}/collapsed", threads)
sample_count = sum(truth.values())
stacks.check(sample_count > 0, "no samples")
for name, reader in stacks.READERS.items():
    path = f"{directory}/{name}"
    if not os.path.exists(path):
        continue
    samples = reader(path)
    told = truth
    if name == "jfr": # which has no blanks between a method's parameters
        samples = [sample._replace(stack=tuple(frame.replace(", ", ",") for frame in sample.stack)) for sample in samples]
        told = collections.Counter()
        for line, count in truth.items():
            told[line.replace(", ", ",")] += count
    stacks.same(stacks.collapsed_text(samples, threads), told, f"{name} tells other stacks than collapsed")
    print(f"{name}: {sum(sample.count for sample in samples)} samples, {os.path.getsize(path)} bytes")

if os.path.exists(f"{directory}/truth.json"):
    KERNEL, UNKNOWN = 1, 0
    with open(f"{directory}/truth.json", encoding="utf-8") as file:
        told = json.load(file)

    def name_of(frame):
        if frame[0] is not None:
            return frame[0]
        return {KERNEL: "[kernel.kallsyms]", UNKNOWN: "[unknown]"}.get(frame[1], "[libno names.so]")

    expected = [stacks.Sample(sample["comm"], tuple(name_of(frame) for frame in reversed(sample["frames"])), 1,
                              sample["weight"], sample["event"], sample["time"]) for sample in told]
    stacks.same(stacks.collapsed_text(expected), truth, "collapsed tells other stacks than there were")
    for name in ("pprof", "otlp", "otlp-json", "firefox"):
        said = stacks.verdict(name, f"{directory}/{name}")
        stacks.check(said == 'fair: 91.2 % of "all"', f"{name} says of the profile: {said}") # resolved_samples.h
    offset = 1790000000000000000
    times = collections.Counter(sample.time + offset for sample in expected)
    stacks.same(collections.Counter(sample.time for sample in stacks.otlp(f"{directory}/otlp")), times, "otlp's times")
    times = collections.Counter(round((sample.time - expected[0].time) / 1e6, 6) for sample in expected)
    stacks.same(collections.Counter(sample.time for sample in stacks.firefox(f"{directory}/firefox")), times, "firefox' times")
    read = stacks.jfr(f"{directory}/jfr")
    stacks.same(collections.Counter(sample.time for sample in read), collections.Counter(sample.time for sample in expected), "jfr's times")
    weighed = collections.Counter((sample.time, sample.weight) for sample in read if sample.weight is not None)
    times = {time for time, _ in weighed} # samples of the profile's own event weigh nothing
    stacks.same(weighed, collections.Counter((sample.time, sample.weight) for sample in expected if sample.time in times), "jfr's weights")
    weights = sum(sample.weight for sample in expected)
    for name, reader in stacks.READERS.items():
        if name not in ("firefox", "jfr"): # have no weights of events that are no clocks, and of clocks
            stacks.check(sum(sample.weight for sample in reader(f"{directory}/{name}")) == weights, f"{name}'s weights")

def report_of(samples):
    """Own and total samples by method, as the simplest reader counts them."""
    own, total = collections.Counter(), collections.Counter()
    callers = collections.Counter()
    for sample in samples:
        if sample.stack:
            own[sample.stack[-1]] += sample.count
        for name in set(sample.stack):
            total[name] += sample.count
        for pair in set(zip(sample.stack, sample.stack[1:])):
            callers[pair] += sample.weight
    return own, total, callers


if os.path.exists(f"{directory}/report"):
    with open(f"{directory}/report", encoding="utf-8") as file:
        report = json.load(file)
    samples = stacks.pprof(f"{directory}/pprof")
    own, total, callers = report_of(samples)
    told_own, told_total, told_callers = collections.Counter(), collections.Counter(), collections.Counter()
    for method in report["methods"]:
        told_own[method["name"]] += method["self_samples"]
        told_total[method["name"]] += method["total_samples"]
        for caller in method["callers"]:
            told_callers[report["methods"][caller["method"]]["name"], method["name"]] += sum(caller["total"])
        stacks.check(all(sum(line["self"]) <= sum(method["self"]) for line in method["lines"]), "a line has more than its method")
    stacks.same(+told_own, own, "report's own samples")
    # Functions of one name in two files are two; their totals can count a stack twice.
    names = collections.Counter(method["name"] for method in report["methods"])
    alone = [name for name in names if names[name] == 1]
    stacks.same({name: told_total[name] for name in alone}, {name: total[name] for name in alone}, "report's total samples")
    stacks.same({pair: value for pair, value in told_callers.items() if pair[0] in alone and pair[1] in alone},
                {pair: value for pair, value in callers.items() if pair[0] in alone and pair[1] in alone}, "report's callers")
    stacks.check(report["samples"] == sum(sample.count for sample in samples), "report's samples")
    print(f"report: {len(report['methods'])} methods")
print(f"all tell the same {len(truth)} stacks of {sample_count} samples")
