#!/usr/bin/env python3
"""Compares listings of bytecodes with what javap says of the same class.

usage: listings.py CLASS JAVAP LISTING

CLASS is as in "java.util.HashMap", JAVAP the output of `javap -c -p -s -l CLASS`, LISTING the class's
text: a line for each method that has code, "put(Ljava/lang/Object;)V", and its bytecodes. Every method's instruction's place, name and first operand must be equal,
and the line where one begins. Exit status 1 and a line for each difference.
"""
import re
import sys

PRIMITIVES = dict(zip("ZBCSIJFDV", "boolean byte char short int long float double void".split()))


def types(descriptor):
    """"(I[Ljava/lang/String;)V" as "int, java.lang.String[]"."""
    result = []
    for dimensions, name, letter in re.findall(r"(\[*)(?:L([^;]*);|([A-Z]))", descriptor.split(")")[0]):
        result.append((name.replace("/", ".") or PRIMITIVES[letter]) + "[]" * len(dimensions))
    return ", ".join(result)


def instruction(line):
    """(bci, name, first operand) of a line of either."""
    match = re.match(r"\s*(\d+): (\w+) *(.*)", line)
    if not match:
        return None
    operand = re.match(r"#?-?\w+", match[3].split("//")[0])
    name = match[2]
    # javap shows wide by its suffix, and switches over several lines.
    if name.endswith("switch"):
        return int(match[1]), name, ""
    return int(match[1]), name, operand[0] if operand else ""


def javap_methods(path, class_name):
    """{"m(int)": ([instruction], {bci: line})}"""
    methods, name, code, lines = {}, None, [], {}
    for line in open(path, encoding="utf-8"):
        descriptor = re.match(r"    descriptor: (\(.*)", line)
        if descriptor:
            code, lines = [], {}
            short = re.search(r"([\w$<>.]+)\(", declared) or re.match(r"  static (\{\})", declared)
            name = short[1] if short else "<clinit>"
            if name in (class_name, class_name.split(".")[-1]):
                name = "<init>"
            if name == "{}":
                name = "<clinit>"
            methods[f"{name}({types(descriptor[1])})"] = (code, lines)
        elif re.match(r"  \S", line):
            declared = line
        elif re.match(r"\s+line \d+: \d+", line):
            number, bci = re.findall(r"\d+", line)
            lines[int(bci)] = int(number)
        elif instruction(line) and name and not re.match(r"\s+-?\d+: \d+$", line):
            code.append(instruction(line))
    return methods


def listed_methods(path):
    """{"m(int)": [line]}"""
    methods = {}
    for line in open(path, encoding="utf-8").read().splitlines():
        if instruction(line):
            methods[method].append(line)
        else:
            name, descriptor = line.split("(", 1)
            method = f"{name}({types('(' + descriptor)})"
            methods[method] = []
    return methods


def main():
    class_name, javap, listing = sys.argv[1:]
    methods = {name: of for name, of in javap_methods(javap, class_name).items() if of[0]}
    listed = listed_methods(listing)
    compared, faults = 0, len(set(methods) ^ set(listed))
    for method in set(methods) ^ set(listed):
        print(f"{method}: only one of both knows it")
    for method in set(methods) & set(listed):
        text = listed[method]
        code, lines = methods[method]
        found = [instruction(line) for line in text]
        found_lines = {
            int(line.split(":")[0]): int(line.rsplit("// line ", 1)[1])
            for line in text
            if "// line " in line
        }
        compared += len(found)
        if found != code or found_lines != lines:
            faults += 1
            where = next((pair for pair in zip(found, code) if pair[0] != pair[1]), "lines")
            print(f"{method}: {where}")
    print(f"{compared} instructions of {len(listed)} methods as in javap; {faults} faults")
    return 1 if faults or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
