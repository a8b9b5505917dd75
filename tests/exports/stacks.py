"""Reads every export format of jdtool back into the same thing, and holds each to its format's rules.

A profile is a list of samples (thread name, stack from the root on as names, count, weight, event, time),
with None for what a format does not tell. Rules are those of the formats' readers, see each function.
"""
import collections
import gzip
import json
import struct

import jfr_file

Sample = collections.namedtuple("Sample", "thread stack count weight event time")


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


# ---- protobuf ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7


def fields(data):
    """Yields (field number, wire type, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            check(kind == 2, f"wire type {kind}")
            size, at = varint(data, at)
            check(at + size <= len(data), "a field leads behind the message")
            value, at = data[at:at + size], at + size
        yield key >> 3, kind, value


def message(data, shape):
    """Decodes by a shape: field number -> (name, kind), kind of int, fixed, text, bytes, or a shape; in a list: repeated."""
    result = {}
    for name, kind in shape.values():
        result[name] = [] if isinstance(kind, list) else {"int": 0, "fixed": 0, "text": "", "bytes": b""}.get(
            kind if isinstance(kind, str) else "", None)
    for number, wire, value in fields(data):
        check(number in shape, f"unknown field {number}")
        name, kind = shape[number]
        repeated = isinstance(kind, list)
        inner = kind[0] if repeated else kind
        if isinstance(inner, dict):
            check(wire == 2, f"{name} is no message")
            values = [message(value, inner)]
        elif inner == "text":
            values = [value.decode("utf-8")]
        elif inner == "bytes":
            values = [value]
        elif inner == "fixed":
            values = list(struct.unpack(f"<{len(value) // 8}Q", value)) if wire == 2 else [value]
            check(wire in (1, 2), f"{name} is not fixed64")
        else:
            values = []
            if wire == 2:
                at = 0
                while at < len(value):
                    element, at = varint(value, at)
                    values.append(element)
            else:
                check(wire == 0, f"{name} is no varint")
                values = [value]
        if repeated:
            result[name].extend(values)
        else:
            result[name] = values[-1]
    return result


# ---- pprof: google/pprof proto/profile.proto, and what profile.go's CheckValid refuses ----

VALUE_TYPE = {1: ("type", "int"), 2: ("unit", "int")}
PPROF = {
    1: ("sample_type", [VALUE_TYPE]),
    2: ("sample", [{1: ("location", ["int"]), 2: ("value", ["int"]),
                    3: ("label", [{1: ("key", "int"), 2: ("str", "int"), 3: ("num", "int"), 4: ("unit", "int")}])}]),
    3: ("mapping", [{1: ("id", "int"), 2: ("start", "int"), 3: ("limit", "int"), 4: ("offset", "int"), 5: ("file", "int"),
                     6: ("build_id", "int"), 7: ("functions", "int"), 8: ("filenames", "int"), 9: ("lines", "int"), 10: ("inlines", "int")}]),
    4: ("location", [{1: ("id", "int"), 2: ("mapping", "int"), 3: ("address", "int"),
                      4: ("line", [{1: ("function", "int"), 2: ("line", "int"), 3: ("column", "int")}])}]),
    5: ("function", [{1: ("id", "int"), 2: ("name", "int"), 3: ("system_name", "int"), 4: ("file", "int"), 5: ("start", "int")}]),
    6: ("strings", ["text"]), 9: ("time", "int"), 10: ("duration", "int"), 11: ("period_type", VALUE_TYPE), 12: ("period", "int"),
    13: ("comment", ["int"]), 14: ("default", "int"),
}


def pprof(path):
    profile = message(load(path), PPROF)
    strings = profile["strings"]
    check(strings[0] == "", "string 0 is not empty")
    check(len(set(strings)) == len(strings), "a string is there twice")
    check(profile["sample_type"] and strings[profile["sample_type"][0]["type"]] == "samples", "no sample type")
    for table in ("mapping", "location", "function"):
        check([row["id"] for row in profile[table]] == list(range(1, len(profile[table]) + 1)), f"ids of {table} are not sequential")
    for mapping in profile["mapping"]:
        check(mapping["start"] < mapping["limit"], f"mapping {mapping}")
        check(strings[mapping["file"]], "a mapping has no file")
    for function in profile["function"]:
        check(strings[function["name"]] and strings[function["system_name"]], "a function has no name")
    used = set()
    result = []
    for sample in profile["sample"]:
        check(len(sample["value"]) == len(profile["sample_type"]), "values are not as many as types")
        stack = []
        labels = {strings[label["key"]]: strings[label["str"]] or label["num"] for label in sample["label"]}
        check(len(labels) == len(sample["label"]), "a label is there twice")
        for location_id in sample["location"]:
            location = profile["location"][location_id - 1]
            used.add(location_id)
            check(location["line"], "a location has no line")
            check(location["mapping"] <= len(profile["mapping"]), "no such mapping")
            if location["mapping"]:
                mapping = profile["mapping"][location["mapping"] - 1]
                check(mapping["start"] <= location["address"] < mapping["limit"], "an address is outside of its mapping")
            stack += [strings[profile["function"][line["function"] - 1]["name"]] for line in location["line"]]
        events = [i for i, value in enumerate(sample["value"][1:]) if value]
        check(len(events) <= 1, "a sample is of two events")
        result.append(Sample(labels.get("thread", ""), tuple(reversed(stack)), sample["value"][0], sum(sample["value"][1:]),
                             events[0] if events else None, None))
    check(used == set(range(1, len(profile["location"]) + 1)), "a location is used by no sample")
    return result


# ---- OTLP profiles 1.10, and the rules of open-telemetry/sig-profiling's profcheck ----

ANY = {1: ("stringValue", "text"), 3: ("intValue", "int")}
KEY_VALUE = {1: ("key", "text"), 2: ("value", ANY)}
OTLP_VALUE_TYPE = {1: ("typeStrindex", "int"), 2: ("unitStrindex", "int")}
OTLP = {
    1: ("resourceProfiles", [{
        1: ("resource", {1: ("attributes", [KEY_VALUE])}),
        2: ("scopeProfiles", [{
            1: ("scope", {1: ("name", "text"), 2: ("version", "text")}),
            2: ("profiles", [{
                1: ("sampleType", OTLP_VALUE_TYPE),
                2: ("samples", [{1: ("stackIndex", "int"), 2: ("attributeIndices", ["int"]), 3: ("linkIndex", "int"),
                                 4: ("values", ["int"]), 5: ("timestampsUnixNano", ["fixed"])}]),
                3: ("timeUnixNano", "fixed"), 4: ("durationNano", "int"), 5: ("periodType", OTLP_VALUE_TYPE), 6: ("period", "int"),
                7: ("profileId", "bytes"), 11: ("attributeIndices", ["int"])}])}])}]),
    2: ("dictionary", {
        1: ("mappingTable", [{1: ("memoryStart", "int"), 2: ("memoryLimit", "int"), 3: ("fileOffset", "int"),
                              4: ("filenameStrindex", "int"), 5: ("attributeIndices", ["int"])}]),
        2: ("locationTable", [{1: ("mappingIndex", "int"), 2: ("address", "int"),
                               3: ("lines", [{1: ("functionIndex", "int"), 2: ("line", "int"), 3: ("column", "int")}]),
                               4: ("attributeIndices", ["int"])}]),
        3: ("functionTable", [{1: ("nameStrindex", "int"), 2: ("systemNameStrindex", "int"), 3: ("filenameStrindex", "int"),
                               4: ("startLine", "int")}]),
        4: ("linkTable", [{1: ("traceId", "bytes"), 2: ("spanId", "bytes")}]),
        5: ("stringTable", ["text"]),
        6: ("attributeTable", [{1: ("keyStrindex", "int"), 2: ("value", ANY), 3: ("unitStrindex", "int")}]),
        7: ("stackTable", [{1: ("locationIndices", ["int"])}])}),
}


def from_json(value, shape):
    """protobuf's JSON as message() gives it."""
    result = message(b"", shape)
    for name, kind in shape.values():
        if name not in value:
            continue
        repeated = isinstance(kind, list)
        inner = kind[0] if repeated else kind
        values = value[name] if repeated else [value[name]]
        if isinstance(inner, dict):
            values = [from_json(element, inner) for element in values]
        elif inner in ("int", "fixed"):
            values = [int(element) for element in values]
        elif inner == "bytes":
            values = [bytes.fromhex(element) for element in values]
        result[name] = values if repeated else values[0]
    unknown = set(value) - {name for name, _ in shape.values()}
    check(not unknown, f"unknown fields {unknown}")
    return result


