#!/usr/bin/env python3
"""How often the innermost methods of a sample are wrong where HotSpot describes code at calls only.

Runs a program with the agent from its start, so that its dump describes all of its code, under perf. Then looks at each
sample in compiled code as if only the places behind calls were described, as in code that was compiled before an agent
was attached, and compares with the whole description: the methods of the next place behind a call, as HotSpot (and so
async-profiler and JFR) has it; those that it has in common with the place before, as jdtool has it; and the compiled
method alone. Wrong: a method was not there. Takes perf.

usage: bench/safepoints.py [--build DIR] -- java ...
"""
import argparse
import bisect
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Code:
    """A compiled method: its inline tree, which places it describes, and those behind calls."""

    def __init__(self, address):
        self.address, self.stamp, self.parents, self.ranges, self.bytes = address, 0, [], [], bytearray()

    def finish(self):
        self.ends = [end for end, _ in self.ranges]
        self.calls = [(end, node) for end, node in self.ranges if self.is_behind_call(end)]
        self.call_ends = [end for end, _ in self.calls]

    def is_behind_call(self, end):
        code = self.bytes
        return (end >= 5 and code[end - 5] == 0xE8) or (end >= 2 and code[end - 2] == 0xFF and code[end - 1] & 0xF8 == 0xD0)

    def callers(self, node):
        while node >= 0:
            yield node
            node = self.parents[node]

    def common(self, one, other):
        others = set(self.callers(other))
        return next(node for node in self.callers(one) if node in others)


def read_dump(jdtool, path):
    codes, code = [], None
    with subprocess.Popen([jdtool, "dump", "--code", path], stdout=subprocess.PIPE, text=True, errors="replace") as dump:
        for line in dump.stdout:
            if record := re.match(r"0x\w+ (\w+) +(\d+) ", line):
                if about := re.search(r"DEBUG_INFO.* address 0x(\w+)", line):
                    code = Code(int(about[1], 16))
                elif record[1] == "LOAD" and code:
                    code.stamp = int(record[2])
                    codes.append(code)
                else:
                    code = None
            elif code is None:
                continue
            elif node := re.match(r"    node \d+ .*?(?:, called by node (\d+)(?: at line \d+)?)?$", line):
                code.parents.append(int(node[1]) if node[1] else -1)
            elif part := re.match(r"    range \+\w+\.\.\+(\w+) node (\d+) ", line):
                code.ranges.append((int(part[1], 16), int(part[2])))
            elif row := re.match(r"    \+\w+ +((?:[0-9a-f]{2} ?)+)$", line):
                code.bytes += bytes.fromhex(row[1])
    for code in codes:
        code.finish()
    return sorted((code for code in codes if code.ranges), key=lambda code: code.address)


def read_samples(path):
    with subprocess.Popen(["perf", "script", "-i", path, "-F", "time,ip"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as script:
        for line in script.stdout:
            if sample := re.match(r"\s*([\d.]+):\s+(\w+)", line):
                yield float(sample[1]) * 1e9, int(sample[2], 16)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    counts, methods = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        agent = f"-agentpath:{os.path.abspath(options.build)}/libjdagent.so=dir={scratch}"
        data = os.path.join(scratch, "perf.data")
        done = subprocess.run(["perf", "record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "999", "-o", data,
                               options.command[0], agent, *options.command[1:]], stdout=subprocess.DEVNULL, check=False)
        dumps = glob.glob(os.path.join(scratch, "**", "jit-*.dump"), recursive=True)
        if done.returncode or len(dumps) != 1:
            sys.exit(f"safepoints.py: the program ended with {done.returncode} and left {len(dumps)} dumps")
        codes = read_dump(os.path.join(options.build, "jdtool"), dumps[0])
        starts = [code.address for code in codes]
        for time, address in read_samples(data):
            at = bisect.bisect_right(starts, address)
            there = [code for code in codes[max(at - 8, 0):at] if address < code.address + len(code.bytes) and code.stamp <= time]
            code = max(there, key=lambda code: code.stamp, default=None)
            place = bisect.bisect_right(code.ends, address - code.address) if code else 0
            if not code or place == len(code.ranges):
                continue
            real = set(code.callers(code.ranges[place][1]))
            after = bisect.bisect_right(code.call_ends, address - code.address)
            following = code.calls[after][1] if after < len(code.calls) else 0
            before = code.calls[after - 1][1] if after else 0
            counts["all"] += 1
            for rule, node in (("next call", following), ("common", code.common(before, following)), ("compiled method", 0)):
                said = set(code.callers(node))
                counts[rule, "wrong"] += not said <= real
                counts[rule, "exact"] += said == real
                methods[rule] += len(said)
            methods["all"] += len(real)
    total = max(counts["all"], 1)
    print(f"{counts['all']} samples in compiled code, {methods['all'] / total:.2f} methods each")
    for rule in ("next call", "common", "compiled method"):
        print(f"{rule}: {100 * counts[rule, 'wrong'] / total:.1f} % wrong, {100 * counts[rule, 'exact'] / total:.1f} % exact, "
              f"{methods[rule] / total:.2f} methods each")


if __name__ == "__main__":
    main()
