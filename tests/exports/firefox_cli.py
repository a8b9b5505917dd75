"""firefox_cli.py PROFILER-CLI TOLD METHOD SOURCE: Firefox Profiler's own code, as its npm package profiler-cli has it, against a
running jdperf view, whose output TOLD is: functions, the lines of METHOD's source file SOURCE, and METHOD's machine code with their
samples are held against the profile's tables. METHOD is one that was inlined somewhere.
"""
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from stacks import check


class Cli:
    """A session of profiler-cli with a daemon of its own."""

    def __init__(self, program, home):
        self.command = ["node", program]
        self.environment = dict(os.environ, HOME=home, PROFILER_CLI_SESSION_DIR=f"{home}/sessions")

    def run(self, *arguments):
        return subprocess.run([*self.command, *arguments], env=self.environment, capture_output=True, text=True, check=False)

    def load(self, profile, server):
        done = self.run("load", profile, "--symbol-server", server)
        # It waits half a second for its daemon, which a machine with other work to do may not keep; the daemon goes on.
        end = time.monotonic() + 60
        while done.returncode and time.monotonic() < end:
            time.sleep(0.5)
            done = self.run("status")
        if done.returncode:
            print("SKIPPED: profiler-cli does not start here:", done.stderr.strip().split("\n")[0])
            sys.exit(77)

    def ask(self, *arguments):
        done = self.run(*arguments, "--json")
        check(done.returncode == 0, f"profiler-cli {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout)


def stacks_of(profile, thread):
    """The rows of frameTable of each sample, the innermost first."""
    stacks = profile["shared"]["stackTable"]
    for row in thread["samples"]["stack"]:
        found = []
        while row is not None:
            found.append(stacks["frame"][row])
            row = stacks["prefix"][row]
        yield found


def count(stacks, key):
    """Own and total samples by what key makes of a frame; None does not count."""
    own, total = collections.Counter(), collections.Counter()
    for stack in stacks:
        keys = [key(frame) for frame in stack]
        own.update(keys[:1])
        total.update(set(keys))
    own.pop(None, None)
    total.pop(None, None)
    return own, total


def told_counts(rows, key):
    own, total = collections.Counter(), collections.Counter()
    for row in rows:
        own[key(row)] += row["selfSamples"]
        total[key(row)] += row["totalSamples"]
    return +own, +total


def main(program, told, method, source):
    with open(told, encoding="utf-8") as file:
        address = next(line.strip() for line in file if "symbolServer=" in line)
    server = urllib.parse.unquote(address.split("symbolServer=")[1])
    with urllib.request.urlopen(f"{server}/profile.json", timeout=60) as answer:
        profile = json.loads(gzip.decompress(answer.read()))
    shared = profile["shared"]
    frames, functions, sources = shared["frameTable"], shared["funcTable"], shared["sources"]
    names = [shared["stringArray"][functions["name"][function]] for function in range(functions["length"])]

    # The thread that runs the method most.
    numbers = [number for number, name in enumerate(names) if name == method]
    check(len(numbers) == 1, f"{len(numbers)} functions are called {method}")

    def samples_of(thread):
        return sum(any(frames["func"][frame] == numbers[0] for frame in stack) for stack in stacks_of(profile, thread))

    chosen = max(range(len(profile["threads"])), key=lambda number: samples_of(profile["threads"][number]))
    stacks = list(stacks_of(profile, profile["threads"][chosen]))

    with tempfile.TemporaryDirectory() as home:
        cli = Cli(program, home)
        cli.load(f"{server}/profile.json", server)
        try:
            threads = [thread for process in cli.ask("profile", "info", "--all")["processes"] for thread in process["threads"]]
            check(len(threads) == len(profile["threads"]), f"{len(threads)} threads, not {len(profile['threads'])}")
            thread = next(thread for thread in threads if thread["threadIndex"] == chosen)
            check(cli.run("thread", "select", thread["threadHandle"]).returncode == 0, "no such thread")
            rows = cli.ask("thread", "functions", "--limit", "0", "--include-idle")["functions"]
            wanted = count(stacks, lambda frame: frames["func"][frame])
            check(told_counts(rows, lambda row: row["functionIndex"]) == wanted, "other samples of functions")
            check(all(row["name"] == names[row["functionIndex"]] for row in rows), "other names of functions")
            told_rows = len(rows)
            handle = next(row["functionHandle"] for row in rows if row["functionIndex"] == numbers[0])
            annotated = cli.ask("function", "annotate", handle, "--mode", "all", "--context", "file")
        finally:
            cli.run("stop", "--all")

    # Source: the text is the file's, the counts by line are those of all its functions.
    at_source = functions["source"][numbers[0]]
    lines = annotated["srcAnnotation"]
    check(lines, f"no source: {annotated['warnings']}")

    def line_of(frame):  # without a line it is at its function's first
        function, line = frames["func"][frame], frames["line"][frame]
        return None if functions["source"][function] != at_source else functions["lineNumber"][function] if line is None else line

    wanted = count(stacks, line_of)
    found = told_counts(lines["lines"], lambda row: row["lineNumber"])
    check(found == wanted, f"other samples of lines: {found}, not {wanted}")
    with open(source, encoding="utf-8") as file:
        text = file.read().split("\n")
    told_text = [(row["lineNumber"], row["sourceText"]) for row in lines["lines"]]
    check(len(told_text) >= len(text) - 1 and all(line == text[number - 1] for number, line in told_text), "another text of the source")
    check(shared["stringArray"][sources["filename"][at_source]].endswith(os.path.basename(source)), "another file")

    # Machine code: each compilation that has a sample in it, and the samples of its instructions.
    own_of_all = 0
    for part in annotated["asmAnnotations"]:
        check(not part["fetchError"] and part["instructions"], f"no machine code of {part['symbolName']}: {part['fetchError']}")
        symbols = shared["nativeSymbols"]
        symbol = next(number for number in range(symbols["length"]) if symbols["address"][number] == part["symbolAddress"]
                      and shared["stringArray"][symbols["name"][number]] == part["symbolName"])
        begins = {row["address"] for row in part["instructions"]}
        # It counts where an instruction begins; a caller's address lies inside of its call.
        wanted = count(stacks, lambda frame, symbol=symbol, begins=begins:
                       frames["address"][frame] if frames["nativeSymbol"][frame] == symbol and frames["address"][frame] in begins else None)
        check(told_counts(part["instructions"], lambda row: row["address"]) == wanted, f"other samples of instructions of {part['symbolName']}")
        here = sum(frames["nativeSymbol"][stack[0]] == symbol for stack in stacks if stack)
        check(sum(wanted[0].values()) == here, f"{here} samples in {part['symbolName']}, not all of them where an instruction begins")
        own_of_all += sum(wanted[0].values())
    inlined = {frames["inlineDepth"][frame] for frame in range(frames["length"]) if frames["func"][frame] == numbers[0]}
    check(own_of_all > 0 and max(inlined) > 0, f"{own_of_all} samples in machine code, inline depths {inlined}")
    print(f"profiler-cli: {len(threads)} threads, {told_rows} functions; {method}: {len(told_text)} lines of source, "
          f"{len(annotated['asmAnnotations'])} compilations with {own_of_all} samples of their own, inlined up to {max(inlined)} deep")


if __name__ == "__main__":
    main(*sys.argv[1:])
