#!/usr/bin/env python3
"""chosen.py WORLD FILTER DIR: of WORLD/truth.json what a filter lets through goes to DIR/truth.json; prints its options."""
import json
import re
import sys

world, name, directory = sys.argv[1:]
with open(f"{world}/truth.json", encoding="utf-8") as file:
    told = json.load(file)
first = told[0]["time"]


def has(sample, pattern):
    return any(frame[0] and re.search(pattern, frame[0]) for frame in sample["frames"])


FILTERS = {
    "from": (["--from=50ms"], lambda s: s["time"] >= first + 50_000_000),
    "to": (["--to=0.12"], lambda s: s["time"] < first + 120_000_000),
    "thread": (["--thread=worker*", "--thread=103"], lambda s: s["comm"].startswith("worker") or s["tid"] == 103),
    "comm": (["--comm=jav?", "--pid=100"], lambda s: s["pid"] == 100),
    "pid": (["--pid=200"], lambda s: s["pid"] == 200),
    "include": (["--include=Class0[.]m[01]"], lambda s: has(s, r"Class0[.]m[01]")),
    "exclude": (["--exclude=Class1[.]m", "--exclude=function_4"], lambda s: not has(s, r"Class1[.]m|function_4")),
    "event": (["--event=cache-misses"], lambda s: s["event"] == 1),
}
options, passes = FILTERS[name]
chosen = [sample for sample in told if passes(sample)]
assert 0 < len(chosen) < len(told), f"{name} chooses {len(chosen)} of {len(told)} samples"
with open(f"{directory}/truth.json", "w", encoding="utf-8") as file:
    json.dump(chosen, file)
print(*options)
