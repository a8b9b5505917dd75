#!/usr/bin/env python3
"""Puts a TIME_CONV record into a perf.data file, as perf writes one where the kernel allows it.

usage: add_time_conversion.py IN OUT TSC1 TIME1 TSC2 TIME2

Two moments, each as the time stamp counter and as the recording's clock in nanoseconds, give the
conversion: time = zero + (tsc * mult >> shift). Virtual machines have no such record, since their
kernel's clock is not the processor's alone; the counter runs in step with it all the same.
"""
import struct
import sys

TIME_CONV = 79
SHIFT = 31


def record(tsc1, time1, tsc2, time2):
    mult = ((time2 - time1) << SHIFT) // (tsc2 - tsc1)
    zero = time1 - (tsc1 * mult >> SHIFT)
    print(f"-- {mult / 2**SHIFT:.6f} ns a tick, zero at {zero} ns", file=sys.stderr)
    body = struct.pack("<QQQ", SHIFT, mult, zero % 2**64)
    return struct.pack("<IHH", TIME_CONV, 0, 8 + len(body)) + body


def main():
    source, target = sys.argv[1:3]
    with open(source, "rb") as file:
        data = bytearray(file.read())
    # struct perf_file_header: magic, size, attr_size, attrs, data, event_types, 256 feature bits.
    header = struct.unpack_from("<8sQQQQQQQQ4Q", data)
    start, size = header[5], header[6]
    features = sum(bin(word).count("1") for word in header[9:13])
    added = record(*map(int, sys.argv[3:7]))
    table = start + size
    for i in range(features):
        at = table + 16 * i
        offset, length = struct.unpack_from("<QQ", data, at)
        struct.pack_into("<QQ", data, at, offset + len(added), length)
    struct.pack_into("<Q", data, 48, size + len(added))
    data[start:start] = added
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
