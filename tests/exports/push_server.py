"""push_server.py DIR [CERTIFICATE]: takes what jdperf watch pushes, by all three protocols, and says what is wrong with it.

Prints its port. Each profile becomes DIR/PROTOCOL-N.json with its labels, the share of each method and its samples; what breaks a
rule of the protocol becomes DIR/wrong. While there is a file DIR/down it answers 503.
"""
import base64
import collections
import gzip
import http.server
import json
import os
import ssl
import sys
import threading

import stacks

directory = sys.argv[1]
numbers = collections.Counter()
lock = threading.Lock()

# Of api/push/v1/push.proto and profilestore.proto.
LABEL = {1: ("name", "text"), 2: ("value", "text")}
PUSH = {1: ("series", [{1: ("labels", [LABEL]), 2: ("samples", [{1: ("profile", "bytes"), 2: ("id", "text")}])}])}


def unique(labels):
    stacks.check(len({label["name"] for label in labels}) == len(labels), "a label is there twice")
    return {label["name"]: label["value"] for label in labels}


def keep(protocol, labels, profile, read):
    with lock:
        numbers[protocol] += 1
        path = f"{directory}/{protocol}-{numbers[protocol]}"
    with open(path, "wb") as file:
        file.write(profile)
    samples = read(path)
    self_counts = collections.Counter()
    with_method = collections.Counter()
    for sample in samples:
        if sample.stack:
            self_counts[sample.stack[-1]] += sample.count
        for name in set(sample.stack):
            with_method[name] += sample.count
    shape, tables = (stacks.PPROF, ["location"]) if read == stacks.pprof else (stacks.OTLP, ["dictionary", "locationTable"])
    locations = stacks.message(stacks.load(path), shape)
    for table in tables:
        locations = locations[table]
    inlined = sum(len(location["line" if read == stacks.pprof else "lines"]) > 1 for location in locations)
    told = {"labels": labels, "samples": sum(sample.count for sample in samples), "self": self_counts, "all": with_method,
            "inlined": inlined}
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.rename(f"{path}.part", f"{path}.json")


def pyroscope(body, headers):
    stacks.check(headers["Content-Type"] == "application/proto", "no proto")
    request = stacks.message(body, PUSH)
    for series in request["series"]:
        labels = unique(series["labels"])
        stacks.check(labels["__name__"] == "process_cpu" and labels["service_name"], "no name, or no service")
        for sample in series["samples"]:
            stacks.check(len(sample["id"]) == 36, "no UUID")
            keep("pyroscope", labels, sample["profile"], stacks.pprof)


def parca(body, headers):
    stacks.check(headers["Content-Type"] == "application/json", "no JSON")
    request = json.loads(body)
    stacks.check(request["normalized"] is True, "addresses are not normalized")
    for series in request["series"]:
        labels = unique(series["labels"]["labels"])
        stacks.check(labels["__name__"], "no name")
        for sample in series["samples"]:
            keep("parca", labels, base64.b64decode(sample["rawProfile"], validate=True), stacks.pprof)


def otlp(body, headers):
    stacks.check(headers["Content-Type"] == "application/x-protobuf", "no protobuf")
    stacks.check(headers["Content-Encoding"] == "gzip", "not packed")
    request = gzip.decompress(body)
    labels = {}
    for number, _, value in stacks.fields(request):
        if number == 1:
            resource = next(inner for at, _, inner in stacks.fields(value) if at == 1)
            for at, _, attribute in stacks.fields(resource):
                pair = {key: inner for key, _, inner in stacks.fields(attribute)}
                text = [inner for key, _, inner in stacks.fields(pair[2]) if key == 1]
                if at == 1 and text:
                    name = pair[1].decode()
                    stacks.check(name not in labels, f"{name} is there twice")
                    labels[name] = text[0].decode()
    stacks.check(labels["service.name"], "no service")
    keep("otlp", labels, request, stacks.otlp)


PATHS = {"/base/push.v1.PusherService/Push": pyroscope, "/v1development/profiles": otlp, "/api/profiles/writeraw": parca}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 200
        if os.path.exists(f"{directory}/down"):
            status = 503
        elif self.path not in PATHS:
            status = 404
        else:
            try:
                stacks.check(self.headers["X-Scope-OrgID"] == "tenant one", "a header of the user's is missing")
                PATHS[self.path](body, self.headers)
            except (SystemExit, Exception) as problem:  # pylint: disable=broad-except
                with open(f"{directory}/wrong", "a", encoding="utf-8") as file:
                    file.write(f"{self.path}: {problem!r}\n")
                status = 400
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
