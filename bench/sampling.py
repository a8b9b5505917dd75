#!/usr/bin/env python3
"""What sampling with copied stacks costs the program: bench/programs/Rounds.java on an H2 database, recorded and
named as jdperf record does it, while perf's events are switched on and off every half second. Whatever else slows the
machine or this JVM is in both halves; processes started one by one differ by more than what is looked for.

With --alloc it is allocations that are recorded, not processor time: sessions of the agent with and without them, in
turns, an allocation each so many bytes.

Prints the processor time of a round while recorded, over that of its neighbours while not, and what that is for one
sample and at the default rate. A low rate's cost is lost in the machine's unrest; one of ten times as many samples is
not, and each sample costs what it costs (--frequency 990, --alloc 65536). Needs root; H2 comes from Maven Central, or
from --h2.
"""
import argparse
import bisect
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
H2 = "2.2.224"
DEFAULT_RATE = 99  # of jdperf record
DEFAULT_DISTANCE = 512 * 1024  # bytes, of its --alloc


class Control:
    """The pipes by which perf is told."""

    def __init__(self):
        self.its_control, self.control = os.pipe()
        self.ack, self.its_ack = os.pipe()

    def descriptors(self):
        return self.its_control, self.its_ack

    def say(self, command):
        os.write(self.control, command + b"\n")
        said = b""
        while b"ack" not in said:
            got = os.read(self.ack, 16)
            if not got:
                sys.exit("bench: perf has ended")
            said += got


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

    def define(self, text):
        events = os.open(self.EVENTS, os.O_WRONLY | os.O_APPEND) # which cannot be sought in, as open() does
        os.write(events, text.encode() + b"\n")
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
        self.define(f"-:{self.group}/alloc")


def h2_jar(build):
    jar = os.path.join(build, "bench", f"h2-{H2}.jar")
    if not os.path.exists(jar):
        subprocess.run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact=com.h2database:h2:{H2}",
                        f"-DoutputDirectory={os.path.dirname(jar)}"], check=True)
    return jar


def switched(seconds, control):
    """Switches perf's events on and off; the spans between, (BEGIN, END, whether on)."""
    spans, on, begin = [], False, time.monotonic_ns()
    last = begin + seconds * 1_000_000_000
    while time.monotonic_ns() < last:
        time.sleep(random.uniform(0.4, 0.6))
        end = time.monotonic_ns()
        control.say(b"disable" if on else b"enable")
        spans.append((begin, end, on))
        on, begin = not on, time.monotonic_ns()
    return spans


def costs(rounds, spans):
    """For each span with sampling, the time of its rounds over that of the spans on either side."""
    ends = [end for end, _ in rounds]
    means = []
    for begin, end, _ in spans:
        # The round that was under way when it was switched belongs to neither.
        inside = rounds[bisect.bisect_left(ends, begin) + 1:bisect.bisect_right(ends, end)]
        means.append(statistics.fmean(took for _, took in inside) if inside else None)
    found = []
    for i in range(1, len(spans) - 1):
        if spans[i][2] and means[i - 1] and means[i] and means[i + 1]:
            found.append(2 * means[i] / (means[i - 1] + means[i + 1]) - 1)
    return found


def measure_allocations(options, build, scratch):
    """Costs of the spans, and events a second of the program's processor time in them."""
    rounds = os.path.join(scratch, "rounds")
    switch = Allocations(build, scratch, options.alloc)
    jvm = subprocess.Popen(
        [os.path.join(options.jdk, "bin", "java"), "-Xms1g", "-Xmx1g", "-XX:+EnableDynamicAgentLoading",
         "-cp", f"{scratch}:{options.h2}", "Rounds", str(options.warm), str(options.seconds + 10), rounds],
        stdout=subprocess.PIPE)
    jvm.stdout.readline()
    switch.pid = jvm.pid
    perf = subprocess.Popen(
        ["perf", "record", "-k", "mono", *switch.events(), "-o", "-", "--buildid-mmap", "-p", str(jvm.pid), "-m", "8M"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PERF_CONFIG="/dev/null"))
    naming = subprocess.Popen([f"{build}/jdtool", "inject", "-q", "-i", "-", "-o", os.path.join(scratch, "named")],
                              stdin=perf.stdout)
    perf.stdout.close()
    switch.start("methods=off")
    spans = switched(options.seconds, switch)
    for process in (jvm, perf, naming):
        process.wait()
    switch.end()
    with open(rounds, encoding="ascii") as lines:
        took = [tuple(map(int, line.split())) for line in lines]
    seconds = sum(spent for end, spent in took for begin, last, on in spans if on and begin < end <= last) / 1e9
    return costs(took, spans), switch.hits / seconds


