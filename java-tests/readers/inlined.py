#!/usr/bin/env python3
"""Holds the inlined frames that jdtool inject put into call chains against what HotSpot reported.

usage: inlined.py RECORDING RESULT ORACLE

For every address of every chain of the recording where the oracle knows code, the result's name must
be that of the code that was there (what was told of last before the sample, or first behind it, for
HotSpot tells late). Where that is a compiled method, the frames that the result has before it must be
the oracle's stack for that address, innermost first: the first PCStackInfo whose pc is above it (above
the call, for a caller), method and line of each frame. A PCStackInfo at a call that another one says was
inlined may be HotSpot's mistake (agent/methods/inlines.c): then the frames may as well be what one before
it and one behind it have in common. C code that keeps no frame pointer (the JVM and
our agent, which handle addresses of code) leaves anything there for a return address: where it is the
start of a piece of code, or in code that is only being told of, the frame is not judged, but one in a
thousand must not be exceeded.
Prints the figures and the first differences; exits 1 when one name or one frame is wrong.
"""
import bisect
import collections
import re
import subprocess
import sys

GENERATED = re.compile(r"//anon|\[anon|\[unknown\]|/memfd:|/tmp/perf-\d+\.map")
FRAMES_BASE = 1 << 60  # where jdtool inject maps the image of inlined frames
PRIMITIVES = {"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long",
              "S": "short", "Z": "boolean", "V": "void"}


def parameters(signature):
    """(ILjava/lang/String;[J)V -> int,java.lang.String,long[]"""
    names = []
    at = 1
    while signature[at] != ")":
        dimensions = 0
        while signature[at] == "[":
            dimensions += 1
            at += 1
        if signature[at] == "L":
            end = signature.index(";", at)
            name = signature[at + 1:end].replace("/", ".")
            at = end + 1
        else:
            name = PRIMITIVES[signature[at]]
            at += 1
        names.append(name + "[]" * dimensions)
    return ",".join(names)


def plain(name):
    """Hidden classes, and the VM's anonymous ones to JDK 14, have their number behind '/', '.' or '+', as it was
    heard of; no other part of a name begins with a digit."""
    return re.sub(r"[/+](?=\d)", ".", name).replace(" ", "")


def method_name(class_signature, name, signature):
    owner = class_signature[1:-1].replace("/", ".")
    return plain(f"{owner}.{name}({parameters(signature)})")


class Code:
    """A compiled method, or a stub (without stacks)."""
    def __init__(self, time, address, size, name, is_method=True):
        self.time, self.address, self.size, self.name = time, address, size, name
        self.is_method = is_method
        self.pcs = []
        self.stacks = []
        self.bcis = []  # of the innermost frames and their callers
        self.strays = None

    def find_strays(self):
        def place(stack, bcis, depth):  # the methods from the compiled one on, by lines, and the last one's bytecode
            outer = stack[::-1][:depth]
            return (*outer[:-1], outer[-1][0], bcis[-depth])
        stacks = list(zip(self.stacks, self.bcis))
        called = {place(*stack, depth) for stack in stacks for depth in range(1, len(stack[0]))}
        self.strays = [place(*stack, len(stack[0])) in called for stack in stacks]

    def inlined_at(self, address):
        """The frames above the compiled method's own: those that may be."""
        i = bisect.bisect_right(self.pcs, address - self.address)
        if i >= len(self.stacks):
            return [[]]
        if self.strays is None:
            self.find_strays()
        may = [self.stacks[i][:-1]]
        if self.strays[i]:  # those around it are sure where they end behind a call, which is not known here
            before, behind = i - 1, i + 1
            while before > 0 and self.strays[before]:
                before -= 1
            while behind < len(self.stacks) - 1 and self.strays[behind]:
                behind += 1
            for first in [self.stacks[0][-1:], *self.stacks[max(before, 0):i]]:
                for second in self.stacks[i + 1:behind + 1]:
                    may.append(common(first, second)[:-1])
        return may


def common(first, second):
    """The methods of the second, innermost first, that the first is in as well: called on the same lines."""
    depth = 0
    for (name, line), (other, its) in zip(first[::-1], second[::-1]):
        if name != other:
            break
        depth += 1
        if line != its:
            break
    return second[len(second) - depth:]


def is_intrinsic(code):
    """HotSpot gives all method handle intrinsics one jmethodID, so the oracle hears one name for them;
    the test java.names holds theirs against the compilation log."""
    return re.match(r"java\.lang\.invoke\.MethodHandle\.(linkTo|invokeBasic)", code.name) is not None


def read_oracle(path):
    methods, stubs = [], []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            f = line.rstrip("\n").split("\t")
            if f[0] == "L":
                methods.append(Code(int(f[1]), int(f[2], 16), int(f[3]), method_name(*f[4:7])))
            elif f[0] == "D":
                stubs.append(Code(int(f[1]), int(f[2], 16), int(f[3]), f[4], False))
            elif f[0] == "p":
                methods[-1].pcs.append(int(f[1], 16))
                methods[-1].stacks.append([])
                methods[-1].bcis.append([])
            elif f[0] == "f":
                known = f[1] != "?"
                name = method_name(*f[1:4]) if known else "?"
                methods[-1].stacks[-1].append((name, int(f[5])))
                methods[-1].bcis[-1].append(int(f[6]))
    pages = collections.defaultdict(list)
    for method in sorted(methods + stubs, key=lambda code: code.time):
        for page in range(method.address >> 12, (method.address + method.size >> 12) + 1):
            pages[page].append(method)
    return pages


def there_at(pages, address, time):
    """The code that was there: what was told of last before the time, and first behind it."""
    there = [m for m in pages.get(address >> 12, []) if m.address <= address < m.address + m.size]
    return [m for m in there if m.time <= time][-1:] + [m for m in there if m.time > time][:1]


