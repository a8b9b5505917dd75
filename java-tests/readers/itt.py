#!/usr/bin/env python3
"""Compares what a collector of Intel's JIT Profiling API was told with the dump of the same session.

usage: itt.py LOG DUMP

LOG is that of tests/itt_collector.c. Every load of either must be in the other, in the same order
at each address, and at each offset the stack of methods and lines must be the same. Exit status 1
and a line for each difference.
"""
import sys

from jitdump import Dump, merged


class Region:
    def __init__(self, fields, address_field):
        self.id = int(fields[1])
        self.address = int(fields[address_field], 16)
        self.size = int(fields[address_field + 1])
        self.name = fields[address_field + 2]
        self.lines = []
        self.children = []

    def line_at(self, address):
        """The first range that ends behind the address."""
        for end, line in self.lines:
            if address - self.address < end:
                return line
        return None

    def edges(self):
        yield self.address
        yield self.address + self.size
        for end, _ in self.lines:
            yield self.address + end
        for child in self.children:
            yield from child.edges()

    def stack_at(self, address):
        line = self.line_at(address)
        if line is None:
            return ()
        for child in self.children:
            if child.address <= address < child.address + child.size:
                return ((self.name, line),) + child.stack_at(address)
        return ((self.name, line),)

    def stacks(self):
        edges = sorted(set(self.edges()))
        for start, end in zip(edges, edges[1:]):
            stack = self.stack_at(start)
            if stack:
                yield start - self.address, end - self.address, stack


def read_log(path):
    """The loads, in order, with their inlined regions; breaches; events, as the log counts them."""
    loads, regions, breaches, unloads, end = [], {}, [], 0, None
    region = None
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "load":
                region = Region(fields, 2)
                loads.append(region)
                regions[region.id] = region
            elif fields[0] == "inline":
                region = Region(fields, 3)
                regions[region.id] = region
                regions[int(fields[2])].children.append(region)
            elif fields[0] == "line":
                region.lines.append((int(fields[1]), int(fields[2])))
            elif fields[0] == "unload":
                unloads += 1
            elif fields[0] == "BREACH":
                breaches.append(fields[1])
            elif fields[0] == "end":
                end = fields
    return loads, breaches, unloads, end, len(regions) - len(loads)


def by_address(loads):
    result = {}
    for load in loads:
        result.setdefault(load.address, []).append(load)
    return result


def differences(collected, dumped):
    if (collected.name, collected.size) != (dumped.name, dumped.size):
        yield f"{collected.name} of {collected.size} bytes, {dumped.name} of {dumped.size}"
        return
    if dumped.trailer is None:
        return
    expected = merged(dumped.trailer.stacks())
    found = merged(collected.stacks())
    if found != expected:
        for pair in zip(found, expected):
            if pair[0] != pair[1]:
                yield f"{collected.name}: collector {pair[0]}, dump {pair[1]}"
                return
        yield f"{collected.name}: {len(found)} stacks, the dump has {len(expected)}"


def main():
    log, dump = sys.argv[1:3]
    collected, breaches, unloads, end, inlined = read_log(log)
    faults = [f"breach: {breach}" for breach in breaches]
    if not end:
        faults.append("no SHUTDOWN")
    elif int(end[2]) != 0:
        faults.append(f"{end[2]} breaches")
    dumped = [load for load in Dump(dump) if load.size > 0]
    ours, theirs = by_address(collected), by_address(dumped)
    compared = trees = 0
    for address in sorted(set(ours) | set(theirs)):
        a, b = ours.get(address, []), theirs.get(address, [])
        if len(a) != len(b):
            names = ", ".join(load.name for load in a + b)
            faults.append(f"{address:x}: {len(a)} loads, the dump has {len(b)}: {names}")
            continue
        for load, other in zip(a, b):
            compared += 1
            trees += other.trailer is not None
            faults.extend(differences(load, other))
    for fault in faults[:10]:
        print(fault)
    print(
        f"{compared} loads compared, {trees} with a tree, {inlined} inlined regions, "
        f"{unloads} unloads; {len(faults)} faults"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
