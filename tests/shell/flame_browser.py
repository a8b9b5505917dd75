"""Opens a flame graph in headless Chromium, through chromedriver's WebDriver protocol, and uses it."""
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

page, method = sys.argv[1:3]
driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)


def call(verb, path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", method=verb,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]


def run(script, *arguments):
    return call("POST", f"{session}/execute/sync", {"script": script, "args": list(arguments)})


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


session = None
try:
    for line in driver.stdout:
        if "successfully on port" in line:
            port = int(line.rstrip().rstrip(".").split()[-1])
            break
    try:
        session = "/session/" + call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": ["--headless", "--no-sandbox", "--disable-gpu",
                                            "--disable-dev-shm-usage", "--window-size=1400,900"]}}}})["sessionId"]
    except urllib.error.HTTPError as error: # before our page comes into it
        print("SKIPPED: Chromium does not start here:", json.load(error)["value"]["message"].split("\n")[0])
        sys.exit(77)
    call("POST", f"{session}/url", {"url": f"file://{page}"})

    frames = run("return document.querySelectorAll('#chart g.frame').length")
    check(frames > 50, f"only {frames} frames are drawn")
    faults = [entry for entry in call("POST", f"{session}/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]
    check(not faults, f"the page has faults: {faults}")
    requests = run("return performance.getEntriesByType('resource').map(entry => entry.name)")
    check(not requests, f"the page asks the network for {requests}")
    legend = run("return document.getElementById('legend').innerText")
    for kind in ("compiled Java", "inlined Java", "interpreted Java", "native", "kernel"):
        check(kind in legend, f"the legend lacks {kind}: {legend}")

    # Search: typed and sent as a user does.
    field = list(call("POST", f"{session}/element", {"using": "css selector", "value": "#term"}).values())[0]
    call("POST", f"{session}/element/{field}/value", {"text": method + "\n"})
    found = run("return document.getElementById('details').innerText")
    check("frames found" in found, f"the search for {method} says: {found}")
    marked = run("return [...document.querySelectorAll('#chart rect')].filter("
                 "rect => rect.getAttribute('fill') === '#e600e6').length")
    check(marked > 0, "the search marks nothing")

    # A click on the widest frame of the method zooms it to the full width.
    widest = """
        const frames = [...document.querySelectorAll('#chart g.frame')]
            .filter(frame => frame.getAttribute('name').includes(arguments[0]));
        frames.sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width);
        return """
    before = run(widest + "frames[0].querySelector('rect').getBoundingClientRect().width", method)
    check(before > 0, f"no frame of {method}")
    run(widest + "frames[0].scrollIntoView({block: 'center'})", method)
    box = run(widest + "frames[0].querySelector('rect').getBoundingClientRect()", method)
    call("POST", f"{session}/actions", {"actions": [{
        "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": int(box["x"] + box["width"] / 2), "y": int(box["y"] + box["height"] / 2)},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}]})
    full = run("return document.getElementById('chart').clientWidth - 2")
    for _ in range(50):
        after = run(widest + "frames[0].querySelector('rect').getBoundingClientRect().width", method)
        if after > 0.98 * full:
            break
        time.sleep(0.1)
    check(after > 0.98 * full and after > before, f"a click widened the frame from {before} to {after} of {full}")
    reset = list(call("POST", f"{session}/element", {"using": "css selector", "value": "#reset"}).values())[0]
    call("POST", f"{session}/element/{reset}/click", {})
    for _ in range(50):
        again = run(widest + "frames[0].querySelector('rect').getBoundingClientRect().width", method)
        if abs(again - before) < 2:
            break
        time.sleep(0.1)
    check(abs(again - before) < 2, f"reset leaves a width of {again}, not {before}")
    print(f"{frames} frames; {found}; zoomed from {before:.0f} to {after:.0f} pixels")
finally:
    if session:
        call("DELETE", session)
    driver.terminate()
    driver.wait()
