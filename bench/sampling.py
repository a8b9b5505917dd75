#!/usr/bin/env python3
"""What sampling costs the program: bench/programs/Rounds.java on an H2 database under jdperf record, whose events are
switched on and off every quarter of a second. Whatever else slows the machine or this JVM is in both halves; processes
started one by one differ by more than what is looked for. In the same JVM, by turns: perf's own samples as often, without
stacks, which is the interrupt alone; and samples of a process that sleeps, which cost nothing: what is found for them is
what switching does. With ASYNC_PROFILER=libasyncProfiler.so, its samples too.

With --alloc it is allocations that are recorded, not processor time: sessions of the agent with and without them, in
turns, an allocation each so many bytes.

Prints the processor time of a round while recorded, over that of its neighbours while not, and what that is for one
sample and at the default rate. A low rate's cost is lost in the machine's unrest; one of ten times as many samples is
not, and each sample costs what it costs (--frequency 990, --alloc 65536). Needs root; H2 comes from Maven Central, or
from --h2.
"""
import argparse
import atexit
import bisect
import ctypes
import fcntl
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
H2 = "2.2.224"
LIBC = ctypes.CDLL(None)
OURS = "jdperf record"
CHILDREN = []
DEFAULT_RATE = 99  # of jdperf record
DEFAULT_DISTANCE = 512 * 1024  # bytes, of its --alloc


class Events:
    """What a process and its children sample, to be switched from outside."""
    DESCRIPTOR = "anon_inode:[perf_event]"
    PIDFD_GETFD, ENABLE, DISABLE = 438, 0x2400, 0x2401  # pidfd_getfd(2), perf_event_open(2)

    def __init__(self, pid):
        self.all = []
        deadline = time.monotonic() + 30
        while not self.all:
            if time.monotonic() > deadline:
                sys.exit("bench: nothing is sampled")
            time.sleep(1)
            for process in family(pid):
                self.take(process)
        self.say(b"disable")

    def take(self, pid):
        process = os.pidfd_open(pid)
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{name}") == self.DESCRIPTOR:
                    self.all.append(LIBC.syscall(self.PIDFD_GETFD, process, int(name), 0))
            except FileNotFoundError:
                pass
        os.close(process)

    def say(self, command):
        for event in self.all:
            fcntl.ioctl(event, self.ENABLE if command == b"enable" else self.DISABLE, 0)


def family(pid):
    """A process and all below it."""
    found = [pid]
    for one in found:
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children", encoding="ascii") as children:
                found += map(int, children.read().split())
    return found


class Allocations:
    """A uprobe on the agent's function as jdperf defines it, and sessions of the agent in a JVM."""
    EVENTS = "/sys/kernel/tracing/uprobe_events"

    def __init__(self, build, scratch, distance):
        self.build, self.scratch, self.distance, self.pid = build, scratch, distance, None
        self.group = f"jdagent_{os.getpid()}_bench"
        self.hits, self.begun = 0, 0
        agent = f"{build}/libjdagent.so"
        symbols = subprocess.run(["nm", "-D", agent], check=True, capture_output=True, text=True).stdout
        address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" jdagent_event_alloc"))
        segments = subprocess.run(["readelf", "-lW", agent], check=True, capture_output=True, text=True).stdout
        for line in segments.splitlines():
            words = line.split()
            if words[:1] == ["LOAD"] and 0 <= address - int(words[2], 16) < int(words[4], 16):
                offset = address - int(words[2], 16) + int(words[1], 16)
        self.define(f"p:{self.group}/alloc {agent}:{offset:#x} value=%di:u64 base=%si:u64 scale=%dx:u32 name=+0(%cx):string far=%r8:u32")
        atexit.register(self.end)

    def define(self, text):
        events = os.open(self.EVENTS, os.O_WRONLY | os.O_APPEND) # which cannot be sought in, as open() does
        try:
            os.write(events, text.encode() + b"\n")
        finally:
            os.close(events)

    def events(self):
        words = []
        for far, size in (("== 0", 8192), ("!= 0", 32768)): # format/event_probe.h
            words += ["-e", f"{self.group}:alloc/call-graph=dwarf,stack-size={size}/", "--filter", f"far {far}"]
        return words

    def count(self):
        with open("/sys/kernel/tracing/uprobe_profile", encoding="ascii") as lines:
            return sum(int(line.split()[2]) for line in lines if line.split()[1] == "alloc" and self.build in line)

    def live(self, *words):
        subprocess.run([f"{self.build}/jdtool", "live", "--agent", f"{self.build}/libjdagent.so", *words], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, options):
        self.live("attach", str(self.pid), "-o", self.scratch, "--agent-options", options)

    def say(self, command):
        if command == b"disable":
            self.hits += self.count() - self.begun
        self.live("stop", str(self.pid))
        self.start(f"alloc={self.distance}" if command == b"enable" else "methods=off")
        self.begun = self.count()

    def end(self):
        for _ in range(50):  # the kernel lets go of perf's events a moment after perf
            try:
                return self.define(f"-:{self.group}/alloc")
            except OSError:
                time.sleep(0.1)


