#!/usr/bin/env python3
"""Lists the methods of class files, as a JVM would tell of them to an agent.

usage: class_files.py DIRECTORY...
       class_files.py --map FILE.class TEXT    gives a class file a source map (SourceDebugExtension)

One line a method that has code, parted by tabs: SourceFile, class signature, name, descriptor and
"private static" or "-".
Written from chapter 4 of the JVM's specification.
"""
import os
import struct
import sys


class ClassFile:
    def __init__(self, data):
        self.data, self.at = data, 0
        magic, _, _ = self.take(">IHH")
        if magic != 0xCAFEBABE:
            raise ValueError("no class file")
        self.read_pool()
        _, this, _ = self.take(">HHH")
        self.name = self.text(self.pool[this])
        interfaces, = self.take(">H")
        self.at += 2 * interfaces
        self.members()  # fields
        self.methods = [(self.text(name), self.text(kind), flags) for flags, name, kind, attributes in self.members()
                        if "Code" in attributes]
        self.attributes_at = self.at
        attributes = self.attributes()
        source = attributes.get("SourceFile")
        self.source = self.text(struct.unpack(">H", source)[0]) if source else ""

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def read_pool(self):
        sizes = {3: 4, 4: 4, 5: 8, 6: 8, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4,
                 19: 2, 20: 2}
        count, = self.take(">H")
        self.pool = [None] * count
        i = 1
        while i < count:
            tag, = self.take(">B")
            if tag == 1:
                size, = self.take(">H")
                self.pool[i] = self.data[self.at:self.at + size]
                self.at += size
            elif tag == 7:
                self.pool[i], = self.take(">H")
            else:
                self.at += sizes[tag]
            i += 2 if tag in (5, 6) else 1
        self.pool_end = self.at

    def text(self, index):
        return self.pool[index].decode("utf-8", "replace")

    def attributes(self):
        count, = self.take(">H")
        found = {}
        for _ in range(count):
            name, size = self.take(">HI")
            found[self.text(name)] = self.data[self.at:self.at + size]
            self.at += size
        return found

    def members(self):
        count, = self.take(">H")
        found = []
        for _ in range(count):
            flags, name, kind = self.take(">HHH")
            found.append((flags, name, kind, self.attributes()))
        return found


def add_map(path, text):
    """One constant and one attribute more, each behind the others of its kind."""
    with open(path, "rb") as file:
        read = ClassFile(file.read())
    name = b"SourceDebugExtension"
    count, = struct.unpack_from(">H", read.data, read.attributes_at)
    with open(path, "wb") as file:
        file.write(read.data[:8] + struct.pack(">H", len(read.pool) + 1) + read.data[10:read.pool_end])
        file.write(struct.pack(">BH", 1, len(name)) + name)
        file.write(read.data[read.pool_end:read.attributes_at] + struct.pack(">H", count + 1))
        file.write(read.data[read.attributes_at + 2:])
        file.write(struct.pack(">HI", len(read.pool), len(text)) + text)


def main():
    if sys.argv[1:2] == ["--map"]:
        add_map(sys.argv[2], sys.argv[3].encode())
        return
    lines = []
    for top in sys.argv[1:]:
        for directory, _, names in os.walk(top):
            for name in names:
                if name.endswith(".class"):
                    with open(os.path.join(directory, name), "rb") as file:
                        read = ClassFile(file.read())
                    lines += ["\t".join((read.source, "L%s;" % read.name, method, kind,
                                         "private static" if flags & 0xA == 0xA else "-"))
                              for method, kind, flags in read.methods]
    for line in sorted(set(lines)):
        print(line)


main()
