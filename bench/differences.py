#!/usr/bin/env python3
"""How often jdperf diff finds a planted change, and how often it alarms without one.

Records tests/shell/Shop.java (--days, some 5 s) by turns before and after the change, as jdperf compare does, for
--runs rounds. Then compares: --pairs equal pairs, all from before or all from after the change, and half as many
with the change between them. A pair is what jdperf compare could have recorded: its runs follow each other, none
stands on both sides, and of two neighbours chance says which is the side before. Different pairs may share runs:
the number of pairs that share none is printed, too. After the change one method, a fifth of the program at 592
passes, does 622. Ends with 1 if more than 10 % of equal pairs alarm, or the method is not found in 90 % of the others.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def record(options, jdperf, pool, side, number):
    """The profile of a run, which a pool that was kept may have already."""
    profile = os.path.join(pool, f"{('before', 'after')[side]}.{number}")
    if os.path.exists(os.path.join(profile, "scorecard.json")):
        return profile
    done = subprocess.run([jdperf, "record", "-F", str(options.frequency), "-o", profile, "--", "java", "-cp", pool, "Shop",
                           str(options.days), str(options.passes[side])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3):  # 3: samples are missing, as on a busy machine
        sys.exit(done.stderr.decode())
    return profile


def changes(options, jdperf, before, after):
    """The significant changes of a pair."""
    start = ["--from", options.start] if options.start else []
    done = subprocess.run([jdperf, "diff", "--json", *start, "--before", *before, "--after", *after], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr.decode())
    return [change for event in json.loads(done.stdout)["events"] for change in event["changes"] if change["significant"]]


def equal_pair(dice, runs, side):
    """Runs that follow each other, two by two: chance says which is before."""
    first = dice.randrange(len(runs) - 2 * side + 1)
    twos = [dice.sample(runs[at:at + 2], 2) for at in range(first, first + 2 * side, 2)]
    return [two[0] for two in twos], [two[1] for two in twos]


def planted_pair(dice, pools, side):
    """So many rounds of twice as many that follow each other."""
    first = dice.randrange(max(len(pools[0]) - 2 * side, 0) + 1)
    rounds = sorted(dice.sample(range(first, min(first + 2 * side, len(pools[0]))), side))
    return [pools[0][at] for at in rounds], [pools[1][at] for at in rounds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--side", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--days", type=int, default=1250)
    parser.add_argument("--frequency", type=int, default=4999)
    parser.add_argument("--from", dest="start", help="default: that of jdperf diff")
    parser.add_argument("--passes", type=int, nargs=2, default=[592, 622])
    parser.add_argument("--pool", help="directory that keeps the runs; what it has already is not recorded again")
    options = parser.parse_args()
    jdperf = os.environ.get("JDPERF", os.path.join(HERE, "..", "scripts", "jdperf"))
    os.environ.setdefault("JDAGENT_BUILD", os.path.abspath(os.path.join(HERE, "..", "build")))
    dice = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
        pool = options.pool or scratch
        os.makedirs(pool, exist_ok=True)
        subprocess.run(["javac", "-nowarn", "-d", pool, os.path.join(HERE, "..", "tests", "shell", "Shop.java")], check=True)
        pools = [[], []]
        for number in range(options.runs):
            for side in (0, 1) if number % 2 else (1, 0):
                pools[side].append(record(options, jdperf, pool, side, number))
        alarms = found = 0
        for pair in range(options.pairs):
            alarms += bool(changes(options, jdperf, *equal_pair(dice, pools[pair % 2], options.side)))
        for _ in range(options.pairs // 2):
            found += any(change["what"] == "self" and change["method"].startswith("Shop.checksum") and change["loss"]
                         for change in changes(options, jdperf, *planted_pair(dice, pools, options.side)))
    apart = options.runs // (2 * options.side)
    print(f"{options.runs} runs of each, pairs of {options.side} and {options.side}: found in {found} of {options.pairs // 2},"
          f" {alarms} of {options.pairs} equal pairs alarm ({2 * apart} share no run), load {os.getloadavg()[0]:.0f}")
    sys.exit(alarms > options.pairs / 10 or found < options.pairs // 2 * 9 / 10)


main()
