"""collector.py COLLECTOR DIR: an OpenTelemetry collector takes DIR/otlp and DIR/otlp-json by HTTP, and what it sends on to the next
server has the same samples.
"""
import collections
import http.server
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import stacks

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters:
  otlp_http: {{endpoint: "http://127.0.0.1:{next}", compression: none, retry_on_failure: {{enabled: false}}, sending_queue: {{enabled: false}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [otlp_http]}}}}
"""

received = []


class Next(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def post(port, path, kind):
    with open(path, "rb") as file:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1development/profiles", data=file.read(), headers={"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def samples(request):
    """Of each sample all that it has, as values instead of numbers of rows."""
    tables = request["dictionary"]
    strings = tables["stringTable"]

    def attribute(row):
        return strings[tables["attributeTable"][row]["keyStrindex"]], str(tables["attributeTable"][row]["value"])

    def location(row):
        at = tables["locationTable"][row]
        mapping = tables["mappingTable"][at["mappingIndex"]]
        lines = tuple((*(strings[tables["functionTable"][line["functionIndex"]][key]]
                         for key in ("nameStrindex", "systemNameStrindex", "filenameStrindex")), line["line"]) for line in at["lines"])
        return (strings[mapping["filenameStrindex"]], at["address"], lines, tuple(sorted(map(attribute, at["attributeIndices"]))))

    found = collections.Counter()
    for resource in request["resourceProfiles"]:
        for scope in resource["scopeProfiles"]:
            for profile in scope["profiles"]:
                kind = strings[profile["sampleType"]["typeStrindex"]], profile["period"], profile["timeUnixNano"], profile["durationNano"]
                for sample in profile["samples"]:
                    stack = tables["stackTable"][sample["stackIndex"]]["locationIndices"]
                    found[kind, tuple(map(location, stack)), tuple(sorted(map(attribute, sample["attributeIndices"]))),
                          tuple(sample["values"]), tuple(sample["timestampsUnixNano"])] += 1
    return found


def main(collector, directory):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Next)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        config, log = f"{place}/config.yaml", f"{place}/log"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, next=server.server_port))
        with open(log, "w", encoding="utf-8") as said:
            running = subprocess.Popen([collector, f"--config={config}", "--feature-gates=+service.profilesSupport"], stderr=said, stdout=said)
        try:
            end = time.monotonic() + 60
            while True:
                with open(log, encoding="utf-8") as file:
                    text = file.read()
                if "Everything is ready" in text:
                    break
                stacks.check(running.poll() is None and time.monotonic() < end, f"the collector does not start: {text}")
                time.sleep(0.1)
            ours = samples(stacks.message(stacks.load(f"{directory}/otlp"), stacks.OTLP))
            for name, kind in (("otlp", "application/x-protobuf"), ("otlp-json", "application/json")):
                received.clear()
                status, body = post(port, f"{directory}/{name}", kind)
                stacks.check(status == 200, f"{name}: the collector answers {status}: {body[:300]}")
                stacks.check(b"rejected" not in body and len(received) == 1, f"{name}: {len(received)} requests went on; {body}")
                stacks.same(samples(stacks.message(received[0], stacks.OTLP)), ours, f"{name}: the collector hands on other samples")
                print(f"{name}: the collector hands on {sum(ours.values())} samples as they came")
        finally:
            running.terminate()
            running.wait()
            server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
