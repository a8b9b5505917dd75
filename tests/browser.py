"""A page in headless Chromium, through chromedriver's WebDriver protocol."""
import base64
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

# Without those that keep Chromium's own services quiet it asks the network for them.
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1400,900")


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


class Browser:
    """with Browser() as browser: …; ends the test as skipped where Chromium does not start."""

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory(prefix="jdagent-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.session = None
        for line in self.driver.stdout:
            if "successfully on port" in line:
                self.port = int(line.rstrip().rstrip(".").split()[-1])
                break
        arguments = list(ARGUMENTS) + [f"--user-data-dir={self.home.name}"]
        try:
            self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}}})["sessionId"]
        except urllib.error.HTTPError as error:  # before our page comes into it
            print("SKIPPED: Chromium does not start here:", json.load(error)["value"]["message"].split("\n")[0])
            self.__exit__()
            sys.exit(77)
        return self

    def __exit__(self, *_):
        if self.session:
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()
        self.home.cleanup()

    def call(self, verb, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=verb,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            if not self.session:
                raise
            raise SystemExit(f"FAILED: the browser says: {json.load(error)['value']['message'].splitlines()[0]}") from error

    def open(self, url):
        self.call("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, what, seconds=30, *arguments):
        """Until the script gives something true, which is returned."""
        end = time.monotonic() + seconds
        while True:
            found = self.run(script, *arguments)
            if found:
                return found
            check(time.monotonic() < end, f"no {what} within {seconds} s; the page says: "
                  + str(self.run("return document.body.innerText.slice(0, 600)")) + f"; {self.faults()}")
            time.sleep(0.1)

    def element(self, selector):
        return list(self.call("POST", f"{self.session}/element", {"using": "css selector", "value": selector}).values())[0]

    def click(self, selector):
        self.call("POST", f"{self.session}/element/{self.element(selector)}/click", {})

    def type(self, selector, text):
        self.call("POST", f"{self.session}/element/{self.element(selector)}/value", {"text": text})

    def press(self, keys):
        """Keys of the page as a whole; WebDriver's code points for those without a letter."""
        self.call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            action for key in keys for action in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]}]})

    def drag(self, *points):
        """The mouse pressed at the first point, moved over the others, and let go; one point is a click."""
        actions = [{"type": "pointerMove", "x": round(points[0][0]), "y": round(points[0][1])}, {"type": "pointerDown", "button": 0}]
        actions += [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 20} for x, y in points[1:]]
        actions.append({"type": "pointerUp", "button": 0})
        self.call("POST", f"{self.session}/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def faults(self):
        return [entry["message"] for entry in self.call("POST", f"{self.session}/se/log", {"type": "browser"})
                if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", f"{self.session}/screenshot")))