def child(*arguments, **more):
    CHILDREN.append(subprocess.Popen(*arguments, **more))
    return CHILDREN[-1]


def end_children():
    """Ctrl-C, which jdperf and perf take for the end of what they record."""
    for process in reversed(CHILDREN):
        process.send_signal(signal.SIGINT)
        process.wait()
    CHILDREN.clear()


def h2_jar(build):
    jar = os.path.join(build, "bench", f"h2-{H2}.jar")
    if not os.path.exists(jar):
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact=com.h2database:h2:{H2}",
                        f"-DoutputDirectory={os.path.dirname(jar)}"], check=True)
    return jar


def switched(seconds, arms, length):
    """Switches each arm on and off, in an order by chance; the spans between, (BEGIN, END, name of the arm or None)."""
    spans, on, begin = [], None, time.monotonic_ns()
    last = begin + seconds * 1_000_000_000
    order = []
    while time.monotonic_ns() < last:
        time.sleep(random.uniform(0.8, 1.2) * length)
        end = time.monotonic_ns()
        spans.append((begin, end, on))
        if on:
            arms[on].say(b"disable")
            on = None
        else:
            order = order or random.sample(list(arms), len(arms))
            on = order.pop()
            arms[on].say(b"enable")
        begin = time.monotonic_ns()
    return spans


def costs(rounds, spans, arm):
    """For each span of the arm, the time of its rounds over that of the spans on either side."""
    ends = [end for end, _ in rounds]
    means = []
    for begin, end, _ in spans:
        # The round that was under way when it was switched belongs to neither.
        inside = rounds[bisect.bisect_left(ends, begin) + 1:bisect.bisect_right(ends, end)]
        means.append(statistics.fmean(took for _, took in inside) if inside else None)
    found = []
    for i in range(1, len(spans) - 1):
        if spans[i][2] == arm and means[i - 1] and means[i] and means[i + 1]:
            found.append(2 * means[i] / (means[i - 1] + means[i + 1]) - 1)
    return found


def measure_allocations(options, build, scratch):
    """Costs of the spans, and events a second of the program's processor time in them."""
    rounds = os.path.join(scratch, "rounds")
    switch = Allocations(build, scratch, options.alloc)
    jvm = child(
        [os.path.join(options.jdk, "bin", "java"), "-Xms1g", "-Xmx1g", "-XX:+EnableDynamicAgentLoading",
         "-XX:-UseDynamicNumberOfCompilerThreads", # perf refuses a filter where a thread ends meanwhile
         "-cp", f"{scratch}:{options.h2}", "Rounds", str(options.warm), str(options.seconds + 10), rounds],
        stdout=subprocess.PIPE)
    jvm.stdout.readline()
    switch.pid = jvm.pid
    perf = child(
        ["perf", "record", "-k", "mono", *switch.events(), "-o", "-", "--buildid-mmap", "-p", str(jvm.pid), "-m", "8M"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PERF_CONFIG="/dev/null"))
    naming = child([f"{build}/jdtool", "inject", "-q", "-i", "-", "-o", os.path.join(scratch, "named")],
                              stdin=perf.stdout)
    perf.stdout.close()
    switch.start("methods=off")
    spans = switched(options.seconds, {OURS: switch}, 0.5)
    for process in (jvm, perf, naming):
        process.wait()
    with open(rounds, encoding="ascii") as lines:
        took = [tuple(map(int, line.split())) for line in lines]
    seconds = sum(spent for end, spent in took for begin, last, on in spans if on and begin < end <= last) / 1e9
    return {OURS: costs(took, spans, OURS)}, switch.hits / seconds


