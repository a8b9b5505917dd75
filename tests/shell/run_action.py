#!/usr/bin/env python3
"""run_action.py ACTION INPUT=VALUE...: runs the steps of a composite GitHub Action as its runner does: inputs with their
defaults into each step's env, the script by bash -eo pipefail, a file for the summary. Understands the YAML that our
examples are written in: nested maps, lists of maps, plain and quoted scalars, "|" blocks. Ends with the failing step's status.
"""
import os
import re
import subprocess
import sys
import tempfile


def scalar(text):
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def parse(lines, at, indent):
    """A map, or a list of maps, whose lines are indented by `indent`: (value, the line behind it)."""
    made = None
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            at += 1
            continue
        if len(line) - len(line.lstrip()) < indent:
            break
        body = line[indent:]
        if body.startswith("- "):
            made = [] if made is None else made
            lines[at] = " " * (indent + 2) + body[2:]
            item, at = parse(lines, at, indent + 2)
            made.append(item)
            continue
        if isinstance(made, list):
            break
        found = re.fullmatch(r"([A-Za-z_]+):(?: (.*))?", body)
        if not found:
            sys.exit(f"run_action.py: line {at + 1} is not understood: {line}")
        made = {} if made is None else made
        key, rest = found[1], found[2]
        at += 1
        if rest == "|":
            block = []
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" " * (indent + 2))):
                block.append(lines[at][indent + 2:])
                at += 1
            made[key] = "\n".join(block) + "\n"
        elif rest:
            made[key] = scalar(rest)
        else:
            made[key], at = parse(lines, at, indent + 2)
    return made, at


def main(path, *words):
    action, _ = parse(open(path).read().split("\n"), 0, 0)
    given = dict(word.split("=", 1) for word in words)
    unknown = given.keys() - action["inputs"].keys()
    if unknown or action["runs"]["using"] != "composite":
        sys.exit(f"run_action.py: {path} has no input {unknown}, or is not composite")
    inputs = {}
    for name, about in action["inputs"].items():
        if name not in given and about.get("required") == "true":
            sys.exit(f"run_action.py: {name} is required")
        inputs[name] = given.get(name, about.get("default", ""))
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        bin_directory = os.path.join(directory, "bin")
        os.mkdir(bin_directory)
        os.symlink(os.environ["JDPERF"], os.path.join(bin_directory, "jdperf"))
        summary = os.path.join(directory, "summary")
        for step in action["runs"]["steps"]:
            environment = dict(os.environ, GITHUB_STEP_SUMMARY=summary, PATH=bin_directory + ":" + os.environ["PATH"])
            for name, value in step.get("env", {}).items():
                environment[name] = re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)
            script = os.path.join(directory, "step.sh")
            with open(script, "w") as file:
                file.write(step["run"])
            status = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", script], env=environment).returncode
            if status:
                sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