def otlp(path, is_json=False):
    data = load(path)
    request = from_json(json.loads(data), OTLP) if is_json else message(data, OTLP)
    tables = request["dictionary"]
    strings = tables["stringTable"]
    for name, rows in tables.items():
        check(rows, f"{name} is empty")
        empty = "" if name == "stringTable" else message(b"", dict(OTLP[2][1].values())[name][0])
        check(rows[0] == empty, f"{name} does not begin with an empty element: {rows[0]}")
        texts = [json.dumps(row, sort_keys=True, default=str) for row in rows]
        check(len(set(texts)) == len(texts), f"{name} has an element twice")
    used = {name: {0} for name in tables}

    def use(table, index):
        check(0 <= index < len(tables[table]), f"{index} is not in {table}")
        used[table].add(index)
        return tables[table][index]

    result = []
    resources = request["resourceProfiles"]
    check(resources, "there are no resources")
    for event, profile in ((event, profile) for resource in resources for scope in resource["scopeProfiles"]
                           for event, profile in enumerate(scope["profiles"])):
        check(profile["periodType"] is not None and profile["sampleType"] is not None, "a profile has no types")
        for value_type in (profile["periodType"], profile["sampleType"]):
            use("stringTable", value_type["typeStrindex"])
            use("stringTable", value_type["unitStrindex"])
        is_clock = strings[profile["sampleType"]["typeStrindex"]] == "samples"
        check(len(profile["profileId"]) == 16 and any(profile["profileId"]), "a profile has no id")
        for index in profile["attributeIndices"]:
            use("attributeTable", index)
        identities = set()
        for sample in profile["samples"]:
            identity = (sample["stackIndex"], tuple(sorted(sample["attributeIndices"])))
            check(identity not in identities, "a sample is there twice")
            identities.add(identity)
            times = sample["timestampsUnixNano"]
            check(all(profile["timeUnixNano"] <= time < profile["timeUnixNano"] + profile["durationNano"] for time in times),
                  "a time is outside of the profile's")
            check(len(sample["values"]) == (0 if is_clock else len(times)) and times, "a sample's shape is another than the others'")
            attributes = {}
            for index in sample["attributeIndices"]:
                attribute = use("attributeTable", index)
                attributes[strings[attribute["keyStrindex"]]] = attribute["value"]["stringValue"] or attribute["value"]["intValue"]
            stack = []
            for index in use("stackTable", sample["stackIndex"])["locationIndices"]:
                location = use("locationTable", index)
                if location["mappingIndex"]:
                    use("mappingTable", location["mappingIndex"])
                for attribute in location["attributeIndices"]:
                    check(strings[use("attributeTable", attribute)["keyStrindex"]] == "profile.frame.type", "another attribute")
                check(location["lines"], "a location has no line")
                for line in location["lines"]:
                    check(line["functionIndex"] > 0, "a line without a function")
                    stack.append(strings[use("functionTable", line["functionIndex"])["nameStrindex"]])
            for i, time in enumerate(times):
                result.append(Sample(attributes.get("thread.name", ""), tuple(reversed(stack)), 1,
                                     profile["period"] if is_clock else sample["values"][i], 0 if is_clock else event, time))
    for resource in resources:
        check(any(attribute["key"] == "service.name" for attribute in resource["resource"]["attributes"]), "no service.name")
    for function in tables["functionTable"]:
        for key in ("nameStrindex", "systemNameStrindex", "filenameStrindex"):
            use("stringTable", function[key])
    for mapping in tables["mappingTable"]:
        check(mapping["memoryStart"] < mapping["memoryLimit"] or mapping["memoryLimit"] == 0, "an empty mapping")
        use("stringTable", mapping["filenameStrindex"])
        for index in mapping["attributeIndices"]:
            use("attributeTable", index)
    for attribute in tables["attributeTable"]:
        use("stringTable", attribute["keyStrindex"])
    for name, rows in tables.items():
        check(used[name] == set(range(len(rows))), f"{name} has elements that nobody uses: {set(range(len(rows))) - used[name]}")
    return result


