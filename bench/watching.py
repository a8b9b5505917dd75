#!/usr/bin/env python3
"""What jdperf watch and top cost, with their defaults.

watching.py memory: two JVMs of 20,000 compiled methods each, all of which run, are watched; each second the memory
of the watch's processes (PSS: shared pages by halves). With --javac they are the methods of javac,
compiled before their first use, instead of small ones.

watching.py cost: bench/programs/Rounds.java on an H2 database in one JVM that is watched and left alone in turns, a
pair a turn. Prints the processor time of a round while watched over that of the same JVM before, and what the watch's
processes take, in hundredths of a processor. The first seconds of each half, in which the watch begins or
ends, are in neither. Needs root; H2 comes from Maven Central, or from --h2.

watching.py fleet: so many nearly idle JVMs (--jvms, --threads of each) are watched. Prints, once all have been seen for
a while, how many processes the watch has, their memory (PSS) and descriptors of events, their share of a processor, and
what they hold then, at the beginning and the end of --seconds.

watching.py top: the JVM of cost, in which one thread always works, below jdperf top in a terminal of 150 columns.
Prints what top's processes take over --seconds, in hundredths of a processor, and what the JVM had.
"""
import argparse
import contextlib
import fcntl
import glob
import os
import pty
import signal
import struct
import statistics
import subprocess
import sys
import tempfile
import termios
import threading
import time

import sampling

HERE = os.path.dirname(os.path.abspath(__file__))
METHODS = 500  # of a class


def children_of(pid):
    """A process and all below it, as far as they live."""
    threads = glob.glob(f"/proc/{pid}/task/*/children")  # each has what it has forked itself
    below = []
    for thread in threads:
        with contextlib.suppress(OSError), open(thread, encoding="ascii") as file:
            below += map(int, file.read().split())
    return [pid][:len(threads)] + [each for child in below for each in children_of(child)]


