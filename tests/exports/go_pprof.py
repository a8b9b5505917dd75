#!/usr/bin/env python3
"""What go tool pprof makes of a profile: go_pprof.py PPROF COLLAPSED SCORECARD PERF-TOP.

Read back, stack for stack, it is what was written as collapsed stacks; its total is the
scorecard's; its list of self times is perf report's (PERF-TOP: lines "SAMPLES  [.] SYMBOL").
"""
import collections
import json
import re
import subprocess
import sys

LINE = re.compile(r"^(.*) (\S*):(\d+):(\d+) s=(\d+)(\(.*\))?$")


def pprof(path, *options):
    command = ["go", "tool", "pprof", "-symbolize=none", *options, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def read_raw(text):
    """The samples of -raw: (thread, functions from the root on) -> samples, and all lines."""
    samples, locations = [], {}
    part = at = None
    for line in text.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
        elif part == "Samples:" and (found := re.match(r"^ +([0-9 ]+): ([0-9 ]*)$", line)):
            samples.append([int(found[1].split()[0]), found[2].split(), ""])
        elif part == "Samples:" and (found := re.search(r"thread:\[(.*?)\](?: |$)", line)):
            samples[-1][2] = found[1]
        elif part == "Locations":
            if found := re.match(r"^ *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)$", line):
                at, line = found[1], found[2]
                locations[at] = []
            found = LINE.match(line.strip())
            assert found, f"a line of -raw: {line}"
            locations[at].append((found[1], int(found[3])))
    return samples, locations


def fold(samples, locations):
    stacks = collections.Counter()
    for count, stack, thread in samples:
        names = [name for at in reversed(stack) for name, _ in reversed(locations[at])]
        stacks[";".join([thread or "[unknown]"] + [name.replace(";", ":") for name in names])] += count
    return stacks


def read_collapsed(path):
    with open(path, encoding="utf-8") as lines:
        return {stack: int(count) for stack, count in (line.rstrip("\n").rsplit(" ", 1) for line in lines)}


def top(text):
    flat = collections.Counter()
    for line in text.splitlines():
        if found := re.match(r"^ +(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+%  (.*)$", line):
            flat[found[2].removesuffix(" (partial-inline)").removesuffix(" (inline)")] += int(found[1])
    return flat


def perf_top(path):
    flat = collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if found := re.match(r"^ +(\d+) +\[.\] (.*?) *$", line):
                # Ours leave a symbol's version out: clock_gettime@@GLIBC_2.17.
                flat[re.sub(r" \((interpreted|inlined)\)$|@@?(?!plt$).*$", "", found[2])] += int(found[1])
    return flat


def main(path, collapsed, card, perf):
    with open(card, encoding="utf-8") as file:
        card = json.load(file)
    total = card["samples"]
    samples, locations = read_raw(pprof(path, "-raw", "-output=/dev/stdout"))
    assert sum(count for count, _, _ in samples) == total, "pprof's total is not the scorecard's"

    read_back, written = fold(samples, locations), read_collapsed(collapsed)
    differing = {stack for stack in read_back | written if read_back.get(stack) != written.get(stack)}
    assert not differing, f"{len(differing)} stacks differ, as {sorted(differing)[0]}"

    inlined = sum(1 for lines in locations.values() if len(lines) > 1)
    lines = sum(1 for lines in locations.values() for _, line in lines if line)
    assert inlined and lines, "no location has inlined methods, or none has a line"

    # perf gives self time to the compiled method, and calls what is interpreted the interpreter.
    ours = top(pprof(path, "-top", "-noinlines", "-nodecount=0", "-nodefraction=0", "-sample_index=samples"))
    theirs = perf_top(perf)
    assert sum(ours.values()) == total == sum(theirs.values()), (sum(ours.values()), total, sum(theirs.values()))
    interpreter = theirs.pop("Interpreter", 0)
    unnamed = sum(theirs.pop(name) for name in list(theirs) if re.match(r"^(0x)?[0-9a-f]+$", name))
    less = {name: (ours[name], count) for name, count in theirs.items() if ours[name] < count}
    assert not less, f"fewer samples in pprof than in perf report: {less}"
    more = sum((ours - theirs).values())
    assert more == interpreter + unnamed, f"{more} samples elsewhere, {interpreter} + {unnamed} in the interpreter"

    said = next((line for line in pprof(path, "-comments").splitlines() if line.startswith("verdict: ")), "nothing")
    assert said.startswith(f"verdict: {card['verdict']}") and card["verdict_reason"] in said, f"pprof says of the profile: {said}"

    file = pprof(path, "-top").splitlines()[0]
    assert file == "File: java", f"pprof calls the profile of a java command: {file}"
    for option in ("-lines", "-traces", "-tags"):
        assert pprof(path, option), f"nothing of {option}"
    tags = pprof(path, "-tags", "-sample_index=samples")
    threads = collections.Counter()
    for count, _, thread in samples:
        threads[thread] += count
    busiest, most = threads.most_common(1)[0]
    assert re.search(rf"^ +{most} *\(.*\): {re.escape(busiest)}$", tags, re.M), f"{busiest} {most}: {tags}"
    roots = pprof(path, "-top", "-cum", "-nodecount=0", "-nodefraction=0", "-tagroot=thread", "-sample_index=samples")
    assert re.search(rf" {most} +[\d.]+%  {re.escape(busiest)}$", roots, re.M), f"{busiest} {most}: {roots}"
    print(f"go tool pprof: {total} samples, {len(written)} stacks read back the same, {inlined} addresses with inlined methods")


if __name__ == "__main__":
    main(*sys.argv[1:])
