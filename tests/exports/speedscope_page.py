"""speedscope_page.py RELEASE PROFILE [SCREENSHOT]: speedscope's own page (RELEASE: its npm package's dist/release) in headless
Chromium opens PROFILE, and what it saves again is held against PROFILE: the frames, and the weight of each thread's stacks.
"""
import collections
import functools
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import Browser, check  # noqa: E402


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def stacks(file):
    """Per profile, in their order: its name, and the weight of each stack of names."""
    names = [frame["name"] for frame in file["shared"]["frames"]]
    result = []
    for profile in file["profiles"]:
        weights = collections.Counter()
        if profile["type"] == "sampled":
            for stack, weight in zip(profile["samples"], profile["weights"]):
                weights[tuple(names[frame] for frame in stack)] += weight
        else:  # what speedscope saves: when each frame opens and closes
            stack, at = [], profile["startValue"]
            for event in profile["events"]:
                weights[tuple(stack)] += event["at"] - at
                at = event["at"]
                if event["type"] == "O":
                    stack.append(names[event["frame"]])
                else:
                    check(stack and stack.pop() == names[event["frame"]], "a frame closes that is not open")
            check(not stack, "a frame stays open")
            weights[()] += profile["endValue"] - at
        result.append((profile["name"], {stack: weight for stack, weight in weights.items() if weight}))
    return result


def main(release, path, screenshot=None):
    with open(path, encoding="utf-8") as file:
        ours = json.load(file)
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(release, place, dirs_exist_ok=True)
        shutil.copy(path, f"{place}/ours.speedscope.json")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=place))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        with Browser() as browser:
            browser.open(f"{base}/index.html#profileURL={base}/ours.speedscope.json")
            shown = ours["profiles"][ours.get("activeProfileIndex", 0)]["name"]
            browser.wait("return document.body.innerText.includes(arguments[0])", f"profile {shown}", 60, shown)
            # Its button saves what it has: by a click on a link to a blob, which is taken here.
            browser.run("URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return '#'; };"
                        "HTMLAnchorElement.prototype.click = () => {};"
                        "[...document.querySelectorAll('div')].filter(e => /^\\S*Export$/.test(e.innerText)).pop().click();")
            theirs = json.loads(browser.wait("return window.saved", "saved profile"))
            if screenshot:
                browser.screenshot(screenshot)
            check(not browser.faults(), f"the page has faults: {browser.faults()}")
        server.shutdown()
    check("speedscope" in theirs["exporter"], f"saved by {theirs['exporter']}")
    mine, read = stacks(ours), stacks(theirs)
    check([name for name, _ in mine] == [name for name, _ in read], f"other profiles: {[name for name, _ in read]}")
    for (name, expected), (_, found) in zip(mine, read):
        differing = {stack for stack in expected.keys() | found.keys() if expected.get(stack) != found.get(stack)}
        check(not differing, f"{name}: {len(differing)} stacks differ, as {sorted(differing)[0] if differing else ''}")
    def frames(file, numbers):
        return {(row["name"], row.get("file"), row.get("line")) for row in (file["shared"]["frames"][number] for number in numbers)}

    # It saves the frames of each thread apart.
    used = frames(ours, {frame for profile in ours["profiles"] for stack in profile["samples"] for frame in stack})
    check(frames(theirs, range(len(theirs["shared"]["frames"]))) == used, "other frames")
    print(f"speedscope: {len(mine)} threads, {len(used)} frames, {sum(len(expected) for _, expected in mine)} stacks, "
          f"weight {sum(sum(expected.values()) for _, expected in mine)}: all read back the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
