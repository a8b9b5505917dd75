"""firefox_page.py DIST METHOD SOURCE PICTURES COMMAND…: Firefox Profiler's own page (DIST: what `yarn build-prod` made in its
repository) in headless Chromium, through COMMAND…, a jdperf view that is given --front-end. What the page shows as text is held against
the profile's tables: call tree, flame graph (by its tooltips), the lines of METHOD's file SOURCE, and the machine code of a compilation.
PICTURES: a directory for screenshots.
"""
import collections
import functools
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading

import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import Browser, check  # noqa: E402
from firefox_cli import count, stacks_of  # noqa: E402

HIGH = 3000  # pixels: the page keeps only those rows that are seen

ROWS = """
    // Beside its name a call node has a badge, "(inlined)".
    const name = row => [...row.querySelector('.treeViewMainColumn').childNodes].filter(node => node.nodeType === Node.TEXT_NODE)
        .map(node => node.textContent).join('');
    const fixed = [...document.querySelectorAll('.treeViewRowFixedColumns')];
    return [...document.querySelectorAll('.treeViewRowScrolledColumns')].map((row, i) => [row.id, Number(row.getAttribute('aria-level')),
        name(row), fixed[i].querySelector('.total').textContent,
        fixed[i].querySelector('.self').textContent]);
"""
# The lines of an editor: each with its text, and what stands at the same height in a gutter.
EDITOR = """
    const editor = [...document.querySelectorAll('.cm-editor')].find(e => e.querySelector(arguments[0]));
    if (!editor) return null;
    const at = {};
    for (const [column, selector] of [['key', arguments[0]], ['total', '.cm-total-timings-gutter'], ['self', '.cm-self-timings-gutter']])
        for (const element of editor.querySelectorAll(selector + ' .cm-gutterElement')) {
            const box = element.getBoundingClientRect();
            if (box.height) (at[Math.round(box.top)] ||= {})[column] = element.textContent;
        }
    for (const element of editor.querySelectorAll('.cm-line')) {
        const line = at[Math.round(element.getBoundingClientRect().top)];
        if (line) line.text = element.textContent;
    }
    return Object.values(at);
"""
TOOLTIP = """
    const tip = document.querySelector('.tooltip .tooltipTitle');
    if (!tip) return null;
    const meter = which => Number(document.querySelector(`.tooltip [aria-label="${which} samples overall"]`).getAttribute('aria-valuenow'));
    return [tip.textContent, meter('Total'), meter('Self')];
"""


class Page(http.server.SimpleHTTPRequestHandler):
    """Its addresses are all of one page."""

    def log_message(self, *_):
        pass

    def send_head(self):
        if not os.path.isfile(self.translate_path(self.path)):
            self.path = "/index.html"
        return super().send_head()


def number(text):
    return 0 if text in (None, "", "—") else int(text.replace(",", ""))


def tree_of(stacks, name_of):
    """Total and own samples of each call node, by its path of names from the root."""
    total, own = collections.Counter(), collections.Counter()
    for stack in stacks:
        path = tuple(name_of(frame) for frame in reversed(stack))
        total.update(path[:end + 1] for end in range(len(path)))
        own[path] += 1
    return total, own


def check_tree(browser, stacks, name_of, method):
    total, own = tree_of(stacks, name_of)
    browser.wait("return document.querySelectorAll('.treeViewRowScrolledColumns').length > 2", "call tree", 60)
    # The first root, which has the most samples, is what the page has opened: it is closed, and then opened to its leaves.
    browser.click(".treeViewRowScrolledColumns .treeViewMainColumn")
    inner = "document.querySelectorAll('.treeViewRowScrolledColumns:not([aria-level=\"1\"])').length"
    browser.press(["*"])
    browser.wait(f"return {inner} === 0", "closed tree")
    browser.press(["*"])
    browser.wait(f"return {inner} > 0", "open tree")
    rows, path = browser.run(ROWS), ()
    for _, level, name, in_all, itself in rows:
        path = (*path[:level - 1], name)
        check((number(in_all), number(itself)) == (total[path], own[path]),
              f"the call tree has {in_all} and {itself} samples, not {total[path]} and {own[path]}, of {' <- '.join(reversed(path))}")
    found = [(number(itself), row) for row, _, name, _, itself in rows if name == method]
    check(len(rows) > 50 and found, f"{len(rows)} rows, none of them {method}" if not found else f"only {len(rows)} rows")
    return len(rows), max(found)[1], total, own