def samples(path):
    """Each sample's (time in ns, [(address, symbol, file)])."""
    command = ["perf", "script", "-i", path, "--max-stack", "20000", "--ns", "-F", "time,ip,sym,dso"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace") as perf:
        time, frames = None, []
        for line in perf.stdout:
            if line[0] in "\t" or line.startswith("        "):
                match = re.match(r"\s+([0-9a-f]+) (.*) \((.*)\)$", line)
                if match:
                    frames.append((int(match[1], 16), match[2], match[3]))
                    continue
            head = re.match(r"\s*(\d+)\.(\d+):", line)
            if head:
                if time is not None:
                    yield time, frames
                time, frames = int(head[1]) * 10**9 + int(head[2].ljust(9, "0")), []
        if time is not None:
            yield time, frames


def lines_of(image, addresses):
    """address -> line, by addr2line."""
    answer = subprocess.run(["addr2line", "-e", image], text=True, stdout=subprocess.PIPE,
                            input="\n".join(f"{a:x}" for a in addresses), check=True).stdout
    lines = {}
    for address, line in zip(addresses, answer.splitlines()):
        number = re.search(r":(\d+)", line)
        lines[address] = int(number[1]) if number else 0
    return lines


def main():
    recording, result, oracle = sys.argv[1:]
    pages = read_oracle(oracle)
    before = list(samples(recording))
    after = list(samples(result))
    if len(before) != len(after):
        sys.exit(f"{len(before)} samples became {len(after)}")

    wanted = collections.defaultdict(set)
    for _, frames in after:
        for i, (address, symbol, image) in enumerate(frames):
            if image.endswith("-frames.so"):  # perf 7 gives the address itself, not that in the file
                frames[i] = (address % FRAMES_BASE, symbol, image)
                wanted[image].add(address % FRAMES_BASE)
    lines = {image: lines_of(image, sorted(addresses)) for image, addresses in wanted.items()}

    count = collections.Counter()
    differences = []
    misnamed = []
    for (time, raw), (_, expanded) in zip(before, after):
        if not raw and expanded:
            # HotSpot's method_entry_barrier left a -1 in the chain, and perf throws such a chain away.
            count["chains that only we have"] += 1
            continue
        at = 0
        for index, (address, symbol, image) in enumerate(raw):
            inlined = []
            while at < len(expanded) and expanded[at][2].endswith("-frames.so"):
                where, name, of = expanded[at]
                inlined.append((plain(name.removesuffix(" (inlined)")), lines[of][where]))
                at += 1
            if at == len(expanded):
                sys.exit(f"at {time}: the chain of {len(raw)} frames ends early")
            name = plain(expanded[at][1])
            at += 1
            if not GENERATED.match(image):
                continue  # of a file
            above = raw[index - 1][2] if index else "[kernel.kallsyms]"
            looks = [address if above == "[kernel.kallsyms]" else address - 1]
            if looks[0] < address and any(m.address == address for m in there_at(pages, address, time)):
                if not GENERATED.match(above) or above == "[unknown]":  # which is mapped from nowhere
                    count["no return addresses"] += 1
                    continue  # nothing returns to where code begins: it is in the frame pointer of C code
                # The thread was stopped there; or what begins there has another life than what called.
                looks.append(address)
            there = [(m, look) for look in looks for m in there_at(pages, look, time)]
            if not there:
                continue  # nothing was ever told of this place
            candidates = [(m, look) for m, look in there if m.name == name and m.is_method]
            if not candidates and name == "[unknown]" and not GENERATED.match(above):
                count["no return addresses"] += 1
                continue  # such code is at hand where it is told of, and has no name yet
            if not candidates:
                known = [m for m, _ in there]
                if all(m.is_method for m in known) and not all(map(is_intrinsic, known + [Code(0, 0, 0, name)])):
                    misnamed.append((time, hex(address), name, f"called by {index} frames, the last in {above}",
                                     [(m.name, hex(m.address), m.size, m.time - time) for m in known]))
                continue  # a stub, or the interpreter
            count["addresses in compiled methods"] += 1
            expected = [may for m, look in candidates for may in m.inlined_at(look)]
            count["inlined frames"] += len(inlined)
            if inlined in expected:
                count["right"] += 1
            else:
                around = [(hex(a), s, f) for a, s, f in raw[max(0, index - 3):index + 2]]
                differences.append((time, hex(address), name, "found: ", inlined, "expected: ", *expected,
                                    "the frames around it, innermost first:", *around))
        if at != len(expanded):
            sys.exit(f"at {time}: {len(expanded) - at} frames too many")

    for key, number in count.items():
        print(f"-- {number:9} {key}")
    print(f"-- {len(misnamed):9} misnamed")
    for where in misnamed[:5]:
        print("-- misnamed:", *where, sep="\n     ")
    for difference in differences[:5]:
        print("-- wrong:", *difference, sep="\n     ")
    if count["no return addresses"] * 1000 > count["addresses in compiled methods"]:
        sys.exit(f"{count['no return addresses']} callers are where code begins")
    if count["chains that only we have"] * 50 > len(before):
        sys.exit(f"{count['chains that only we have']} chains of {len(before)} are none of the recording's")
    if misnamed:
        sys.exit(f"{len(misnamed)} addresses in compiled methods have another name than the JVM's")
    if count["right"] != count["addresses in compiled methods"] or count["inlined frames"] < 200:
        sys.exit(f"{len(differences)} of {count['addresses in compiled methods']} are wrong, "
                 f"{count['inlined frames']} inlined frames seen")


main()