# ---- Firefox Profiler, processed profile version 65 ----

def columns(table, names, what):
    for name in names.split():
        check(name in table, f"{what} has no column {name}")
        check(len(table[name]) == table["length"], f"{what}.{name} has {len(table[name])} of {table['length']} elements")


def firefox(path):
    profile = json.loads(load(path))
    shared = profile["shared"]
    meta = profile["meta"]
    check(meta["preprocessedProfileVersion"] == 65, "the version")
    check(any(category["color"] == "grey" for category in meta["categories"]), "there is no grey category")
    strings, stacks, frames, funcs = (shared[key] for key in ("stringArray", "stackTable", "frameTable", "funcTable"))
    symbols, sources, resources = shared["nativeSymbols"], shared["sources"], shared["resourceTable"]
    columns(stacks, "prefix frame", "stackTable")
    columns(frames, "address inlineDepth category subcategory func nativeSymbol innerWindowID line column originalLocation", "frameTable")
    columns(funcs, "name isJS relevantForJS resource source lineNumber columnNumber originalLocation", "funcTable")
    columns(symbols, "libIndex address name functionSize", "nativeSymbols")
    columns(sources, "id filename startLine startColumn sourceMapURL content", "sources")
    columns(resources, "lib name host type", "resourceTable")

    def within(values, limit, what, least=0):
        check(all(value is None or least <= value < limit for value in values), f"{what} leads outside")

    within(stacks["frame"], frames["length"], "stackTable.frame")
    check(all(prefix is None or 0 <= prefix < row for row, prefix in enumerate(stacks["prefix"])), "a child stands before its parent")
    within(frames["func"], funcs["length"], "frameTable.func")
    within(frames["nativeSymbol"], symbols["length"], "frameTable.nativeSymbol")
    within(frames["category"], len(meta["categories"]), "frameTable.category")
    within(frames["subcategory"], 3, "frameTable.subcategory")
    within(frames["address"], 1 << 31, "frameTable.address", -1)
    within(symbols["address"], 1 << 31, "nativeSymbols.address")
    within(symbols["libIndex"], len(profile["libs"]), "nativeSymbols.libIndex")
    within(symbols["name"], len(strings), "nativeSymbols.name")
    within(funcs["name"], len(strings), "funcTable.name")
    within(funcs["resource"], resources["length"], "funcTable.resource", -1)
    within(funcs["source"], sources["length"], "funcTable.source")
    within(sources["filename"], len(strings), "sources.filename")
    for lib in profile["libs"]:
        check(len(lib["breakpadId"]) == 33 and int(lib["breakpadId"], 16) >= 0, f"breakpadId {lib['breakpadId']}")
    # An inlined frame lies at its caller's address, one deeper.
    for row, (prefix, frame) in enumerate(zip(stacks["prefix"], stacks["frame"])):
        depth = frames["inlineDepth"][frame]
        if depth:
            parent = stacks["frame"][prefix]
            check(frames["inlineDepth"][parent] == depth - 1, f"row {row}: inlineDepth")
            check(all(frames[key][parent] == frames[key][frame] for key in ("address", "nativeSymbol", "category")), f"row {row}: address")

    names = [strings[funcs["name"][func]] for func in frames["func"]]
    whole = {}

    def stack_of(row):
        path = []
        while row is not None and row not in whole:
            path.append(row)
            row = stacks["prefix"][row]
        known = whole[row] if row is not None else ()
        for row in reversed(path):
            known = known + (names[stacks["frame"][row]],)
            whole[row] = known
        return known

    events = [entry["value"] for entry in meta["extra"][0]["entries"] if entry["label"] == "Event"]
    result = []
    seen = set()
    for thread in profile["threads"]:
        samples = thread["samples"]
        check(isinstance(thread["pid"], str), "a pid is no string")
        check((thread["pid"], thread["tid"]) not in seen, "a thread is there twice")
        seen.add((thread["pid"], thread["tid"]))
        columns(samples, "stack time", "samples")
        columns(thread["markers"], "name startTime endTime phase category data", "markers")
        check(samples["time"] == sorted(samples["time"]), "samples are not sorted")
        within(samples["stack"], stacks["length"], "samples.stack")
        event = next((i for i, name in enumerate(events) if thread["name"].endswith(f" ({name})")), 0)
        name = thread["name"].removesuffix(f" ({events[event]})")
        name = "" if name == "[unknown]" else name
        # Nanoseconds of the processor, or what an event stands for; waits in ms.
        check(samples["weight"] is None or "threadCPUDelta" not in samples, "a wait takes the processor's time")
        scale = {"tracing-ms": 1e6, "bytes": 1, "samples": 1}[samples["weightType"]]
        weights = samples["weight"] or samples.get("threadCPUDelta") or [None] * samples["length"]
        check(len(weights) == samples["length"], "the weights' length")
        for stack, time, weight in zip(samples["stack"], samples["time"], weights):
            result.append(Sample(name, stack_of(stack), 1, weight and round(weight * scale), event, time))
    return result


