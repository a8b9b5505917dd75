#!/usr/bin/env python3
"""What a slow disk under the agent's dump costs the program: java-tests/programs/Churn.java, which loads, compiles and
unloads classes, without an agent, with one on a healthy disk, on one that takes 20 ms a write, and on one that hangs
from the first record on (java-tests/slow_disk, preloaded). One process each, in turns, in random order.

Judged by the program's own time, which other work on the machine does not change much: what passed less what its main
thread and the JVM's VM Thread, which it waits for in a collection, waited for a processor (schedstat). A JVM that is
held by a disk sleeps, and that is in it. Besides, the processor time of the whole JVM. Both as multiples of the same
turn's without an agent: the median, and where it lies with 95 %.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("alone", "healthy", "20 ms", "hangs")


def threads_of(pid):
    """(name, ns on a processor, ns waiting for one) of each."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                ran, waited = map(int, file.read().split()[:2])
        except OSError:
            continue
        # The launcher's first thread waits for the second one, which is Java's main.
        found.append(("main" if name == "java" and int(thread) != pid else name, ran, waited))
    return found


def run(options, build, scratch, way):
    """The program's own time and the JVM's processor time, in s."""
    directory = os.path.join(scratch, "dump")
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory)
    hang = os.path.join(scratch, "hang")
    environment = dict(os.environ)
    command = [f"{options.jdk}/bin/java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", scratch]
    if way != "alone":
        command.insert(1, f"-agentpath:{build}/libjdagent.so=dir={directory},methods")
    if way in ("20 ms", "hangs"):
        environment |= {"LD_PRELOAD": f"{build}/java-tests/libslow_disk.so", "SLOW_DISK_DIR": directory}
        environment |= {"SLOW_DISK_MS": "20"} if way == "20 ms" else {"SLOW_DISK_HANG": hang}
    begin = time.monotonic_ns()
    jvm = subprocess.Popen([*command, "Churn", str(options.rounds), "wait"], stdout=subprocess.PIPE, env=environment,
                           stderr=subprocess.DEVNULL)
    try:
        while way == "hangs":
            if any(os.path.getsize(f"{directory}/{name}") > 40 for name in os.listdir(directory)
                   if name.endswith(".dump")):
                open(hang, "w", encoding="ascii").close()
                break
            if jvm.poll() is not None:
                sys.exit("bench: the JVM failed")
            time.sleep(0.01)
        lines = [jvm.stdout.readline(), jvm.stdout.readline()]
        if lines[1] != b"ready\n":
            sys.exit("bench: the JVM failed")
        passed = time.monotonic_ns() - begin
        threads = threads_of(jvm.pid)
    finally:
        if os.path.exists(hang):
            os.unlink(hang)
        jvm.kill()
        jvm.wait()
    waited = sum(wait for name, _, wait in threads if name in ("main", "VM Thread"))
    return (passed - waited) / 1e9, sum(ran for _, ran, _ in threads) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jdk", default="/usr/lib/jvm/java-17-openjdk-amd64")
    parser.add_argument("--rounds", type=int, default=2000, help="of the program's")
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    build = os.path.abspath(os.environ.get("JDAGENT_BUILD", os.path.join(HERE, "..", "build")))
    took = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
        subprocess.run([f"{options.jdk}/bin/javac", "-nowarn", "-d", scratch, "-sourcepath",
                        os.path.join(HERE, "..", "java-tests", "programs"),
                        os.path.join(HERE, "..", "java-tests", "programs", "Churn.java")], check=True)
        for _ in range(options.turns):
            for way in random.sample(WAYS, len(WAYS)):
                took[way].append(run(options, build, scratch, way))
    print(f"alone: own time {statistics.median(own for own, _ in took['alone']):.2f} s,"
          f" processor time {statistics.median(cpu for _, cpu in took['alone']):.2f} s, {options.turns} turns")
    for way in WAYS[1:]:
        told = []
        for which in range(2):
            ratios = [its[which] / alone[which] for its, alone in zip(took[way], took["alone"])]
            again = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
            told.append(f"{statistics.median(ratios):.3f} ({again[50]:.3f} to {again[1950]:.3f})")
        print(f"{way}: own time {told[0]}, processor time {told[1]}")


main()
