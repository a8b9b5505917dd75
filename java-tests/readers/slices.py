#!/usr/bin/env python3
"""Holds the slices of jdperf watch against what Phases wrote: a class that is named in a slice ran in it.

usage: slices.py LOG SLICE...

LOG is what Phases wrote; SLICE are pprof files. Prints "SAMPLES WRONG", samples that have a frame of some
class and those whose class did not run between the slice's beginning and end, and the first of these.
"""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/exports"))
import stacks  # pylint: disable=wrong-import-position

# What the slices count from; nobody sets the clock of a machine while this test runs.
WALL = time.time_ns() - time.monotonic_ns()
# A sample that came late is in the next slice (jdtool/watch/slices.h): perf wakes up so often.
LATE = 300_000_000


def main():
    runs = {}
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            number, start, _, end = map(int, line.split())
            runs[number] = (start + WALL, end + WALL)
    samples = wrong = 0
    for path in sys.argv[2:]:
        profile = stacks.message(stacks.load(path), stacks.PPROF)
        begin, end = profile["time"], profile["time"] + profile["duration"]
        for sample in stacks.pprof(path):
            names = {match[1] for frame in sample.stack if (match := re.match(r"Phase_(\d+)\.", frame))}
            if not names:
                continue
            samples += sample.count
            if len(names) > 1 or any(runs[int(name)][0] > end or runs[int(name)][1] < begin - LATE for name in names):
                wrong += sample.count
                print(f"in the slice from {begin} to {end}: {names} of {sample.stack}: "
                      f"{[runs[int(name)] for name in names]}", file=sys.stderr)
    print(samples, wrong)


main()
