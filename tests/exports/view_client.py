"""view_client.py TOLD FIREFOX: asks a running jdtool view as the front end does, and as others do."""
import gzip
import json
import socket
import sys
import urllib.parse

with open(sys.argv[1], encoding="utf-8") as file:
    url = next(line.strip() for line in file if "symbolServer" in line)
base = urllib.parse.unquote(url.split("symbolServer=")[1])
host = urllib.parse.urlparse(base).netloc
port = int(host.split(":")[1])
token = urllib.parse.urlparse(base).path


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def ask(text, body=b""):
    """Sends a request as it is, returns status, headers and body."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(text.encode() + body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, rest = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]) if answer else 0, dict(line.split(": ", 1) for line in lines[1:]), rest


def get(path, method="GET", name=host):
    return ask(f"{method} {path} HTTP/1.1\r\nHost: {name}\r\n\r\n")


def post(path, fields):
    body = (fields if isinstance(fields, str) else json.dumps(fields)).encode()
    return ask(f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n", body)


with open(sys.argv[2], encoding="utf-8") as file:
    expected = json.load(file)
for _ in range(40):  # more than there are places for clients
    status, headers, body = get(f"{token}/profile.json")
    check(status == 200 and headers["Content-Encoding"] == "gzip", f"the profile has {status}")
    check(headers["Access-Control-Allow-Origin"] == "http://localhost:4242", "another origin may read it")
profile = json.loads(gzip.decompress(body))
check(len(profile["threads"]) == len(expected["threads"]), "the profile is another one")
status, headers, _ = get(f"{token}/profile.json", "OPTIONS")
check(status == 204 and headers["Access-Control-Allow-Private-Network"] == "true", "no answer to a preflight")
check(get(f"{token}/profile.json", "HEAD")[2] == b"", "HEAD has a body")

# Nobody else gets anything: other paths, other names of this machine, other methods.
other = token[:-1] + ("1" if token.endswith("0") else "0")
for path in ("/", "/profile.json", f"{other}/profile.json", f"{token}", f"{token}x/profile.json", f"{token}/../etc/passwd"):
    check(get(path)[0] == 404, f"{path} has {get(path)[0]}")
check(get(f"{token}/profile.json", name="attacker.example")[0] == 403, "another Host gets it")
check(get(f"{token}/profile.json", "PUT")[0] == 405, "PUT")
for broken in ("x\r\n\r\n", "GET\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "\0\r\n\r\n",
               f"POST {token}/asm/v1 HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n"):
    check(ask(broken)[0] == 400, f"{broken!r} has {ask(broken)[0]}")
check(ask(f"POST {token}/asm/v1 HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99999999\r\n\r\n")[0] == 413, "a huge request")

# The API.
for body in ("", "[]", "{}", "{\"file\":", "{\"file\":5}", "{\"file\":\"" + "x" * 5000 + "\"}", "{" * 1000):
    check(post(f"{token}/source/v1", body)[0] == 400, f"source {body[:20]}")
    check(post(f"{token}/asm/v1", body)[0] == 400, f"asm {body[:20]}")
status, _, body = post(f"{token}/source/v1", {"file": "/etc/passwd"})
check(status == 200 and "error" in json.loads(body), "it serves any file")
lib = next(lib for lib in profile["libs"] if lib["name"].startswith("[java"))
wanted = {"debugName": lib["debugName"], "debugId": lib["breakpadId"], "name": "\u00e4\"\\", "startAddress": "0x0", "size": "0x10"}
status, _, body = post(f"{token}/asm/v1", wanted)
check(status == 200 and "error" in json.loads(body), "code of a dump that is not there")
status, _, body = post(f"{token}/asm/v1", dict(wanted, debugId="0" * 33))
check("no such library" in json.loads(body)["error"], "another library")
print("served 40 times; refused what it should")
