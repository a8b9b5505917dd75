#!/usr/bin/env python3
"""The tables of docs/async-profiler-results.md, from what bench/run.sh --peer async-profiler measured.

usage: tables.py HEADING=RESULTS.tsv[,RESULTS.tsv...]...

Medians of all rounds of a heading's files; in parentheses, the least and the most of the rounds. The summary, which
is docs/async-profiler.md's, has the headings' values in one cell.
"""
import collections
import statistics
import sys

WHO = ["asprof-cpu", "asprof-itimer", "jdperf", "jdperf-copy", "jdperf-fp", "jdperf-perf"]
MODES = {
    "compiled": "compiled: three methods",
    "lines": "lines: of one method, callees inlined",
    "deep": "deep: chains of 30 to 3000 calls",
    "interpreted": "interpreted",
    "jni": "jni: native code",
    "kernel": "kernel: system calls",
    "gc": "gc: the JVM's own threads",
    "churn": "churn: classes that come and go",
    "short": "short: threads of 5 ms",
    "virtual": "virtual threads",
    "parked": "parked: virtual threads, 200 calls deep",
}
# What a row is called, the measurement, whether it is divided by that without a profiler, the unit.
COSTS = [
    ("javac, wall time of the program alone", "cost javac: the program, wall s", True, "%"),
    ("its JVM's processor time", "cost javac: its JVM, cpu s", True, "%"),
    ("processor time of all processes, up to the finished profile", "cost javac: all processes, cpu s", True, "%"),
    ("wall time until the profile is ready", "cost javac: until all is done, wall s", True, "%"),
    ("its JVM's peak memory", "cost javac: its JVM, peak MB", True, "%"),
    ("the profile", "cost javac: result, MB", False, "MB"),
    ("a JVM that prints hello, until the profile is ready", "cost hello: until all is done, wall s", False, "s"),
    ("`java -version`, until the profile is ready", "cost java -version: until all is done, wall s", False, "s"),
]
# Of the summary: what a row is called, the measurement, whether it is divided by that without a profiler, the form.
SUMMARY = [
    ("error of the shares, `compiled`, %", "truth compiled: share error %", False, "%.1f"),
    ("error of the shares, `deep`, %", "truth deep: share error %", False, "%.1f"),
    ("error of the shares, `jni`, %", "truth jni: share error %", False, "%.1f"),
    ("samples with an unnamed frame, `churn`, %", "truth churn: broken %", False, "%.1f"),
    ("time found, `short`, %", "truth short: found %", False, "%.0f"),
    ("incomplete stacks of virtual threads, `parked`, %", "truth parked: depth wrong %", False, "%.1f"),
    ("javac's wall time, %", "cost javac: until all is done, wall s", True, "%.0f"),
    ("processor time of all processes, %", "cost javac: all processes, cpu s", True, "%.0f"),
    ("javac's profile, MB", "cost javac: result, MB", False, "%.1f"),
    ("a JVM that prints hello, s", "cost hello: until all is done, wall s", False, "%.2f"),
    ("`java -version`, s", "cost java -version: until all is done, wall s", False, "%.2f"),
]


def read(paths):
    found = collections.defaultdict(list)
    for path in paths.split(","):
        with open(path, encoding="utf-8") as rows:
            for row in rows:
                what, who, value = row.rstrip("\n").split("\t")
                found[what, who].append(float(value))
    return found


def table(first, rows):
    print("| %s | %s |" % (first, " | ".join(WHO)))
    print("|---" * (len(WHO) + 1) + "|")
    for name, cells in rows:
        print("| %s | %s |" % (name, " | ".join(cells)))
    print()


def median(found, what, who, form="%.1f"):
    values = found.get((what, who))
    return form % statistics.median(values) if values else "-"


def truth_rows(found, form, *measures):
    for mode, name in MODES.items():
        if any((f"truth {mode}: runs that failed", who) in found for who in WHO):
            yield name, [form % tuple(median(found, f"truth {mode}: {measure}", who) for measure in measures) for who in WHO]


def cost_rows(found):
    for name, what, is_ratio, unit in COSTS:
        cells = []
        for who in WHO:
            values = found.get((what, who))
            if not values:
                cells.append("-")
            elif is_ratio:
                percents = ratios(found, what, who)
                cells.append("%.0f (%.0f-%.0f)" % (statistics.median(percents), min(percents), max(percents)))
            else:
                cells.append("%.2f" % statistics.median(values))
        without = found.get((what, "none"))
        yield name + (", % of without" if is_ratio else f", {unit}" + (
            " (without: %.2f)" % statistics.median(without) if without else "")), cells


def ratios(found, what, who):
    """Rounds are interleaved: each is held against the same round's without a profiler."""
    return [100 * a / b for a, b in zip(found.get((what, who), []), found.get((what, "none"), []))]


def summary_rows(measured):
    for name, what, is_ratio, form in SUMMARY:
        cells = []
        for who in ["none"] + WHO:
            values = [ratios(found, what, who) if is_ratio else found.get((what, who)) for found in measured.values()]
            cells.append("; ".join(form % statistics.median(value) for value in values if value) or "-")
        if not is_ratio and cells[0] != "-":
            name += f" (without: {cells[0]})"
        yield name, cells[1:]


def main():
    measured = {heading: read(paths) for heading, paths in (argument.split("=", 1) for argument in sys.argv[1:])}
    table("; ".join(measured), summary_rows(measured))
    for heading, found in measured.items():
        rounds = len(found.get(("truth compiled: samples", "asprof-cpu"), []))
        print(f"## {heading}\n")
        print(f"Error of the shares in percent; in parentheses, the mean error of a perfect sampler with as many samples (rounds: {rounds}):\n")
        table("program", truth_rows(found, "%s (%s)", "share error %", "noise %"))
        print("Share of samples, in percent of the share of processor time (gc: by thread, so not applicable):\n")
        table("program", (row for row in truth_rows(found, "%s", "found %") if not row[0].startswith("gc")))
        print("Samples with an unnamed frame, and stacks that reach the start of their thread, in percent:\n")
        table("program", truth_rows(found, "%s, %s", "broken %", "rooted %"))
        print("Stacks of known depth without exactly the right frames, in percent; samples in 5 seconds:\n")
        table("", [(f"`{mode}`, wrong depth, %", [median(found, f"truth {mode}: depth wrong %", who) for who in WHO])
                   for mode in ("deep", "parked")] + [
                   ("`compiled`, samples", [median(found, "truth compiled: samples", who, "%.0f") for who in WHO])])
        costs = len(found.get(("cost hello: until all is done, wall s", "none"), []))
        print(f"Cost; {costs} interleaved rounds, median (least-most):\n")
        table("", cost_rows(found))
        runs = {who: [sum(v) for (what, w), v in found.items() if w == who and what.endswith("runs that failed")] for who in WHO}
        count = {who: sum(len(v) for (what, w), v in found.items() if w == who and what.endswith("runs that failed")) for who in WHO}
        table("runs that failed", [("of the truth programs", ["%d of %d" % (sum(runs[who]), count[who]) for who in WHO])])


main()
