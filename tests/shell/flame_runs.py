"""flame_runs.py PAGE METHOD RUNS: the flame page of several runs in headless Chromium: the method that changed has a colour,
what did not is grey, and what needs times or threads is not offered.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import Browser, check  # noqa: E402


def main(page, method, runs):
    with Browser() as browser:
        browser.open(f"file://{page}")
        browser.wait("return document.body.dataset.ready", "page")
        check(not browser.faults(), f"the page has faults: {browser.faults()}")
        frames = browser.run("""
            const found = [];
            const walk = frame => {
              for (const child of jdflame.view.children(frame)) {
                const shares = jdflame.shares(child);
                found.push([child.name, shares[0], shares[1], jdflame.colour(child), jdflame.isChance(child)]);
                walk(child);
              }
            };
            walk(jdflame.view.root);
            return found;
        """)
        grey = browser.run("return jdflame.deltaColour(0)")
        ours = [frame for frame in frames if method in frame[0] and frame[2] > 0.2]
        check(ours, f"no frame of {method}")
        for name, before, after, colour, chance in ours:
            check(after > before + 0.1 and colour != grey and not chance, f"{name} went from {before:.3f} to {after:.3f} and is {colour}")
        small = [frame for frame in frames if frame[2] < 0.009 and frame[1] < 0.009]
        check(small and all(frame[3] == grey for frame in small), "what is not compared has a colour")
        check(sum(frame[3] == grey for frame in frames) > len(frames) / 2, "most frames have a colour")
        summary = browser.run("return document.getElementById('sum').textContent")
        check(f"{runs} runs before: " in summary and " a run" in summary, f"the summary is: {summary}")
        hidden = browser.run("return ['roots', 'mode'].map(id => document.getElementById(id).parentElement.hidden).concat(document.getElementById('heat').hidden)")
        check(hidden == [True, True, True], f"offered without times and threads: {hidden}")
        browser.press(["i"])
        check(browser.run("return jdflame.view.mode") == "stacks", "the key i inverts what cannot be judged inverted")
        print(f"{len(frames)} frames, {sum(frame[3] != grey for frame in frames)} with a colour")


if __name__ == "__main__":
    main(*sys.argv[1:])