def pss(pid):
    """In kB."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def processor_time(pids):
    """In ns, of all threads."""
    total = 0
    for pid in pids:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
        except OSError:
            pass
    return total


def command(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


class Watch:
    def __init__(self, build, scratch, pids, *options):
        self.process = subprocess.Popen(
            [f"{build}/jdtool", "live", "--agent", f"{build}/libjdagent.so", "watch", "-p", ",".join(map(str, pids)),
             "--name", f"bench-{os.getpid()}", "-o", os.path.join(scratch, "kept"), "--keep", "1h", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def processes(self):
        return children_of(self.process.pid)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Top:
    """jdperf top in a terminal that somebody reads."""

    def __init__(self, build, pid):
        ours, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
        with os.fdopen(terminal) as terminal:
            self.process = subprocess.Popen(
                [f"{build}/jdtool", "live", "--agent", f"{build}/libjdagent.so", "top", str(pid)], stdin=terminal,
                stdout=terminal, stderr=terminal, start_new_session=True, env={**os.environ, "TERM": "xterm"})
        self.terminal, self.shown = ours, 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while True:
                self.shown += len(os.read(self.terminal, 1 << 16))
        except OSError:
            pass  # it has ended

    def times(self):
        """By process: its name and processor time."""
        return {pid: (command(pid), processor_time([pid])) for pid in children_of(self.process.pid)}

    def end(self):
        os.write(self.terminal, b"q")
        self.process.wait()
        os.close(self.terminal)


def compile_java(options, scratch, *sources):
    subprocess.run([f"{options.jdk}/bin/javac", "-nowarn", "-d", scratch, *sources], check=True)


def many_methods(options, scratch):
    """The command of a JVM with very many small compiled methods."""
    source = os.path.join(scratch, "Many_xxxxxx.java")
    with open(source, "w", encoding="ascii") as out:
        out.write("public class Many_xxxxxx {\n")
        for i in range(METHODS):
            out.write(f"    static int m{i}(int a) {{ int b = a * {i + 3}; for (int i = 0; i < 3; i++) {{\n"
                      "        b ^= a >> i;\n    }\n    return b; }\n")
        out.write("    public static int all(int a) { int sum = 0;\n")
        out.writelines(f"        sum += m{i}(sum + a);\n" for i in range(METHODS))
        out.write("        return sum; }\n}\n")
    compile_java(options, scratch, source, os.path.join(HERE, "programs", "Many.java"))
    return ["-XX:TieredStopAtLevel=1", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,Many_*::m*",
            "-XX:CompileCommand=dontinline,Many_*::m*", "-cp", scratch, "Many", str(options.methods // METHODS), "again"]


def javac(options, scratch):
    compile_java(options, scratch, os.path.join(HERE, "programs", "JavacAgain.java"))
    with open(f"{options.jdk}/release", encoding="ascii") as file:
        major = next(line.split('"')[1].split(".")[0] for line in file if line.startswith("JAVA_VERSION="))
    sources = next(path for path in (f"{options.jdk}/lib/src.zip", f"/usr/lib/jvm/openjdk-{major}/lib/src.zip")
                   if os.path.exists(path))
    subprocess.run([f"{options.jdk}/bin/jar", "xf", os.path.realpath(sources), "java.xml"], check=True, cwd=scratch)
    files = [os.path.join(directory, name) for part in ("xerces", "xpath")
             for directory, _, names in os.walk(f"{scratch}/java.xml/com/sun/org/apache/{part}")
             for name in names if name.endswith(".java")]
    with open(f"{scratch}/files", "w", encoding="ascii") as out:
        out.write("\n".join(files))
    return ["-cp", scratch, "JavacAgain", "-nowarn", "-Xlint:none", "-XDignore.symbol.file", "-d", f"{scratch}/out",
            "--patch-module", f"java.xml={scratch}/java.xml", f"@{scratch}/files"]


def measure_memory(options, build, scratch):
    command = (javac if options.javac else many_methods)(options, scratch)
    jvms = [subprocess.Popen([f"{options.jdk}/bin/java", "-Xcomp", "-XX:ReservedCodeCacheSize=240m", "-Xmx512m",
                              "-XX:+UseSerialGC", "-XX:+EnableDynamicAgentLoading", *command],
                             stdout=subprocess.PIPE) for _ in range(2)]
    watch = None
    try:
        for jvm in jvms:
            if not jvm.stdout.readline().startswith(b"idle"):
                sys.exit("bench: a JVM failed")
        watch = Watch(build, scratch, [jvm.pid for jvm in jvms])
        seen = []
        for _ in range(options.seconds):
            time.sleep(1)
            seen.append(sum(pss(pid) for pid in watch.processes()) / 1000)
    finally:
        if watch:
            watch.end()
        for jvm in jvms:
            jvm.kill()
    last = seen[-options.seconds // 3:]
    print(f"memory of the watch, two JVMs: at most {max(seen):.1f} MB, in the last third {statistics.median(last):.1f}")


def half(program, seconds, settle, watch):
    """Mean processor time of a round and the watch's share of a processor, over so many seconds."""
    time.sleep(settle)
    before, begin = processor_time(watch.processes()) if watch else 0, time.monotonic_ns()
    time.sleep(seconds)
    end, after = time.monotonic_ns(), processor_time(watch.processes()) if watch else 0
    with open(program, encoding="ascii") as lines:
        took = [int(words[1]) for words in map(str.split, lines)
                if len(words) == 2 and begin < int(words[0]) < end]
    return statistics.fmean(took[:-1]), (after - before) / (end - begin)


def rounds_jvm(options, build, scratch, seconds):
    """A JVM that works on an H2 database, warm, and the file of its rounds."""
    rounds = os.path.join(scratch, "rounds")
    compile_java(options, scratch, os.path.join(HERE, "programs", "Rounds.java"))
    jvm = subprocess.Popen(
        [f"{options.jdk}/bin/java", "-Xms1g", "-Xmx1g", "-XX:+EnableDynamicAgentLoading", "-cp",
         f"{scratch}:{options.h2 or sampling.h2_jar(build)}", "Rounds", str(options.warm), str(seconds), rounds],
        stdout=subprocess.PIPE)
    jvm.stdout.readline()
    return jvm, rounds


def measure_cost(options, build, scratch):
    jvm, rounds = rounds_jvm(options, build, scratch, options.pairs * 2 * (options.seconds + options.settle) + 60)
    lost, shares = [], []
    try:
        for _ in range(options.pairs):
            alone, _ = half(rounds, options.seconds, options.settle, None)
            watch = Watch(build, scratch, [jvm.pid], "--frequency", str(options.frequency))
            watched, share = half(rounds, options.seconds, options.settle, watch)
            watch.end()
            lost.append(watched / alone - 1)
            shares.append(share)
            print(f"pair {len(lost)}: the program {100 * lost[-1]:+.2f} %, the watch {100 * share:.2f} % of a processor",
                  file=sys.stderr)
    finally:
        jvm.kill()
    median, low, high = sampling.spread(lost, statistics.median)
    print(f"{options.frequency} Hz, medians of {len(lost)} pairs: the watch and perf {100 * statistics.median(shares):.2f} %"
          f" of a processor ({100 * min(shares):.2f} to {100 * max(shares):.2f}), the program"
          f" {100 * median:+.2f} % ({100 * low:+.2f} to {100 * high:+.2f}, 95 %)")


