#!/usr/bin/env python3
"""How often jdperf diff finds a planted change, and how often it alarms without one.

Records tests/shell/Shop.java (--runs times before, as often after the change, alternately; --days, some 5 s), and
leaves the first seconds out, in which the JIT compiles (--from). Then --pairs times: draws --side runs for each side without replacement, once all from before, once from before and after.
Recorded once, so the pairs are not independent of each other. After the change one method, a fifth of the program at
592 passes, does 622. Ends with 1 if more than 10 % of equal pairs alarm, or the method is not found in 90 % of the others.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def record(options, jdperf, scratch, passes, number):
    profile = os.path.join(scratch, f"{passes}.{number}")
    done = subprocess.run([jdperf, "record", "-F", str(options.frequency), "-o", profile, "--", "java", "-cp", scratch, "Shop",
                           str(options.days), str(passes)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3):  # 3: samples are missing, as on a busy machine
        sys.exit(done.stderr.decode())
    return profile


def changes(options, jdperf, before, after):
    """The significant changes of a pair."""
    done = subprocess.run([jdperf, "diff", "--json", "--from", options.start, "--before", *before, "--after", *after], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr.decode())
    return [change for event in json.loads(done.stdout)["events"] for change in event["changes"] if change["significant"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=36)
    parser.add_argument("--side", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--days", type=int, default=1250)
    parser.add_argument("--frequency", type=int, default=4999)
    parser.add_argument("--from", dest="start", default="2s")
    parser.add_argument("--passes", type=int, nargs=2, default=[592, 622])
    options = parser.parse_args()
    jdperf = os.environ.get("JDPERF", os.path.join(HERE, "..", "scripts", "jdperf"))
    os.environ.setdefault("JDAGENT_BUILD", os.path.abspath(os.path.join(HERE, "..", "build")))
    dice = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
        subprocess.run(["javac", "-nowarn", "-d", scratch, os.path.join(HERE, "..", "tests", "shell", "Shop.java")], check=True)
        pools = [[], []]
        for number in range(options.runs):
            for side in (0, 1) if number % 2 else (1, 0):
                pools[side].append(record(options, jdperf, scratch, options.passes[side], number))
        alarms = found = 0
        for _ in range(options.pairs):
            equal = dice.sample(pools[0], 2 * options.side)
            alarms += bool(changes(options, jdperf, equal[:options.side], equal[options.side:]))
            found += any(change["what"] == "self" and change["method"].startswith("Shop.checksum") and change["loss"]
                         for change in changes(options, jdperf, equal[:options.side], dice.sample(pools[1], options.side)))
    print(f"{options.runs} runs of each, pairs of {options.side} and {options.side}: found in {found} of {options.pairs},"
          f" {alarms} of {options.pairs} equal pairs alarm, load {os.getloadavg()[0]:.0f}")
    sys.exit(alarms > options.pairs / 10 or found < options.pairs * 9 / 10)


main()
