#!/usr/bin/env python3
"""Frames in generated code of a profile that samply saved: how many have a name, how many have none.

usage: samply_profile.py PROFILE CODECACHE DUMP

CODECACHE is what `jcmd PID Compiler.codecache` printed. samply puts the frames that a dump names under a library of the dump's
name; an address that it knows nothing of is its own name, in hex, of no library. Behind a frame of a native file, which may
have no frame pointers, whatever a register held is taken for frames: only what is before it counts.
"""
import gzip
import json
import re
import struct
import sys

HEX = re.compile(r"0x[0-9a-f]+")


def first_bytes(dump):
    """Where the dump's pieces of code begin; a torn record ends it."""
    with open(dump, "rb") as file:
        data = file.read()
    at, starts = struct.unpack_from("<I", data, 8)[0], set()
    while at + 40 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 0:  # JIT_CODE_LOAD
            starts.add(struct.unpack_from("<Q", data, at + 32)[0])
        if size < 16:
            break
        at += size
    return starts


def main():
    starts = first_bytes(sys.argv[3])
    with gzip.open(sys.argv[1]) as file:
        profile = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        bounds = re.findall(r"bounds \[0x([0-9a-f]+), 0x[0-9a-f]+, 0x([0-9a-f]+)\]", file.read())
    ranges = [(int(start, 16), int(end, 16)) for start, end in bounds]
    named = unnamed = 0
    for thread in profile["threads"]:
        strings, functions, stacks = thread["stringArray"], thread["funcTable"], thread["stackTable"]
        resources = thread["resourceTable"]["lib"]

        def kind(frame):
            """Of generated code with a name, without one; else whether the stack can be believed up to its caller."""
            function = thread["frameTable"]["func"][frame]
            name, resource = strings[functions["name"][function]], functions["resource"][function]
            library = profile["libs"][resources[resource]]["name"] if resource >= 0 else ""
            bare = HEX.fullmatch(name)
            if re.match(r"jit-\d+\.dump", library):
                return "unnamed" if bare else "named"
            if bare and resource < 0 and any(start <= int(name, 16) < end for start, end in ranges):
                return "before" if int(name, 16) + 1 in starts else "unnamed"
            return "kernel" if library.startswith("[kernel") else "native"

        kinds = [kind(frame) for frame in range(thread["frameTable"]["length"])]
        for stack in thread["samples"]["stack"]:
            inner = None
            while stack is not None and kinds[stacks["frame"][stack]] != "native":
                kind_here = kinds[stacks["frame"][stack]]
                named += kind_here == "named"
                unnamed += kind_here == "unnamed" or (kind_here == "before" and inner != "kernel")
                inner = kind_here
                stack = stacks["prefix"][stack]
    print(named, unnamed)


if __name__ == "__main__":
    main()