def check_lines(browser, stacks, profile, at_source, source):
    functions, frames = profile["shared"]["funcTable"], profile["shared"]["frameTable"]

    def line_of(frame):
        function, line = frames["func"][frame], frames["line"][frame]
        return None if functions["source"][function] != at_source else functions["lineNumber"][function] if line is None else line

    own, total = count(stacks, line_of)
    lines = browser.wait(EDITOR, "source", 30, ".cm-lineNumbers")
    with open(source, encoding="utf-8") as file:
        text = file.read().split("\n")
    shown = {int(line["key"]): line for line in lines if line.get("key")}
    check(set(total) <= set(shown), f"the page shows lines {min(shown)} to {max(shown)}, not all of {sorted(total)}")
    for line, row in shown.items():
        check(row["text"] == text[line - 1], f"line {line} is {row['text']}")
        check((number(row.get("total")), number(row.get("self"))) == (total[line], own[line]),
              f"line {line} has {row.get('total')} and {row.get('self')} samples, not {total[line]} and {own[line]}")
    check(sum(own.values()) > 0 and len(total) > 3, f"few samples in the source: {own}, {total}")
    return len(total), sum(own.values())


def check_instructions(browser, stacks, profile):
    frames, symbols = profile["shared"]["frameTable"], profile["shared"]["nativeSymbols"]
    browser.click(".bottom-assembly-button")
    rows = browser.wait(EDITOR, "machine code", 30, ".cm-instruction-address-gutter")
    rows = [row for row in rows if row.get("key", "").startswith("0x")]
    first = int(rows[0]["key"], 16)
    symbol = [n for n in range(symbols["length"]) if symbols["address"][n] <= first < symbols["address"][n] + (symbols["functionSize"][n] or 0)]
    check(len(symbol) == 1, f"{len(symbol)} native symbols at {first:x}")
    own, total = count(stacks, lambda frame: frames["address"][frame] if frames["nativeSymbol"][frame] == symbol[0] else None)
    with_samples, samples = 0, 0
    for row in rows:
        address = int(row["key"], 16)
        check(row.get("text", "").strip(), f"no instruction at {address:x}")
        check((number(row.get("total")), number(row.get("self"))) == (total[address], own[address]),
              f"{address:x} has {row.get('total')} and {row.get('self')} samples, not {total[address]} and {own[address]}")
        with_samples += own[address] > 0
        samples += own[address]
    check(with_samples > 2, f"{with_samples} instructions have samples")
    return profile["shared"]["stringArray"][symbols["name"][symbol[0]]], len(rows), with_samples, samples


