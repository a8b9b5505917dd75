"""flame_diff.py PAGE BEFORE AFTER [SCREENSHOT]: the page of jdperf diff in headless Chromium against both profiles' pprof, counted here:
each path's share of all samples before and after; what grew is red, what shrank blue.
"""
import collections
import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), place) for place in ("..", "../exports")]
import stacks  # noqa: E402
from browser import Browser, check  # noqa: E402


def normal(name):
    """A name without what differs from run to run in those of hidden and generated classes."""
    name = re.sub(r"[/+.]0x[0-9a-f]+", "", name)
    name = re.sub(r"/[0-9]+(?=[.(]|$)", "", name)
    name = re.sub(r"(\$\$Lambda\$)[0-9]*", lambda found: found[1][:-1], name)
    return re.sub(r"(\$Proxy|Generated(?:Method|Constructor|SerializationConstructor)Accessor)[0-9]+", r"\1", name)


def shares(path):
    weights, whole = collections.Counter(), 0
    for sample in stacks.pprof(path):
        whole += sample.weight
        names = tuple(map(normal, sample.stack))
        for depth in range(1, len(names) + 1):
            weights[names[:depth]] += sample.weight
    return {names: weight / whole for names, weight in weights.items()}


def main(page, before, after, screenshot=None):
    before, after = shares(before), shares(after)
    with Browser() as browser:
        browser.open(f"file://{page}")
        browser.wait("return document.body.dataset.ready", "page")
        told = browser.run("""
            const found = [], whole = jdflame.view.root.weights;
            const walk = (frame, path) => {
              for (const child of jdflame.view.children(frame)) {
                const names = [...path, child.name];
                found.push([names, child.weights[0] / whole[0], child.weights[1] / whole[1]]);
                walk(child, names);
              }
            };
            walk(jdflame.view.root, []);
            return found;
        """)
        # The colour of each wide frame, at its upper right corner, where its name does not reach.
        drawn = browser.run("""
            const canvas = jdflame.graph.canvas, bounds = canvas.getBoundingClientRect(), scale = canvas.width / bounds.width;
            const found = [];
            for (const row of jdflame.graph.rows) for (const cell of row) {
              const place = jdflame.graph.place(cell.frame);
              if (place.width < 8 || cell.frame.depth === 0) continue;
              const x = (place.x + place.width - 3 - bounds.left) * scale, y = (place.y + 2 - bounds.top) * scale;
              if (y >= canvas.height || y < 0) continue;
              const names = [];
              for (let frame = cell.frame; frame.parent; frame = frame.parent) names.unshift(frame.name);
              found.push([names, [...canvas.getContext('2d').getImageData(x, y, 1, 1).data]]);
            }
            return found;
        """)
        check(not browser.faults(), f"the page has faults: {browser.faults()}")
        if screenshot:
            browser.screenshot(screenshot)
    check(len(told) == len({tuple(names) for names, _, _ in told}), "a path is there twice")
    told = {tuple(names): (first, second) for names, first, second in told}
    wrong = [names for names in before.keys() | after.keys() | told.keys()
             if max(abs(told.get(names, (9, 9))[side] - shares_of.get(names, 0)) for side, shares_of in ((0, before), (1, after))) > 1e-9]
    check(not wrong, f"{len(wrong)} of {len(told)} paths have other shares, as {wrong[0] if wrong else ''}")
    seen = collections.Counter()
    for names, colour in drawn:
        change = told[tuple(names)][1] - told[tuple(names)][0]
        if abs(change) > 0.02:
            seen[change > 0] += 1
            check((colour[0] > colour[2]) == (change > 0), f"{names[-1]} changed by {change:+.3f} and has the colour {colour}")
    check(seen, "no frame changed by 2 points")
    print(f"{len(told)} paths have the shares of both profiles; {seen[True]} red ones grew, {seen[False]} blue ones shrank")


if __name__ == "__main__":
    main(*sys.argv[1:])
