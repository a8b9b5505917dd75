#!/usr/bin/env python3
"""Reads samply's record extensions as their document describes them, and compares with the trailer.

usage: samply.py DUMP [SOURCES]

Written from the document alone ("Jitdump record format for debug info with inlines"): each list is
taken as it says, each rule checked. SOURCES is a directory to write the embedded sources to, each under its path with dots for slashes,
but for names too long for a file.
Prints what it found; exit status 1 and a line for each fault
when a rule is broken, a record cannot be decoded, or an inline stack differs from the trailer's.
"""
import os
import struct
import sys

from jitdump import Bad, Dump, merged

DEBUG_INFO2, TIER, EMBEDDED_SOURCE = 827346259, 827346260, 827346261


def strings(data, count):
    """count strings, and at most three bytes of padding up to a multiple of four."""
    result, at = [], 0
    for _ in range(count):
        end = data.index(b"\0", at)
        result.append(data[at:end].decode("utf-8"))
        at = end + 1
    padding = data[at:]
    if len(data) % 4 or len(padding) > 3 or any(padding):
        raise Bad(f"a string list is padded with {padding!r} to {len(data)} bytes")
    return result


class DebugInfo:
    """One DEBUG_INFO2: functions (name, file), calls with their ranges, lines."""

    def __init__(self, order, payload):
        counts = struct.unpack_from(order + "8I", payload)
        files, files_size, names, names_size, functions, calls, ranges, lines = counts
        at = 32
        self.files = strings(payload[at : at + files_size], files)
        at += files_size
        self.names = strings(payload[at : at + names_size], names)
        at += names_size

        def table(layout, count):
            nonlocal at
            size = struct.calcsize(order + layout)
            block = payload[at : at + size * count]
            if len(block) != size * count:
                raise Bad("a list reaches behind the record")
            at += size * count
            return list(struct.iter_unpack(order + layout, block))

        self.functions = table("5I", functions)
        self.calls = table("5I", calls)
        self.ranges = table("2I", ranges)
        self.lines = table("4I", lines)
        if at != len(payload):
            raise Bad(f"{len(payload) - at} bytes behind the last list")
        self.check()

    def check(self):
        for name, file, _, _, _ in self.functions:
            if name >= len(self.names) or file >= len(self.files):
                raise Bad("a function names a string that is not there")
        if not self.functions:
            raise Bad("no outer function")
        before = -1
        for depth, count, function, _, _ in self.calls:
            if depth > before + 1:
                raise Bad(f"depth {depth} follows {before}")
            if count < 1 or function >= len(self.functions):
                raise Bad("a call without ranges or function")
            before = depth
        if sum(call[1] for call in self.calls) != len(self.ranges):
            raise Bad("the calls do not use up the ranges")
        before = -1
        for offset, file, _, _ in self.lines:
            if offset <= before or file >= len(self.files):
                raise Bad("lines do not ascend, or name a file that is not there")
            before = offset

    def call_ranges(self):
        """(start, end, call index), outer calls first where they start together."""
        at = 0
        for index, call in enumerate(self.calls):
            for start, size in self.ranges[at : at + call[1]]:
                if size == 0:
                    raise Bad("an empty range")
                yield start, start + size, index
            at += call[1]

    def stacks(self, code_size):
        """(start, end, ((function, line), ...)), outermost first, in all of the code."""
        starts, ends = {}, {}
        for start, end, index in self.call_ranges():
            starts.setdefault(start, []).append(index)
            ends.setdefault(end, []).append(index)
        lines = {offset: (self.files[file], line) for offset, file, line, _ in self.lines}
        edges = sorted(set(starts) | set(ends) | set(lines) | {0, code_size})
        open_calls, position = [], ("", 0)
        for i, edge in enumerate(edges[:-1]):
            for index in sorted(ends.get(edge, []), reverse=True):
                if not open_calls or open_calls.pop() != index:
                    raise Bad("the ranges of calls do not nest")
            for index in sorted(starts.get(edge, [])):
                if self.calls[index][0] != len(open_calls):
                    raise Bad(f"a call of depth {self.calls[index][0]} inside {len(open_calls)}")
                open_calls.append(index)
            position = lines.get(edge, position)
            yield edge, edges[i + 1], self.stack(open_calls, position)

    def stack(self, open_calls, position):
        file, line = position
        functions = [0] + [self.calls[index][2] for index in open_calls]
        innermost = self.functions[functions[-1]]
        if line and self.files[innermost[1]] != file:
            raise Bad(f"a line of {file} in a function of {self.files[innermost[1]]}")
        call_lines = [self.calls[index][3] for index in open_calls] + [line]
        return tuple(
            (self.names[self.functions[function][0]], call_line)
            for function, call_line in zip(functions, call_lines)
        )