def check_flame_graph(browser, total, own):
    browser.run("[...document.querySelectorAll('.tabBarTab button')].find(e => /Flame Graph/.test(e.textContent)).click()")
    box = browser.wait("const c = document.querySelector('.flameGraphCanvas'); if (!c) return null;"
                       "const box = c.getBoundingClientRect(); return box.height > 100 && [box.x, box.y, box.width, box.height]", "flame graph")
    by_depth = collections.defaultdict(collections.Counter)
    for path, samples in total.items():
        by_depth[len(path) - 1][path[-1], samples, own[path]] += 1
    boxes = set()
    for depth in range(min(int(box[3]) // 16, max(by_depth) + 1, 40)):
        for part in range(1, 16, 2):
            point = {"x": int(box[0] + box[2] * part / 16), "y": int(box[1] + box[3] - 8 - 16 * depth)}
            moves = [{"type": "pointerMove", **point, "duration": 0}, {"type": "pointerMove", "x": point["x"] + 1, "y": point["y"], "duration": 0}]
            browser.call("POST", f"{browser.session}/actions", {"actions": [
                {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}]})
            tip = browser.run(TOOLTIP)
            if tip:
                check(by_depth[depth][tuple(tip)], f"the flame graph's tooltip at depth {depth} tells {tip}")
                boxes.add((depth, *tip))
    check(len(boxes) > 20 and len({box[0] for box in boxes}) > 10, f"only {len(boxes)} boxes of the flame graph were found")
    return len(boxes)


def view(browser, address, method, source, pictures):
    server = urllib.parse.unquote(address.split("symbolServer=")[1])
    with urllib.request.urlopen(f"{server}/profile.json", timeout=60) as answer:
        profile = json.loads(gzip.decompress(answer.read()))
    frames, functions, strings = profile["shared"]["frameTable"], profile["shared"]["funcTable"], profile["shared"]["stringArray"]

    browser.call("POST", f"{browser.session}/window/rect", {"width": 1600, "height": HIGH})
    browser.open(address)
    browser.wait("return document.querySelector('.treeViewRow')", "call tree", 60)
    chosen = int(urllib.parse.parse_qs(urllib.parse.urlparse(browser.run("return location.href")).query)["thread"][0])
    stacks = list(stacks_of(profile, profile["threads"][chosen]))
    rows, row, total, own = check_tree(browser, stacks, lambda frame: strings[functions["name"][frames["func"][frame]]], method)
    browser.screenshot(f"{pictures}/call-tree.png")

    # A double click on a row opens its source.
    browser.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center', inline: 'start'})", row)
    place = browser.run("const box = document.getElementById(arguments[0]).querySelector('.treeViewMainColumn').getBoundingClientRect();"
                        "return [box.x + 3, box.y + box.height / 2]", row)
    click = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
    browser.call("POST", f"{browser.session}/actions", {"actions": [
        {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": round(place[0]), "y": round(place[1])}, *click, *click]}]})
    at_source = {functions["source"][n] for n in range(functions["length"]) if strings[functions["name"][n]] == method}
    check(len(at_source) == 1, f"{len(at_source)} sources of {method}")
    lines, line_samples = check_lines(browser, stacks, profile, at_source.pop(), source)
    symbol, instructions, hot, samples = check_instructions(browser, stacks, profile)
    browser.screenshot(f"{pictures}/source-and-code.png")
    browser.click(".bottom-close-button")
    boxes = check_flame_graph(browser, total, own)
    browser.screenshot(f"{pictures}/flame-graph.png")
    check(not browser.faults(), f"the page has faults: {browser.faults()}")
    print(f"Firefox Profiler's page: {len(stacks)} samples; {rows} rows of the call tree, {boxes} boxes of the flame graph, {lines} lines of "
          f"source with {line_samples} samples of their own, {instructions} instructions of {symbol}, {hot} of them with {samples}: "
          "all as in the profile")


def main(dist, method, source, pictures, *command):
    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Page, directory=dist))
    page.handle_error = lambda *_: None  # a browser that is closed leaves its requests
    threading.Thread(target=page.serve_forever, daemon=True).start()
    with Browser() as browser:
        server = subprocess.Popen([*command, "--front-end", f"http://127.0.0.1:{page.server_port}", "--idle", "120"],
                                  stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            address = next((line.strip() for line in server.stdout if "symbolServer=" in line), None)
            check(address, "jdperf view tells no address")
            view(browser, address, method, source, pictures)
        finally:
            os.killpg(server.pid, 2)  # Ctrl-C
            check(server.wait(timeout=60) == 0, "jdperf view did not end well with Ctrl-C")
    page.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
