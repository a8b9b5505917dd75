"""Uses a flame graph in headless Chromium as its reader does: flame_browser.py PAGE METHOD."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import Browser, check  # noqa: E402

page, method = sys.argv[1:3]

# The widest frame of a method that is drawn, and where.
PLACE = """
    const found = [];
    for (const row of jdflame.graph.rows) for (const cell of row) if (cell.frame.name.includes(arguments[0])) found.push(cell);
    found.sort((a, b) => b.width - a.width);
    return found.length ? jdflame.graph.place(found[0].frame) : null;
"""
WEIGHTS = "return jdflame.view.sides.map(side => side.weights.all)"
SAMPLES = "return jdflame.view.sides.map(side => side.weights.samples)"


def whole(view="jdflame.view"):
    """Own weights of all frames added up are the whole, in every view."""
    own, all_of_it = browser.run(f"""
        const view = {view};
        let own = 0;
        const walk = frame => {{
          if (view.mode === 'stacks' && frame.parent) own += frame.selfs[0];
          if (view.mode === 'inverted' && frame.depth === 1) own += frame.weights[0];
          const kids = view.mode === 'inverted' && frame.depth === 1 ? [] : view.children(frame);
          kids.forEach(walk);
        }};
        walk(view.root);
        return [own, view.root.weights[0]];
    """)
    check(abs(own - all_of_it) < 1e-6 * all_of_it, f"own weights are {own} of {all_of_it}")


with Browser() as browser:
    browser.open(f"file://{page}")
    browser.wait("return document.body.dataset.ready", "page")
    check(not browser.faults(), f"the page has faults: {browser.faults()}")
    requests = [name for name in browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
                if not name.startswith("data:")]
    check(not requests, f"the page asks the network for {requests}")
    frames = browser.run("return jdflame.graph.rows.reduce((sum, row) => sum + row.length, 0)")
    check(frames > 50, f"only {frames} frames are drawn")
    legend = browser.run("return document.getElementById('legend').innerText")
    for kind in ("compiled Java", "inlined Java", "native", "kernel"):
        check(kind in legend, f"the legend lacks {kind}: {legend}")
    whole()

    # Search: typed and sent as a user does, marks on the canvas.
    browser.type("#term", method + "\n")
    found = browser.run("return document.getElementById('details').innerText")
    check("found in" in found and "%" in found, f"the search for {method} says: {found}")
    place = browser.run(PLACE, method)
    check(place, f"no frame of {method}")
    colour = browser.run("""
        const canvas = jdflame.graph.canvas, bounds = canvas.getBoundingClientRect(), scale = canvas.width / bounds.width;
        return [...canvas.getContext('2d').getImageData((arguments[0] - bounds.left) * scale, (arguments[1] - bounds.top) * scale, 1, 1).data];
    """, place["x"] + place["width"] - 2, place["y"] + 2)
    check(colour[:3] == [230, 0, 230], f"the search marks nothing: the colour is {colour}")

    # The mouse on a frame tells its source line; a click zooms it to the full width.
    centre = (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    browser.drag(centre)
    details = browser.run("return document.getElementById('details').innerText")
    check(method in details and ".java:" in details, f"the details are: {details}")
    full = browser.run("return jdflame.graph.box.clientWidth")
    zoomed = browser.run(PLACE, method)
    check(zoomed["width"] > 0.98 * full and zoomed["width"] > place["width"], f"a click widened the frame from {place['width']} to {zoomed['width']} of {full}")
    browser.click("#reset")
    # Where the graph needs a scroll bar again it is laid out once more, a little narrower.
    browser.wait(f"const place = (function () {{ {PLACE} }}).apply(null, arguments); return place && Math.abs(place.width - arguments[1]) < 1;",
                 f"frame as wide as before it was zoomed, {place['width']} pixels", 10, method, place["width"])

    # Keys: Escape ends the search, arrows go from frame to frame, i inverts, d makes it dark.
    browser.press(["\ue00c", "\ue013"])
    check(browser.run("return document.getElementById('term').value") == "", "Escape leaves the search")
    check(browser.run("return jdflame.graph.frame.depth") == 1, "the arrow up selects no callee")
    browser.press(["i"])
    check(browser.run("return jdflame.view.mode") == "inverted", "i does not invert")
    whole()
    browser.press(["i", "d"])
    theme = browser.run("return document.body.dataset.theme")
    browser.press(["d"])
    check(browser.run("return document.body.dataset.theme") != theme, "d does not change the theme")

    # Roots: by thread, by process, none; the sums stay.
    before = browser.run(WEIGHTS)
    for roots in ("thread", "process", "none", "name"):
        browser.run("const roots = document.getElementById('roots'); roots.value = arguments[0]; roots.dispatchEvent(new Event('change'))", roots)
        check(browser.run(WEIGHTS) == before, f"roots {roots} change the sum")
        whole()

    # The heat map: a part that is dragged over has the samples of that time, counted apart.
    heat = browser.run("const box = jdflame.maps[0].canvas.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]")
    columns = browser.run("return [jdflame.maps[0].columns, jdflame.maps[0].wide]")
    # On a machine with other work there may be none in some columns: the two next to each other with the most.
    middle = browser.run("""
        const map = jdflame.maps[0], part = map.cells.length / map.columns, filled = new Array(map.columns).fill(0);
        map.cells.forEach((samples, cell) => { filled[Math.floor(cell / part)] += samples; });
        const pairs = filled.slice(1).map((samples, i) => samples + filled[i]);
        return pairs.indexOf(Math.max(...pairs)) + 1;
    """)
    browser.drag((heat[0] + columns[1] * (middle - 1) + 1, heat[1] + heat[3] - 1), (heat[0] + columns[1] * middle + 1, heat[1] + 1))
    chosen = browser.run("return jdflame.maps[0].range")
    check(chosen == [(middle - 1) * 50, middle * 50 + 49], f"dragging chose {chosen}")
    counted = browser.run("""
        const map = jdflame.maps[0], profile = jdflame.profiles[0], event = jdflame.events[0];
        const from = map.range[0] * map.cellSeconds, until = (map.range[1] + 1) * map.cellSeconds;
        let samples = 0;
        for (let i = event.first; i < event.end; i++) {
          const time = profile.time[i] * profile.seconds;
          if (time >= from && time < until) samples++;
        }
        return samples;
    """)
    shown = browser.run(SAMPLES)[0]
    check(0 < shown < browser.run("return jdflame.events[0].samples") and shown == counted, f"the graph has {shown} samples, not {counted}")
    whole()
    browser.click("#all")
    check(browser.run(WEIGHTS) == before, "all of the time is not")
    if len(sys.argv) > 3:
        browser.screenshot(sys.argv[3])
    print(f"{frames} frames; {found}; zoomed from {place['width']:.0f} to {zoomed['width']:.0f} pixels; {shown} samples chosen")
