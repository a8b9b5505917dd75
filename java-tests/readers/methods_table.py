#!/usr/bin/env python3
"""The order in which a table of methods (format/methods.h) tells of classes.

usage: methods_table.py FILE

Prints how many classes it tells of as found there behind the first one that became ready to run, and how many
methods it tells of more than once.
"""
import struct
import sys

from jitdump import sleb, text, uleb

PREPARED, FOUND = 1, 2


def records(data):
    at = struct.unpack_from("=I", data, 8)[0]
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        if kind in (PREPARED, FOUND):
            yield kind, data[at + 16:at + size]
        at += size


def methods(record):
    """The addresses of a class's methods."""
    address, at = 0, text(record, 0)[1]
    while at < len(record):
        distance, at = sleb(record, at)
        address += distance
        yield address
        at = sleb(record, at)[1]
        at = text(record, uleb(record, at)[1])[1]
        rows, at = uleb(record, at)
        for _ in range(rows):
            at = sleb(record, uleb(record, at)[1])[1]


def main():
    with open(sys.argv[1], "rb") as file:
        told = list(records(file.read()))
    kinds = [kind for kind, _ in told]
    late = kinds[kinds.index(PREPARED):].count(FOUND) if PREPARED in kinds else 0
    addresses = [address for _, record in told for address in methods(record)]
    print(late, len(addresses) - len(set(addresses)))


if __name__ == "__main__":
    main()
