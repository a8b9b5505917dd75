"""Reads a JFR file by what its own metadata says of it: one chunk, packed numbers, no knowledge of jdagent's types.

events(path) gives (name of the type, {field: value}) with constants in place, the metadata's types by name.
"""
import struct


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: jfr: {what}")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.types, self.constants = {}, {}

    def number(self):
        value = 0
        for shift in range(0, 63, 7):
            byte = self.data[self.at]
            self.at += 1
            if shift == 56:
                return value | byte << 56
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value

    def text(self):
        kind = self.data[self.at]
        self.at += 1
        if kind < 2:
            return "" if kind else None
        if kind == 2:
            return ("constant", "java.lang.String", self.number())
        check(kind == 3, f"a text of kind {kind}")
        size = self.number()
        check(self.at + size <= len(self.data), "a text leads behind the file")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8")

    def element(self, strings):
        name = strings[self.number()]
        attributes = {}
        for _ in range(self.number()):
            key = strings[self.number()]
            attributes[key] = strings[self.number()]
        return name, attributes, [self.element(strings) for _ in range(self.number())]

    def record(self, at):
        """Begins one: its type and its end."""
        self.at = at
        size = self.number()
        check(0 < size <= len(self.data) - at, f"a record of {size} bytes at {at}")
        return self.number(), at + size

    def metadata(self, at):
        kind, end = self.record(at)
        check(kind == 0, "the metadata are none")
        for _ in range(3):
            self.number()
        strings = [self.text() for _ in range(self.number())]
        root = self.element(strings)
        check(self.at == end, "the metadata end elsewhere")
        check([child[0] for child in root[2]] == ["metadata", "region"], "the root's elements")
        for name, attributes, children in root[2][0][2]:
            check(name == "class", f"an element {name}")
            fields = [field[1] for field in children if field[0] == "field"]
            number = int(attributes["id"])
            check(number not in self.types, f"type {number} is there twice")
            self.types[number] = dict(attributes, fields=fields)
        names = [kind["name"] for kind in self.types.values()]
        check(len(set(names)) == len(names), "two types of one name")
        for kind in self.types.values():
            check(all(int(field["class"]) in self.types for field in kind["fields"]), f"{kind['name']} has a field of no type")
            check(len({field["name"] for field in kind["fields"]}) == len(kind["fields"]), f"{kind['name']} has a field twice")

    def value(self, kind):
        name = self.types[kind]["name"]
        if name == "java.lang.String":
            return self.text()
        if name in ("boolean", "byte"):
            self.at += 1
            return self.data[self.at - 1]
        if name == "float":
            self.at += 4
            return struct.unpack_from(">f", self.data, self.at - 4)[0]
        if name in ("int", "long", "short", "char"):
            return self.number()
        return self.fields(kind)

    def fields(self, kind):
        result = {}
        for field in self.types[kind]["fields"]:
            inner = int(field["class"])

            def one():
                return ("constant", self.types[inner]["name"], self.number()) if "constantPool" in field else self.value(inner)
            result[field["name"]] = [one() for _ in range(self.number())] if "dimension" in field else one()
        return result

    def pools(self, at):
        kind, end = self.record(at)
        check(kind == 1, "the constants are none")
        self.number(), self.number()
        check(self.number() == 0, "there are further constants")
        self.number()
        for _ in range(self.number()):
            kind, count = self.number(), self.number()
            check(count > 0, f"an empty pool of {self.types[kind]['name']}")
            pool = self.constants.setdefault(self.types[kind]["name"], {})
            check(not pool, "a pool is there twice")
            for _ in range(count):
                number = self.number()
                check(number not in pool, "a constant's number is there twice")
                pool[number] = self.value(kind)
        check(self.at == end, "the constants end elsewhere")

    def resolved(self, value):
        if isinstance(value, tuple) and value and value[0] == "constant":
            pool = self.constants.get(value[1], {})
            if value[2] == 0 and 0 not in pool:
                return None
            check(value[2] in pool, f"{value[1]} {value[2]} is nowhere")
            value = pool[value[2]]
            simple = isinstance(value, dict) and len(value) == 1
            return self.resolved(next(iter(value.values())) if simple else value)
        if isinstance(value, dict):
            return {key: self.resolved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.resolved(inner) for inner in value]
        return value


def events(data):
    check(data[:8] == b"FLR\0\0\2\0\0", "the header")
    size, constants, metadata, _, duration, start, ticks = struct.unpack_from(">7Q", data, 8)
    check(size == len(data), "the chunk's size")
    check(ticks == 10**9 and data[64:68] == b"\0\0\0\1", "ticks and flags")
    reader = Reader(data)
    reader.metadata(metadata)
    reader.pools(constants)
    result = []
    at = 68
    cache = {}
    while at < constants:
        kind, end = reader.record(at)
        check(kind in reader.types and reader.types[kind].get("superType") == "jdk.jfr.Event", f"an event of type {kind}")
        fields = reader.fields(kind)
        check(reader.at == end, f"{reader.types[kind]['name']} ends elsewhere")
        for name, value in fields.items():
            if isinstance(value, tuple):
                cache[value] = cache[value] if value in cache else reader.resolved(value)
                fields[name] = cache[value]
        check(start <= fields["startTime"] <= start + duration, "a time outside of the chunk's")
        result.append((reader.types[kind]["name"], fields))
        at = end
    check(at == constants, "events run into the constants")
    return result


# ---- What a stack of ours is in it ----

PRIMITIVES = {"Z": "boolean", "B": "byte", "C": "char", "S": "short", "I": "int", "J": "long", "F": "float", "D": "double"}


def java_types(descriptor):
    """The types of a descriptor, as Java writes them."""
    result, at = [], 0
    while at < len(descriptor):
        arrays = 0
        while descriptor[at] == "[":
            arrays, at = arrays + 1, at + 1
        if descriptor[at] == "L":
            end = descriptor.index(";", at)
            name = descriptor[at + 1:end].replace("/", ".").replace("+", "/")
            at = end + 1
        else:
            name = PRIMITIVES[descriptor[at]]
            at += 1
        result.append(name + "[]" * arrays)
    return result


def class_name(name):
    return java_types(name)[0] if name.startswith("[") else name.replace("/", ".").replace("+", "/")


def frame_name(frame):
    method = frame["method"]
    if frame["type"] in ("Native", "C++", "Kernel"):
        return method["name"]
    parameters = method["descriptor"][1:method["descriptor"].index(")")]
    return f"{class_name(method['type']['name'])}.{method['name']}({','.join(java_types(parameters))})"


SUBJECTS = {"jdk.ObjectAllocationSample": "objectClass", "jdk.JavaMonitorEnter": "monitorClass", "jdk.JavaExceptionThrow": "thrownClass"}


def stacks(data):
    """Of each sample: its event's type, its thread, the stack's names from the root on, weight and time."""
    names = {}
    for kind, fields in events(data):
        if "stackTrace" not in fields or kind in ("jdk.ThreadStart", "jdk.ThreadPark"):
            continue
        trace = fields["stackTrace"]
        stack = ()
        if trace is not None:
            if id(trace) not in names:
                names[id(trace)] = trace, tuple(frame_name(frame) for frame in reversed(trace["frames"]))
            stack = names[id(trace)][1]
        subject = fields.get(SUBJECTS.get(kind))
        if subject:
            stack += (class_name(subject["name"]),)
        thread = fields.get("sampledThread") or fields["eventThread"]
        is_wait = "duration" in fields
        weight = fields["duration"] if is_wait else fields.get("weight")
        yield kind, thread, stack, weight, fields["startTime"] + (weight if is_wait else 0)
