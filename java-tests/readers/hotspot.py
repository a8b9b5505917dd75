#!/usr/bin/env python3
"""What KDAB hotspot makes of a result of jdtool inject: reads what its hotspot-perfparser writes.

usage: hotspot.py PERFPARSER RESULT [EXPANDED]

Every frame in an image of RESULT must have a name. (hotspot takes all from an image's base, far below
the code, to its end for the image's; what C code without frame pointers left in a chain may be an
address there that is mapped from no file at that time, as perf knows. Such frames are told of, but are none.) With EXPANDED, a result of the same recording
whose call chains perf script shows, the frames in generated code of each sample must be the same.

The stream (perfparser's perfunwind.cpp): "QPERFSTREAM\0", a version, then messages, each its size
(little endian) and a payload of QDataStream (big endian) that begins with its kind.
"""
import collections
import re
import struct
import subprocess
import sys

LOCATION, SYMBOL, STRING, ERROR, SAMPLE, TRACEPOINT = 3, 4, 5, 8, 13, 14


def messages(stream):
    at = len(b"QPERFSTREAM\0") + 4
    while at < len(stream):
        (size,) = struct.unpack_from("<I", stream, at)
        yield stream[at + 4], stream[at + 5:at + 4 + size]
        at += 4 + size


class Profile:
    """Samples as chains of frames, innermost first, and what was said to be wrong."""

    def __init__(self, parser, path):
        run = subprocess.run([parser, "--input", path], capture_output=True, check=True)
        self.strings, self.parents, self.symbols, self.addresses = {-1: ""}, {}, {}, {}
        self.samples, self.errors = [], []
        for kind, payload in messages(run.stdout):
            self.take(kind, payload)

    def take(self, kind, payload):
        if kind == STRING:
            number, size = struct.unpack_from(">iI", payload)
            self.strings[number] = payload[8:8 + size].decode("utf-8", "replace")
        elif kind == LOCATION:
            number, address, _, _, _, _, parent = struct.unpack_from(">iQiIiii", payload)
            self.parents[number] = parent
            self.addresses[number] = address
        elif kind == SYMBOL:
            number, name, _, path = struct.unpack_from(">iiii", payload)
            self.symbols[number] = name, path
        elif kind in (SAMPLE, TRACEPOINT):
            _, tid, time, _, count = struct.unpack_from(">iiQII", payload)
            chain = struct.unpack_from(f">{count}i", payload, 24)
            self.samples.append((tid, time, chain))
        elif kind == ERROR:
            code, size = struct.unpack_from(">iI", payload)
            self.errors.append((code, payload[8:8 + size].decode("utf-16-be", "replace")))

    def frames(self, location):
        """Names and paths of an address, as hotspot shows them: the function's entry that the
        parser puts between an address and its caller is none."""
        skip = False
        while location != -1:
            if not skip:
                symbol = self.symbols.get(location)
                if symbol is None:
                    symbol = self.symbols.get(self.parents[location], (-1, -1))
                    skip = True
                yield self.strings[symbol[0]], self.strings[symbol[1]]
            else:
                skip = False
            location = self.parents[location]


def is_image(path):
    return re.search(r"-java(-frames|\.\d+)?\.so$", path) is not None


def plain(name):
    return re.sub(r" \((inlined|interpreted)\)$", "", name)


def from_perf(path):
    """The same of perf script: by thread and time the names of frames in images."""
    script = subprocess.run(
        ["perf", "script", "-i", path, "-F", "tid,time,ip,sym,dso", "--ns", "--max-stack", "10000"],
        capture_output=True, text=True, errors="replace", check=True)
    samples = collections.defaultdict(list)
    chain = None
    for line in script.stdout.splitlines():
        head = re.fullmatch(r"\s*(\d+)\s+(\d+)\.(\d+):\s*", line)
        frame = re.fullmatch(r"\s+[0-9a-f]+ (.*) \((.*)\)", line)
        # A name that is as long as a frame may be runs into the file's.
        frame = frame or re.fullmatch(r"\s+[0-9a-f]+ (.*)\((/[^()]*)\)", line)
        if head:
            chain = []
            time = int(head[2]) * 10**9 + int(head[3])
            samples[int(head[1]), time].append(chain)
        elif frame and is_image(frame[2]):
            chain.append(plain(frame[1]))
    return samples


def image_mappings(path):
    """Where images are mapped and since when, [(start, end, time)]."""
    script = subprocess.run(["perf", "script", "-i", path, "--show-mmap-events", "-F", "tid,time", "--ns"],
                            capture_output=True, text=True, errors="replace", check=True)
    found = re.findall(r"(\d+)\.(\d{9}): +PERF_RECORD_MMAP2? .*?\[0x([0-9a-f]+)\(0x([0-9a-f]+)\).* (/\S+)$",
                       script.stdout, re.M)
    return sorted({(int(at, 16), int(at, 16) + int(size, 16), int(seconds) * 10**9 + int(rest))
                   for seconds, rest, at, size, path in found if is_image(path)})


def main():
    profile = Profile(sys.argv[1], sys.argv[2])
    mappings = image_mappings(sys.argv[2])
    named, outside, missing = 0, 0, []
    chains = []
    for tid, time, locations in profile.samples:
        chain = []
        for location in locations:
            for name, path in profile.frames(location):
                if is_image(path):
                    chain.append(plain(name))
                    named += bool(name)
                    if not name:
                        address = profile.addresses[location]
                        if not any(start <= address < end and since <= time for start, end, since in mappings):
                            outside += 1
                            continue
                        missing.append(f"{address:x} in {path}, thread {tid} at {time}")
        chains.append((tid, time, chain))
    print(f"{len(profile.samples)} samples, {named} frames in images, {len(missing)} without a name")
    for where in missing[:8]:
        print(f"no name: {where}")
    if outside:
        print(f"{outside} addresses between an image's base and its code, where no file is mapped")
    if not mappings or outside * 100 > named:
        sys.exit(f"{len(mappings)} mappings of images")
    bad = missing or named == 0 or any(code == 1 for code, _ in profile.errors)

    if len(sys.argv) > 3:
        expected = from_perf(sys.argv[3])
        same, different = 0, []
        for tid, time, chain in chains:
            candidates = expected.get((tid, time), [])
            # A chain that does not begin with the sample's own address gets that, too.
            if chain in candidates or chain[1:] in candidates:
                same += 1
            elif chain or any(candidates):
                different.append((tid, time, chain, candidates))
        print(f"{same} samples as perf script has them, {len(different)} not")
        for tid, time, chain, candidates in different[:3]:
            print(f"thread {tid} at {time}:\n  hotspot {chain}\n  perf    {candidates}")
        bad = bad or different or not same
    for code, text in profile.errors:
        print(f"hotspot-perfparser: error {code}: {text}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
