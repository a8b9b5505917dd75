#!/usr/bin/env python3
"""Makes small seeds for the dump fuzzer from dumps of real JVMs.

usage: make_corpus.py OUT-DIRECTORY NAME DUMP...

Takes from each dump the header, the smallest groups of each kind (stubs, wrappers, methods with an
inline tree) and CLOSE: a few KB with everything the writer writes. make_corpus.c makes the others.
"""
import pathlib
import struct
import sys

LOAD, DEBUG_INFO, CLOSE = 0, 2, 3
LIMIT = 3500


def groups(dump):
    """(records of a group with its LOAD last, rows in it), in file order; CLOSE comes alone."""
    at = struct.unpack_from("<I", dump, 8)[0]
    pending, rows = b"", 0
    while at + 16 <= len(dump):
        kind, size = struct.unpack_from("<II", dump, at)
        record = dump[at:at + size]
        at += size
        if kind == DEBUG_INFO:
            rows += struct.unpack_from("<Q", record, 24)[0]
        pending += record
        if kind in (LOAD, CLOSE):
            yield pending, rows
            pending, rows = b"", 0


def thin(dump):
    out = dump[:struct.unpack_from("<I", dump, 8)[0]]
    found = list(groups(dump))
    plain = sorted((group for group, rows in found if rows <= 2), key=len)
    rich = sorted((group for group, rows in found if rows > 2), key=len)
    chosen = set(plain[:3])
    for group in rich:
        if sum(map(len, chosen)) + len(group) > LIMIT:
            break
        chosen.add(group)
    return out + b"".join(group for group, _ in found if group in chosen)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    for i, path in enumerate(sys.argv[3:]):
        seed = thin(pathlib.Path(path).read_bytes())
        (out / f"{name}-{i}.bin").write_bytes(seed)
        print(f"{name}-{i}.bin: {len(seed)} bytes")


if __name__ == "__main__":
    main()