def decode_tier(order, payload):
    color, name_size = struct.unpack_from(order + "2I", payload)
    if len(payload) != 8 + name_size or color > 12:
        raise Bad("a tier of a wrong size or color")
    return strings(payload[8:], 1)[0]


def decode_source(order, payload):
    path_size, text_size = struct.unpack_from(order + "2I", payload)
    path = strings(payload[8 : 8 + path_size], 1)[0]
    source = payload[8 + path_size : 8 + path_size + text_size]
    padding = payload[8 + path_size + text_size :]
    if len(source) != text_size or len(payload) % 4 or len(padding) > 3 or any(padding):
        raise Bad("a source of a wrong size")
    return path, source


class Totals:
    def __init__(self):
        self.loads = self.infos = self.calls = self.stacks = 0
        self.tiers, self.sources = {}, {}


def compare(load, info, totals):
    if load.trailer is None:
        return
    expected = merged(load.trailer.stacks())
    covered = expected[-1][1] if expected else 0
    found = merged(info.stacks(load.size))
    if covered < load.size and found:
        # Code of no bytecode: the document can only say that it is the outer function's.
        start, end, stack = found.pop()
        if len(stack) != 1 or stack[0][1] != 0:
            raise Bad(f"code of no bytecode has the stack {stack}")
        if start < covered:
            found.append((start, covered, stack))
    if found != expected:
        where = next((pair for pair in zip(found, expected) if pair[0] != pair[1]), "the end")
        raise Bad(f"stacks differ at {where}")
    totals.stacks += len(found)


def read_load(order, load, totals):
    totals.loads += 1
    for kind, payload in load.others:
        if kind == DEBUG_INFO2:
            info = DebugInfo(order, payload)
            totals.infos += 1
            totals.calls += len(info.calls)
            compare(load, info, totals)
        elif kind == TIER:
            name = decode_tier(order, payload)
            totals.tiers[name] = totals.tiers.get(name, 0) + 1
        elif kind == EMBEDDED_SOURCE:
            path, source = decode_source(order, payload)
            if path in totals.sources:
                raise Bad(f"{path} comes twice")
            totals.sources[path] = source
        else:
            raise Bad(f"a record of id {kind}")
    kinds = [kind for kind, _ in load.others]
    if load.trailer is not None and load.trailer.ranges and kinds.count(DEBUG_INFO2) != 1:
        raise Bad("an inline tree without its record")


def main():
    dump, totals, faults = Dump(sys.argv[1]), Totals(), 0
    for load in dump:
        try:
            read_load(dump.order, load, totals)
        except (Bad, struct.error, ValueError, IndexError) as fault:
            faults += 1
            if faults <= 10:
                print(f"{load.name} at {load.address:x}: {fault}")
    tiers = ", ".join(f"{count} {name}" for name, count in sorted(totals.tiers.items()))
    print(
        f"{totals.loads} loads, {totals.infos} inline trees with {totals.calls} calls, "
        f"{totals.stacks} stacks as in the trailer; tiers: {tiers or 'none'}; "
        f"{len(totals.sources)} sources of {sum(map(len, totals.sources.values()))} bytes, "
        f"{sum(path.endswith('.bytecode') for path in totals.sources)} of them bytecodes; "
        f"{faults} faults"
    )
    if len(sys.argv) > 2:
        for path, source in totals.sources.items():
            name = path.replace("/", ".")
            if len(name.encode()) <= 255:  # what a file can be called
                with open(os.path.join(sys.argv[2], name), "wb") as file:
                    file.write(source)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