# ---- speedscope: src/lib/file-format-spec.ts ----

def speedscope(path):
    file = json.loads(load(path))
    check(file["$schema"] == "https://www.speedscope.app/file-format-schema.json", "the schema")
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    result = []
    for profile in file["profiles"]:
        check(profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"]), "a profile's shape")
        check(profile["endValue"] - profile["startValue"] == sum(profile["weights"]), "endValue")
        thread = profile["name"].split(" ", 1)[1].rsplit("/", 1)[0]
        for stack, weight in zip(profile["samples"], profile["weights"]):
            result.append(Sample(thread, tuple(frames[frame] for frame in stack), 1, weight, None, None))
    return result


# ---- JFR: see jfr_file.py ----

def jfr(path):
    data = load(path)
    result = []
    for kind, thread, stack, weight, time in jfr_file.stacks(data):
        is_clock = kind in ("jdk.ExecutionSample", "jdk.NativeMethodSample")
        name = "" if thread["osName"] == "[unknown]" else thread["osName"]
        result.append(Sample(name, stack, 1, weight, 0 if is_clock else 1, time))
    return result


# ---- What an export says of how good the profile is ----

def verdict(name, path):
    """In words, as the scorecard has them; None: nothing."""
    data = load(path)
    if name == "pprof":
        profile = message(data, PPROF)
        comments = dict(profile["strings"][comment].split(": ", 1) for comment in profile["comment"])
        return comments.get("verdict")
    if name == "firefox":
        return next((entry["value"] for entry in json.loads(data)["meta"]["extra"][0]["entries"] if entry["label"] == "Verdict"), None)
    request = from_json(json.loads(data), OTLP) if name == "otlp-json" else message(data, OTLP)
    tables = request["dictionary"]
    told = set()
    for resource in request["resourceProfiles"]:
        for profile in resource["scopeProfiles"][0]["profiles"]:
            attributes = {tables["stringTable"][row["keyStrindex"]]: row["value"]["stringValue"]
                          for row in map(tables["attributeTable"].__getitem__, profile["attributeIndices"])}
            told.add(attributes.get("jdagent.verdict"))
    check(len(told) == 1, f"profiles of one recording have verdicts {told}")
    return told.pop()


# ---- collapsed ----

def collapsed_text(samples, threads=True):
    """The lines that a profile's samples make, as a Counter."""
    def clean(name):
        return name.replace(";", ":").replace("\n", " ").replace("\r", " ")

    lines = collections.Counter()
    for sample in samples:
        first = (clean(sample.thread) or "[unknown]",) if threads else ()
        lines[";".join(first + tuple(map(clean, sample.stack)))] += sample.count
    return lines


def collapsed(path, threads=True):
    lines = collections.Counter()
    for line in load(path).decode("utf-8", "replace").split("\n")[:-1]:
        stack, count = line.rsplit(" ", 1)
        if not threads:
            stack = stack.split(";", 1)[1] if ";" in stack else ""
        lines[stack] += int(count)
    return lines


READERS = {
    "pprof": pprof,
    "otlp": otlp,
    "otlp-json": lambda path: otlp(path, is_json=True),
    "firefox": firefox,
    "jfr": jfr,
    "speedscope": speedscope,
}


def same(first, second, what):
    if first != second:
        for line in sorted(set(first.items()) ^ set(second.items()), key=str)[:6]:
            print("  only in one:", line)
        check(False, what)
