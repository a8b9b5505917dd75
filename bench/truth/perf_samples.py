#!/usr/bin/env python3
"""The samples of a profile directory of jdperf, as JfrSamples.java prints those of async-profiler.

usage: perf_samples.py JDTOOL DIRECTORY

One sample a line: the thread, then the frames from the leaf on as NAME@LINE@KIND, parted by tabs. What jdtool
export writes for the Firefox Profiler has both: every frame, and each call's own line.
"""
import json
import os
import subprocess
import sys
import tempfile

KINDS = {"Kernel": "Kernel", "Java, interpreted": "Interpreted", "Java, C1": "JIT compiled", "Java, C2": "JIT compiled",
         "Java, compiled": "JIT compiled"}


def main():
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "profile.json")
        subprocess.run([sys.argv[1], "export", "-i", sys.argv[2], "-f", "firefox", "--no-source", "-o", path], check=True,
                       stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
    categories = [category["name"] for category in profile["meta"]["categories"]]
    shared = profile["shared"]
    stacks, frames, strings = shared["stackTable"], shared["frameTable"], shared["stringArray"]
    texts = []
    for i in range(frames["length"]):
        name = strings[shared["funcTable"]["name"][frames["func"][i]]].split("(")[0]
        kind = "Inlined" if frames["inlineDepth"][i] else KINDS.get(categories[frames["category"][i]], "Native")
        texts.append("%s@%d@%s" % (name, frames["line"][i] or 0, kind))
    for thread in profile["threads"]:
        for stack in thread["samples"]["stack"]:
            row = [thread["name"]]
            while stack is not None:
                row.append(texts[stacks["frame"][stack]])
                stack = stacks["prefix"][stack]
            print("\t".join(row))


main()
