#!/usr/bin/env python3
"""The samples of a profile directory of jdperf, as JfrSamples.java prints those of async-profiler.

usage: perf_samples.py DIRECTORY

One sample a line: the thread, then the frames from the leaf on as NAME@LINE@KIND, parted by tabs.
perf script gives the chains (whole ones: by itself it cuts them at 127 frames), addr2line the inlined
frames and lines of the JVM's image, as perf itself would ask for them, but all at once.
"""
import collections
import os
import re
import subprocess
import sys

FRAME = re.compile(r"^\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \(([^()]*)\)$")


def chains(path):
    """(thread, [(address, symbol, file)]) of each sample."""
    script = subprocess.Popen(["perf", "script", "-i", path, "--max-stack", "4000", "--no-inline",
                               "-F", "comm,tid,event,ip,sym,dso"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace")
    thread, frames = None, []
    for line in script.stdout:
        if not line.strip():
            if thread is not None:
                yield thread, frames
            thread, frames = None, []
        elif line[0] not in " \t":
            thread = re.match(r"(.*?)\s+-?\d+ ", line).group(1)
        elif thread is None:  # comm with blanks in front
            thread = re.match(r"\s*(.*?)\s+-?\d+ ", line).group(1)
        else:
            found = FRAME.match(line.rstrip("\n"))
            frames.append((int(found.group(1), 16), found.group(2), found.group(3)) if found
                          else (0, "[unknown]", ""))
    if thread is not None:
        yield thread, frames
    script.wait()


def inlined(image, addresses):
    """{address: [(name, line)]}, innermost first, the compiled method last."""
    addresses = sorted(addresses)
    text = "".join("0x%x\n" % a for a in addresses)
    out = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", image], input=text, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, errors="replace").stdout.splitlines()
    result, at = {}, 0
    while at < len(out):
        address = int(out[at], 16)
        at += 1
        frames = []
        while at < len(out) and not out[at].startswith("0x"):
            line = re.search(r":(\d+)", out[at + 1])
            frames.append((out[at], int(line.group(1)) if line else 0))
            at += 2
        result[address] = frames
    return result


def asked(address, image, depth):
    """A return's address is that of the call's instruction, which ends before it; interpreted frames
    have addresses that stand for a method and a line."""
    return address - (depth > 0 and not image.endswith("-frames.so"))


def main():
    path = os.path.join(sys.argv[1], "perf.jit.data")
    samples = list(chains(path))
    wanted = collections.defaultdict(set)
    for _, frames in samples:
        for depth, (address, _, image) in enumerate(frames):
            if ".jit-" in image or "/jit-" in image:
                wanted[image].add(asked(address, image, depth))
    lines = {image: inlined(image, addresses) for image, addresses in wanted.items()}
    for thread, frames in samples:
        row = [thread]
        for depth, (address, symbol, image) in enumerate(frames):
            if image.startswith("[kernel") or image.startswith("[guest") or symbol.endswith("_[k]"):
                kind = "Kernel"
            elif image in lines:
                kind = "Interpreted" if symbol.endswith(" (interpreted)") else "JIT compiled"
            else:
                kind = "Native"
            inner = lines.get(image, {}).get(asked(address, image, depth), [])
            for name, line in inner[:-1]:
                row.append("%s@%d@Inlined" % (name.split("(")[0], line))
            line = inner[-1][1] if inner else 0
            row.append("%s@%d@%s" % (symbol.removesuffix(" (interpreted)").split("(")[0], line, kind))
        print("\t".join(row))


main()
