"""A jitdump and the trailers in it, read from the descriptions in format/jitdump.h.

Shares no code with the writer or with jdtool, so that the three check each other.
"""
import struct

LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)


class Bad(Exception):
    """The dump breaks a rule of its format."""


class Method:
    def __init__(self, name, file, first_line):
        self.name, self.file, self.first_line = name, file, first_line


UNKNOWN = Method("?", None, 0)


class Tree:
    """nodes: (method, parent, call line); ranges: (start, end, node, line)."""

    def __init__(self, nodes, ranges):
        self.nodes, self.ranges = nodes, ranges

    def stacks(self):
        """(start, end, ((method name, line), ...)), outermost first."""
        for start, end, node, line in self.ranges:
            stack = []
            while True:
                method, parent, call_line = self.nodes[node]
                stack.append((method.name, line))
                if node == 0:
                    break
                node, line = parent, call_line
            yield start, end, tuple(reversed(stack))


class Load:
    """One group: the LOAD and what stood before it."""

    def __init__(self, name, address, size, index, others, trailer, entries):
        self.name, self.address, self.size, self.index = name, address, size, index
        self.others = others  # (id, payload) of records that are not the specification's
        self.trailer = trailer  # Tree or None
        self.entries = entries  # (address, line, file)


def uleb(data, at):
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, at


def sleb(data, at):
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (result - (1 << shift) if byte & 0x40 else result), at


def text(data, at):
    end = data.index(b"\0", at)
    return data[at:end].decode("utf-8"), end + 1


class Dump:
    """Iterating gives the Loads; methods and files fill up on the way."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        magic = self.data[:4]
        if magic == b"DTiJ":
            self.order = "<"
        elif magic == b"JiTD":
            self.order = ">"
        else:
            raise Bad("no jitdump")
        self.header_size = struct.unpack_from(self.order + "I", self.data, 8)[0]
        self.methods = {0: UNKNOWN}
        self.files = {0: None}

    def unpack(self, layout, data, at=0):
        return struct.unpack_from(self.order + layout, data, at)

    def __iter__(self):
        at = self.header_size
        others, trailer, entries = [], None, []
        while at < len(self.data):
            kind, size, _ = self.unpack("IIQ", self.data, at)
            if size < 16 or at + size > len(self.data):
                raise Bad(f"record at {at} has size {size}")
            payload = self.data[at + 16 : at + size]
            if kind == LOAD:
                _, _, _, address, code_size, index = self.unpack("IIQQQQ", payload)
                name, _ = text(payload, 40)
                yield Load(name, address, code_size, index, others, trailer, entries)
                others, trailer, entries = [], None, []
            elif kind == DEBUG_INFO:
                entries, rest = self.debug_entries(payload)
                trailer = self.decode_trailer(rest) if rest else None
            elif kind not in (MOVE, CLOSE, UNWINDING_INFO):
                others.append((kind, payload))
            at += size

    def debug_entries(self, payload):
        _, count = self.unpack("QQ", payload)
        at, entries = 16, []
        for _ in range(count):
            address, line, _ = self.unpack("QII", payload, at)
            file, at = text(payload, at + 16)
            entries.append((address, line, file))
        return entries, payload[at:]

    def decode_trailer(self, data):
        magic, version, size = self.unpack("III", data)
        if magic != 0x7264646A or version != 1 or size != len(data):
            raise Bad(f"trailer of magic {magic:x}, version {version}, size {size} of {len(data)}")
        at, tree = 12, None
        while at < size:
            tag, at = uleb(data, at)
            length, at = uleb(data, at)
            section = data[at : at + length]
            at += length
            if tag == 1:
                self.define_files(section)
            elif tag == 2:
                self.define_methods(section)
            elif tag == 3:
                tree = self.decode_tree(section)
        return tree

    def define_files(self, data):
        at = 0
        while at < len(data):
            number, at = uleb(data, at)
            self.files[number], at = text(data, at)

    def define_methods(self, data):
        at = 0
        while at < len(data):
            number, at = uleb(data, at)
            file, at = uleb(data, at)
            line, at = uleb(data, at)
            name, at = text(data, at)
            self.methods[number] = Method(name, self.files.get(file), line)

    def decode_tree(self, data):
        count, at = uleb(data, 0)
        nodes = []
        for i in range(count):
            method, at = uleb(data, at)
            parent = call_line = 0
            if i > 0:
                parent, at = uleb(data, at)
                call_line, at = uleb(data, at)
                if parent >= i:
                    raise Bad(f"node {i} has parent {parent}")
            nodes.append((self.methods.get(method, UNKNOWN), parent, call_line))
        ranges, start, line = [], 0, 0
        while at < len(data):
            size, at = uleb(data, at)
            node, at = uleb(data, at)
            step, at = sleb(data, at)
            line += step
            ranges.append((start, start + size, node, line))
            start += size
        return Tree(nodes, ranges)


def merged(stacks):
    """Neighbours with the same stack as one."""
    result = []
    for start, end, stack in stacks:
        if result and result[-1][2] == stack and result[-1][1] == start:
            result[-1] = (result[-1][0], end, stack)
        else:
            result.append((start, end, stack))
    return result
