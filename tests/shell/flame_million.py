"""flame_million.py make PAGE MORE COUNT: a flame page with its samples repeated in time until there are COUNT.
flame_million.py open PAGE COUNT: headless Chromium shows the page's COUNT samples for less than 2 s of its processor time.
"""
import array
import base64
import gzip
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import Browser, check  # noqa: E402

MAGIC = b"jdflame1"
SIZES = {"u8": 1, "u32": 4, "f64": 8}


def make(path, result, wanted):
    with open(path, encoding="utf-8") as file:
        before, mark, rest = re.split(r'(<script type="application/x-jdflame"[^>]*>)', file.read())
    data, mark_end, after = rest.partition("</script>")
    data = gzip.decompress(base64.b64decode(data))
    check(data.startswith(MAGIC), "another format")
    size = struct.unpack_from("<I", data, len(MAGIC))[0]
    at = len(MAGIC) + 4 + size
    header = json.loads(data[at - size:at])
    check(len(header["events"]) == 1, "several events")
    times = -(-wanted // header["events"][0]["samples"])
    columns = []
    for name, kind, count in header["columns"]:
        at += -at % 8
        column = data[at:at + count * SIZES[kind]]
        at += len(column)
        if name == "time":
            once = array.array("I", column)
            apart = (1 << 32) // times  # of the samples' ticks
            longest = max(once) + 1
            column = b"".join(array.array("I", [round * apart + tick * (apart - 1) // longest for tick in once]).tobytes() for round in range(times))
        elif name in ("node", "thread", "weight"):
            column *= times
        columns.append((name, kind, column))
    header["columns"] = [[name, kind, len(column) // SIZES[kind]] for name, kind, column in columns]
    header["events"][0]["samples"] *= times
    header["events"][0]["weight"] *= times
    text = json.dumps(header).encode()
    out = MAGIC + struct.pack("<I", len(text)) + text
    for _, _, column in columns:
        out += b"\0" * (-len(out) % 8) + column
    with open(result, "w", encoding="utf-8") as file:
        file.write(before + mark + base64.b64encode(gzip.compress(out)).decode() + "\n" + mark_end + after)


def show(page, wanted):
    with Browser() as browser:
        def seconds():
            metrics = browser.call("POST", f"{browser.session}/goog/cdp/execute", {"cmd": "Performance.getMetrics", "params": {}})["metrics"]
            return next(metric["value"] for metric in metrics if metric["name"] == "ProcessTime")

        browser.call("POST", f"{browser.session}/goog/cdp/execute", {"cmd": "Performance.enable", "params": {}})
        browser.open(f"file://{page}")
        browser.wait("return document.body.dataset.ready", "page", 60)
        # Of all threads of the page's process from its start on: what a machine of its own takes, or less; other work does not count.
        taken = seconds()
        samples = browser.run("return jdflame.events.reduce((sum, event) => sum + event.samples, 0)")
        check(samples >= wanted, f"only {samples} samples")
        check(not browser.faults(), f"the page has faults: {browser.faults()}")
        print(f"{samples} samples shown after {taken:.2f} s of processor time")
        check(taken < 2, "it takes longer than 2 s")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        show(sys.argv[2], int(sys.argv[3]))
