#!/usr/bin/env python3
"""What a slow disk under the agent's dump costs a program that keeps the JIT busy (bench/programs/Compiled.java): in one
JVM, spans of some seconds without a session of the agent and with one, whose disk is healthy, takes 20 ms a write, or
hangs (java-tests/slow_disk, preloaded). Each span with a session stands between two without.

Judged by rounds of the program in a second of its own time: what passed less what its main thread and the JVM's VM
Thread, which it waits for in a collection, waited for a processor (schedstat). Other work on the machine changes that
little, and a thread that is held by a disk sleeps, which is in it. Prints how much longer a round takes than in the
spans beside it: the mean of the middle half of all spans, and where it lies with 95 %. A session's begin, which tells
of all code once, and its end are in no span.
"""
import argparse
import bisect
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import sampling

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("healthy", "20 ms", "hangs")


def waited(pid):
    """Ns that the main thread and the VM Thread have waited for a processor."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            # The launcher's first thread waits for the second one, which is Java's main.
            if name == "VM Thread" or (name == "java" and int(thread) != pid):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[1])
        except OSError:
            continue
    return total


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
    """(begin, end, ns of the program's own time)"""
    begin, before = time.monotonic_ns(), waited(jvm.pid)
    time.sleep(seconds)
    end, after = time.monotonic_ns(), waited(jvm.pid)
    return begin, end, end - begin - (after - before)


def measure(options, build, scratch):
    """For each way, how much longer a round took in each of its spans."""
    rounds = os.path.join(scratch, "rounds")
    disk = Disk(scratch)
    os.mkdir(disk.directory)
    jvm = subprocess.Popen([f"{options.jdk}/bin/java", "-XX:+UseSerialGC", "-Xmx64m", "-XX:+EnableDynamicAgentLoading",
                            "-cp", scratch, "Compiled", rounds], stdout=subprocess.PIPE, env=disk.environment(build))
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
        ends = [int(line) for line in lines if line.endswith("\n")]
    of_round = [own / (bisect.bisect_left(ends, end) - bisect.bisect_left(ends, begin))
                for _, (begin, end, own) in spans]
    found = {way: [] for way in WAYS}
    for i, (way, _) in enumerate(spans):
        if way:
            found[way].append(2 * of_round[i] / (of_round[i - 1] + of_round[i + 1]) - 1)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jdk", default="/usr/lib/jvm/java-17-openjdk-amd64")
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=2, help="of a span")
    parser.add_argument("--settle", type=float, default=1)
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
        mean, low, high = sampling.spread(found[way], sampling.middle)
        print(f"{way}: a round takes {100 * mean:+.2f} % ({100 * low:+.2f} to {100 * high:+.2f}, 95 %), "
              f"{len(found[way])} spans")


main()
