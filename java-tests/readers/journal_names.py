#!/usr/bin/env python3
"""What a journal of threads (format/threads.h) calls each thread: lines "TID NAME", and "lost TID" where it has a gap."""
import struct
import sys

PLATFORM, TEXTS = 4, (3, 4, 7)
data = open(sys.argv[1], "rb").read()
magic, version, at, _ = struct.unpack_from("=IIII", data)
assert magic == 0x4A645468 and version == 1
names = {}
while at < len(data):
    tid, slots, _, _, lost = struct.unpack_from("=IIQQQ", data, at)
    at += 32
    if lost:
        print("lost", tid)
    end = at + 16 * slots
    while at < end:
        stamp, _ = struct.unpack_from("=QQ", data, at)
        at += 16
        if stamp & 0xFF in TEXTS:
            whose, length = struct.unpack_from("=IH", data, at)
            if stamp & 0xFF == PLATFORM:
                names[whose] = data[at + 16 : at + 16 + length].decode()
            at += 16 + (length + 15) // 16 * 16
    assert at == end
for tid, name in sorted(names.items()):
    print(tid, name)
