#!/usr/bin/env python3
"""make_jfr_corpus.py DIR: chunks of a JVM's own recording (.jfr), small enough to be changed usefully."""
import struct
import sys


def number(value):
    value &= (1 << 64) - 1
    out = bytearray()
    for _ in range(8):
        if value < 0x80:
            return bytes(out + bytes([value]))
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def text(value, kind=3):
    if kind == 3:
        data = value.encode()
        return b"\3" + number(len(data)) + data
    if kind == 4:
        return b"\4" + number(len(value)) + b"".join(number(ord(letter)) for letter in value)
    return b"\5" + number(len(value)) + value.encode("latin-1")


def sized(body):
    """An event with its own size in front, of five bytes as the JDK pads it."""
    size = len(body) + 5
    return bytes(size >> 7 * i & 0x7F | (0x80 if i < 4 else 0) for i in range(5)) + body


TYPES = [  # id, name, superType, fields: (name, type, constant, array)
    (10, "long", "", []),
    (11, "int", "", []),
    (12, "boolean", "", []),
    (13, "double", "", []),
    (14, "java.lang.String", "", []),
    (15, "float", "", []),
    (16, "byte", "", []),
    (20, "java.lang.Thread", "", [("osName", 14, 0, 0), ("osThreadId", 10, 0, 0), ("javaName", 14, 0, 0)]),
    (21, "jdk.types.Symbol", "", [("string", 14, 0, 0)]),
    (22, "java.lang.Class", "", [("classLoader", 22, 1, 0), ("name", 21, 1, 0), ("modifiers", 11, 0, 0)]),
    (23, "jdk.types.Frame", "", [("line", 11, 0, 0), ("type", 21, 1, 0)]),
    (24, "jdk.types.StackTrace", "", [("truncated", 12, 0, 0), ("frames", 23, 0, 1)]),
    (30, "jdk.JVMInformation", "jdk.jfr.Event", [("startTime", 10, 0, 0), ("pid", 10, 0, 0), ("jvmName", 14, 0, 0)]),
    (31, "jdk.ClassLoad", "jdk.jfr.Event", [("startTime", 10, 0, 0), ("duration", 10, 0, 0), ("eventThread", 20, 1, 0),
                                           ("stackTrace", 24, 1, 0), ("loadedClass", 22, 1, 0)]),
    (32, "app.Order", "jdk.jfr.Event", [("startTime", 10, 0, 0), ("amount", 13, 0, 0), ("ratio", 15, 0, 0),
                                        ("paid", 12, 0, 0), ("note", 14, 0, 0), ("parts", 11, 0, 1), ("raw", 16, 0, 1)]),
    (33, "jdk.ExecutionSample", "jdk.jfr.Event", [("startTime", 10, 0, 0)]),
]


def metadata():
    strings = []

    def index(value):
        if value not in strings:
            strings.append(value)
        return number(strings.index(value))

    def element(name, attributes, children):
        out = index(name) + number(len(attributes))
        for key, value in attributes:
            out += index(key) + index(value)
        return out + number(len(children)) + b"".join(children)

    classes = []
    for ident, name, parent, fields in TYPES:
        attributes = [("id", str(ident)), ("name", name)] + ([("superType", parent)] if parent else [])
        children = []
        for field, kind, constant, array in fields:
            its = [("name", field), ("class", str(kind))]
            its += [("constantPool", "true")] if constant else []
            its += [("dimension", "1")] if array else []
            children.append(element("field", its, [element("annotation", [("class", "10")], [])]))
        classes.append(element("class", attributes, children))
    tree = element("root", [], [element("metadata", [], classes), element("region", [("locale", "en")], [])])
    body = number(0) + number(1) + number(0) + number(7) + number(len(strings))
    return sized(body + b"".join(text(value) for value in strings) + tree)


def pool(kind, entries):
    return number(kind) + number(len(entries)) + b"".join(number(i) + value for i, value in entries)


def checkpoint(delta, pools):
    return sized(number(1) + number(5) + number(0) + number(delta) + b"\0" + number(len(pools)) + b"".join(pools))


def chunk(events, features=1, back=None):
    out = bytearray(68)
    first = len(out)
    out += checkpoint(0, [pool(20, [(1, text("main") + number(4711) + text("main", 5))]),
                          pool(21, [(1, text("Main")), (2, text("Lager\u20ac", 4))])])
    for event in events:
        out += event
    constants = len(out)
    out += checkpoint(first - constants if back is None else back, [pool(22, [(1, number(0) + number(1) + number(1)), (2, number(1) + number(2) + number(0))]),
                                          pool(24, [(1, b"\0" + number(2) + number(5) + number(1) + number(7) + number(2))])])
    meta = len(out)
    out += metadata()
    struct.pack_into(">4sHHqqqqqqqI", out, 0, b"FLR\0", 2, 1, len(out), constants, meta, 1_700_000_000_000_000_000,
                     1_000_000_000, 5000, 1_000_000_000, features)
    return bytes(out)


EVENTS = [
    sized(number(30) + number(5001) + number(4711) + text("HotSpot")),
    sized(number(31) + number(5100) + number(900) + number(1) + number(1) + number(2)),
    sized(number(32) + number(5200) + struct.pack(">d", 1.5) + struct.pack(">f", 2) + b"\1" + text("an order\n") + number(2)
          + number(3) + number(-4) + number(2) + b"ab"),
    sized(number(33) + number(5300)),
]

if __name__ == "__main__":
    whole = chunk(EVENTS)
    for name, data in (("whole", whole), ("empty", chunk([])), ("two", whole + chunk(EVENTS[1:])),
                       ("torn", whole[:-40]), ("uncompressed", chunk(EVENTS, 0)),
                       ("far", chunk(EVENTS, back=-1 << 63))):
        with open(f"{sys.argv[1]}/{name}", "wb") as file:
            file.write(data)