def measure_top(options, build, scratch):
    jvm, _ = rounds_jvm(options, build, scratch, 2 * options.seconds + 600)
    try:
        top = Top(build, jvm.pid)
        time.sleep(options.settle + 10)  # what it shows is of the last 10 s
        before, program, begin = top.times(), processor_time([jvm.pid]), time.monotonic_ns()
        shown = top.shown
        time.sleep(options.seconds)
        after, spent, took = top.times(), processor_time([jvm.pid]) - program, time.monotonic_ns() - begin
        shown = top.shown - shown
        top.end()
    finally:
        jvm.kill()
    if not shown:
        sys.exit("bench: top has shown nothing")
    shares = [(name, (time - before.get(pid, (name, 0))[1]) / took) for pid, (name, time) in after.items()]
    print(f"top: {100 * sum(share for _, share in shares):.2f} % of a processor"
          f" ({', '.join(f'{name} {100 * share:.2f}' for name, share in shares)}), the JVM {100 * spent / took:.0f} %")


def event_descriptors(pids):
    """Of perf_event_open, in all of the processes."""
    count = 0
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                count += os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:[perf_event]"
        except OSError:
            pass
    return count


def status_of(build):
    """Of each JVM how many slices it has had, and all that the watch says."""
    told = subprocess.run([f"{build}/jdtool", "live", "watch", "--status", "--name", f"bench-{os.getpid()}"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode()
    return [int(line.split(": ")[1].split()[0]) for line in told.splitlines() if line.startswith("JVM ")], told


def measure_fleet(options, build, scratch):
    compile_java(options, scratch, os.path.join(HERE, "programs", "Idle.java"))
    command = [f"{options.jdk}/bin/java", "-Xmx16m", "-Xss256k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
               "-XX:+EnableDynamicAgentLoading", "-cp", scratch, "Idle", str(options.threads)]
    jvms = []
    watch = None
    try:
        for _ in range(options.jvms):
            jvms.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        for jvm in jvms:
            jvm.stdout.readline()
        watch = Watch(build, scratch, [jvm.pid for jvm in jvms], "--slice", "5")
        began = time.monotonic()
        while True:
            slices, told = status_of(build)
            if len(slices) == options.jvms and min(slices) >= 2:
                break
            if time.monotonic() - began > 60 + 3 * options.jvms:
                sys.exit(f"bench: not all JVMs are watched: {told}")
            time.sleep(1)
        print(f"all of {options.jvms} JVMs are watched after {time.monotonic() - began:.0f} s")
        first = sum(pss(pid) for pid in watch.processes()) / 1000
        before, begin = processor_time(watch.processes()), time.monotonic_ns()
        time.sleep(options.seconds)
        pids = watch.processes()
        share = (processor_time(pids) - before) / (time.monotonic_ns() - begin)
        last = sum(pss(pid) for pid in pids) / 1000
        print(f"{options.jvms} JVMs, {options.threads} threads of ours each: {len(pids)} processes, {first:.0f} to {last:.0f} MB,"
              f" {100 * share:.2f} % of a processor, {event_descriptors(pids)} descriptors of events on"
              f" {os.cpu_count()} processors")
        print(status_of(build)[1].splitlines()[1])
    finally:
        if watch:
            watch.end()
        for jvm in jvms:
            jvm.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["memory", "cost", "fleet", "top"])
    parser.add_argument("--jdk", default="/usr/lib/jvm/java-17-openjdk-amd64")
    parser.add_argument("--methods", type=int, default=20000)
    parser.add_argument("--javac", action="store_true")
    parser.add_argument("--frequency", type=int, default=49)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, help="of a half (20), or that memory is looked at (60)")
    parser.add_argument("--settle", type=int, default=6)
    parser.add_argument("--warm", type=int, default=30)
    parser.add_argument("--h2")
    parser.add_argument("--jvms", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.seconds = options.seconds or (20 if options.what == "cost" else 60)
    build = os.path.abspath(os.environ.get("JDAGENT_BUILD", os.path.join(HERE, "..", "build")))
    with tempfile.TemporaryDirectory(prefix="jdagent-bench.") as scratch:
        measures = {"memory": measure_memory, "cost": measure_cost, "fleet": measure_fleet, "top": measure_top}
        measures[options.what](options, build, scratch)


main()