def measure(options, build, scratch):
    rounds = os.path.join(scratch, "rounds")
    control = Control()
    jvm = subprocess.Popen(
        [os.path.join(options.jdk, "bin", "java"), "-Xms1g", "-Xmx1g", "-XX:+UnlockDiagnosticVMOptions",
         "-XX:+DebugNonSafepoints", f"-agentpath:{build}/libjdagent.so=dir={scratch},methods=on",
         "-cp", f"{scratch}:{options.h2}", "Rounds", str(options.warm), str(options.seconds + 5), rounds],
        stdout=subprocess.PIPE)
    jvm.stdout.readline()
    perf = subprocess.Popen(
        ["perf", "record", "-k", "mono", "-e", "cpu-clock", "-F", str(options.frequency), "-o", "-", "--buildid-mmap",
         "-p", str(jvm.pid), "--call-graph", f"dwarf,{options.stack_size}", "-m", "4M", "-D", "-1",
         "--control", "fd:{},{}".format(*control.descriptors())],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=control.descriptors(),
        env=dict(os.environ, PERF_CONFIG="/dev/null"))
    naming = subprocess.Popen([f"{build}/jdtool", "inject", "-q", "-i", "-", "-o", os.path.join(scratch, "named")],
                              stdin=perf.stdout)
    perf.stdout.close()
    for descriptor in control.descriptors():
        os.close(descriptor)
    control.say(b"disable")
    spans = switched(options.seconds, control)
    for process in (jvm, perf, naming):
        if process.wait() != 0 and process is not perf:
            sys.exit(f"bench: {process.args[0]} failed")
    with open(rounds, encoding="ascii") as lines:
        return costs([tuple(map(int, line.split())) for line in lines], spans)


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
    parser.add_argument("--stack-size", type=int, default=65528)
    parser.add_argument("--alloc", type=int, help="bytes between allocations that are told")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--warm", type=int, default=20)
    parser.add_argument("--jvms", type=int, default=3)
    parser.add_argument("--h2")
    options = parser.parse_args()
    build = os.path.abspath(os.environ.get("JDAGENT_BUILD", os.path.join(HERE, "..", "build")))
    options.h2 = options.h2 or h2_jar(build)
    found, rates = [], []
    for _ in range(options.jvms):
        with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
            subprocess.run([os.path.join(options.jdk, "bin", "javac"), "-nowarn", "-d", scratch,
                            os.path.join(HERE, "programs", "Rounds.java")], check=True)
            if options.alloc:
                more, rate = measure_allocations(options, build, scratch)
                found += more
                rates.append(rate)
            else:
                found += measure(options, build, scratch)
            print(f"{len(found)} spans, median {100 * statistics.median(found):+.2f} %", file=sys.stderr)
    # The middle half: a collection or a busy neighbour in one span is not the sampler's.
    mean, low, high = spread(found, middle)
    rate, default = options.frequency, DEFAULT_RATE
    what = f"{rate} Hz, {options.stack_size} bytes"
    if options.alloc:
        rate = statistics.fmean(rates)
        default = rate * options.alloc / DEFAULT_DISTANCE
        what = f"an allocation each {options.alloc} bytes, {rate:.0f} a second of processor time"
    print(f"{what}: {100 * mean:+.2f} % "
          f"({100 * low:+.2f} to {100 * high:+.2f}, 95 %), {len(found)} spans")
    one = [cost / rate for cost in (mean, low, high)]
    print("a sample {:.0f} us ({:.0f} to {:.0f}), ".format(*(1e6 * cost for cost in one)) +
          "at the default of {:.0f} a second {:+.2f} % ({:+.2f} to {:+.2f})".format(
              default, *(100 * default * cost for cost in one)))


if __name__ == "__main__":
    main()
