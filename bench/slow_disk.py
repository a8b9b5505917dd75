#!/usr/bin/env python3
"""What a slow disk under the agent's dump costs a program that keeps the JIT busy (bench/programs/Compiled.java): in
one JVM, spans of some seconds without a session of the agent and with one, whose disk is healthy, takes 20 ms a write,
or hangs (java-tests/slow_disk, preloaded). Each span with a session stands between two without.

A thread that is held by a disk sleeps: how often the program's thread goes to sleep in a hundred rounds is told,
which other work on the machine changes little. Next its processor time for a round, the median of a span. It says
little unless the program waits for its code (--xbatch): else it runs less optimised code until a compiler is through,
and when that is, on a busy machine, hangs on who wakes up how often: a process that has nothing to do with the JVM,
and wakes every 20 ms rather than each millisecond, made that 33 % (22 to 43) more. And last the processor time of the
threads that the agent works on, the JVM's Service Thread and its own.

Each is the difference to the spans beside it: the mean of the middle half of all spans, and where that lies with 95
%. A session's begin, which tells of all code once, and its end are in no span.
"""
import argparse
import bisect
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import sampling

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("healthy", "20 ms", "hangs")
PARTS = ("sleeps in 100 rounds", "the program's thread, %", "the agent's threads, us")


AGENT = ("Service Thread", "jdagent writer")


def times(pid):
    """{thread: (ns that it has run, how often it slept)}"""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                ran = int(file.read().split()[0])
            with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
                sleeps = next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
        except OSError:
            continue
        # The launcher's first thread waits for the second one, which is Java's main.
        if int(thread) != pid:
            found[name] = (ran, sleeps)
    return found


class Disk:
    def __init__(self, scratch):
        self.files = {way: os.path.join(scratch, way.replace(" ", "-")) for way in WAYS[1:]}
        self.directory = os.path.join(scratch, "dump")

    def environment(self, build):
        return dict(os.environ, LD_PRELOAD=f"{build}/java-tests/libslow_disk.so", SLOW_DISK_DIR=self.directory,
                    SLOW_DISK_MS="20", SLOW_DISK_SLOW=self.files["20 ms"], SLOW_DISK_HANG=self.files["hangs"])

    def become(self, way):
        for its, file in self.files.items():
            if its == way:
                open(file, "w", encoding="ascii").close()
            elif os.path.exists(file):
                os.unlink(file)


def ask(jvm, build, words):
    subprocess.run(["jattach", str(jvm.pid), "load", f"{build}/libjdagent.so", "true", words], check=True,
                   stdout=subprocess.DEVNULL)


def span(jvm, seconds):
    """(begin, end, how often the program's thread slept, ns of the agent's threads)"""
    begin, before = time.monotonic_ns(), times(jvm.pid)
    time.sleep(seconds)
    end, after = time.monotonic_ns(), times(jvm.pid)

    def passed(name, which):
        return after.get(name, (0, 0))[which] - before.get(name, (0, 0))[which]
    return begin, end, passed("java", 1), sum(passed(name, 0) for name in AGENT)


def measure(options, build, scratch):
    """For each way, what a round took in each of its spans, against those beside it: see PARTS."""
    rounds = os.path.join(scratch, "rounds")
    disk = Disk(scratch)
    os.mkdir(disk.directory)
    jvm = subprocess.Popen([f"{options.jdk}/bin/java", "-XX:+UseSerialGC", "-Xmx64m", "-XX:+EnableDynamicAgentLoading",
                            *(["-Xbatch"] if options.xbatch else []), "-cp", scratch, "Compiled", rounds],
                           stdout=subprocess.PIPE, env=disk.environment(build))
    spans = []
    try:
        if jvm.stdout.readline() != b"ready\n":
            sys.exit("bench: the JVM failed")
        time.sleep(options.warm)
        for _ in range(options.turns):
            for way in random.sample(WAYS, len(WAYS)):
                spans.append((None, span(jvm, options.seconds)))
                ask(jvm, build, f"start,dir={disk.directory},methods")
                disk.become(way)
                time.sleep(options.settle)
                spans.append((way, span(jvm, options.seconds)))
                disk.become(None)
                ask(jvm, build, "stop")
                shutil.rmtree(disk.directory)
                os.mkdir(disk.directory)
                time.sleep(options.settle)
        spans.append((None, span(jvm, options.seconds)))
    finally:
        disk.become(None)
        jvm.kill()
        jvm.wait()
    with open(rounds, encoding="ascii") as lines:
        took = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
    ends = [end for end, _ in took]
    of_round = []
    for _, (begin, end, *parts) in spans:
        inside = took[bisect.bisect_left(ends, begin):bisect.bisect_left(ends, end)]
        of_round.append([statistics.median(cpu for _, cpu in inside)] + [part / len(inside) for part in parts] if inside
                        else None) # a method that is compiled for seconds, on a machine with no time for it
    found = {way: [] for way in WAYS}
    for i, (way, _) in enumerate(spans):
        if way and of_round[i - 1] and of_round[i] and of_round[i + 1]:
            beside = [statistics.fmean(pair) for pair in zip(of_round[i - 1], of_round[i + 1])]
            more = [its - theirs for its, theirs in zip(of_round[i], beside)]
            found[way].append((100 * more[1], 100 * more[0] / beside[0], more[2] / 1000))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jdk", default="/usr/lib/jvm/java-17-openjdk-amd64")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=2, help="of a span")
    parser.add_argument("--settle", type=float, default=1)
    parser.add_argument("--xbatch", action="store_true", help="the program waits for its code")
    parser.add_argument("--warm", type=int, default=10)
    options = parser.parse_args()
    build = os.path.abspath(os.environ.get("JDAGENT_BUILD", os.path.join(HERE, "..", "build")))
    with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
        subprocess.run([f"{options.jdk}/bin/javac", "-nowarn", "-d", scratch, "-sourcepath",
                        os.path.join(HERE, "..", "java-tests", "programs"),
                        os.path.join(HERE, "..", "java-tests", "programs", "Churn.java"),
                        os.path.join(HERE, "programs", "Compiled.java")], check=True)
        found = measure(options, build, scratch)
    for way in WAYS:
        print(f"{way}, {len(found[way])} spans:")
        for what, values in zip(PARTS, zip(*found[way])):
            print(f"  {what:<24}" +
                  "{:+8.2f} ({:+.2f} to {:+.2f}, 95 %)".format(*sampling.spread(values, sampling.middle)))


main()