def measure(options, build, scratch):
    """Costs of the spans of each arm."""
    rounds = os.path.join(scratch, "rounds")
    rate = ("-F", str(options.frequency))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    peer = []
    if "ASYNC_PROFILER" in os.environ:
        peer = [f"-agentpath:{os.environ['ASYNC_PROFILER']}=start,event=cpu-clock,interval={10**9 // options.frequency},"
                f"file={scratch}/peer.jfr"]
    jvm = child(
        [os.path.join(options.jdk, "bin", "java"), "-Xms1g", "-Xmx1g", "-XX:+UnlockDiagnosticVMOptions",
         "-XX:+DebugNonSafepoints", "-XX:+EnableDynamicAgentLoading", *peer, "-cp", f"{scratch}:{options.h2}", "Rounds",
         str(options.warm), str(options.seconds + 30), rounds], stdout=subprocess.PIPE)
    jvm.stdout.readline()
    sleeper = child(["sleep", str(options.seconds + 60)])
    perf = ["perf", "record", "-e", "cpu-clock", *rate, "-o", "/dev/null"]
    recorders = {
        OURS: child([os.path.join(HERE, "..", "scripts", "jdperf"), "record", *rate, "--stacks", options.stacks,
                                "-o", os.path.join(scratch, "profile"), "-p", str(jvm.pid)],
                               env=dict(os.environ, JDAGENT_BUILD=build), **quiet),
        "perf without stacks": child([*perf, "-a"], **quiet),
        "samples of nobody": child([*perf, "-p", str(sleeper.pid)], **quiet)}
    arms = {name: Events(process.pid) for name, process in recorders.items()}
    if peer:
        arms["async-profiler"] = Events(jvm.pid)
    spans = switched(options.seconds, arms, options.span)
    end_children()
    with open(rounds, encoding="ascii") as lines:
        took = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
    return {name: costs(took, spans, name) for name in arms}


def middle(values):
    """The mean of the middle half."""
    return statistics.fmean(sorted(values)[len(values) // 4:len(values) - len(values) // 4])


def spread(values, of):
    """What `of` makes of the values, and between what it lies with 95 %, by drawing them again."""
    again = sorted(of(random.choices(values, k=len(values))) for _ in range(2000))
    return of(values), again[50], again[1950]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jdk", default="/usr/lib/jvm/java-17-openjdk-amd64")
    parser.add_argument("--frequency", type=int, default=DEFAULT_RATE)
    parser.add_argument("--stacks", choices=("kernel", "copy"), default="kernel")
    parser.add_argument("--span", type=float, default=0.25, help="seconds until the next switch")
    parser.add_argument("--alloc", type=int, help="bytes between allocations that are told")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--warm", type=int, default=20)
    parser.add_argument("--jvms", type=int, default=3)
    parser.add_argument("--h2")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C, which leaves nothing
    build = os.path.abspath(os.environ.get("JDAGENT_BUILD", os.path.join(HERE, "..", "build")))
    options.h2 = options.h2 or h2_jar(build)
    found, rates = {}, []
    for _ in range(options.jvms):
        with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
            subprocess.run([os.path.join(options.jdk, "bin", "javac"), "-nowarn", "-d", scratch,
                            os.path.join(HERE, "programs", "Rounds.java")], check=True)
            if options.alloc:
                more, rate = measure_allocations(options, build, scratch)
                rates.append(rate)
            else:
                more = measure(options, build, scratch)
            for name, spans in more.items():
                found.setdefault(name, []).extend(spans)
    rate, default = options.frequency, DEFAULT_RATE
    what = f"{rate} Hz, --stacks {options.stacks}"
    if options.alloc:
        rate = statistics.fmean(rates)
        default = rate * options.alloc / DEFAULT_DISTANCE
        what = f"an allocation each {options.alloc} bytes, {rate:.0f} a second of processor time"
    for name, spans in found.items():
        # The middle half: a collection or a busy neighbour in one span is not the sampler's.
        cost = spread(spans, middle)
        print(f"{name}, {what}: " + "{:+.2f} % ({:+.2f} to {:+.2f}, 95 %), ".format(*(100 * one for one in cost)) +
              f"{len(spans)} spans")
        one = [each / rate for each in cost]
        print("  a sample {:.0f} us ({:.0f} to {:.0f}), ".format(*(1e6 * each for each in one)) +
              "at the default of {:.0f} a second {:+.2f} % ({:+.2f} to {:+.2f})".format(
                  default, *(100 * default * each for each in one)))


if __name__ == "__main__":
    try:
        main()
    finally:
        end_children()
