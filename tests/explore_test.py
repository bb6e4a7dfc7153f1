"""`isomer explore` on its socket: what it serves, what it refuses, how it ends. Ports are whichever are free."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from program import PROGRAM, RECIPE, command, expect, isomer

GOLDENS = Path(__file__).parent / "goldens"


class Server:
    """The program, listening; `with` ends it politely and expects status 0."""

    def __init__(self, *arguments, **kwargs):
        self.process = subprocess.Popen(command("explore", *arguments, "--port", 0), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends it\)\n", line)
        expect(found, f"expected an address, got {line!r} {self.process.stderr.read() if not line else ''}")
        self.port = int(found.group(1))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kind else signal.SIGINT)
        status = self.process.wait(timeout=20)
        expect(kind or status == 0, f"expected status 0 after SIGINT, got {status}")

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body, {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def look(self, name, **question):
        answer, text = self.ask("POST", f"/api/{name}", json.dumps(question))
        return answer.status, json.loads(text)

    def raw(self, data):
        """What comes back for bytes; nothing if the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            try:
                while part := connection.recv(65536):
                    received += part
            except ConnectionResetError:
                pass
            return received


def check_serves(server):
    answer, page = server.ask("GET", "/")
    expect(answer.status == 200 and answer.getheader("Content-Type") == "text/html; charset=utf-8", "expected the page")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    expect(data["kind"] == "explore" and data["left"] == "deltanet", f"expected what the page begins with, got {data}")
    expect(answer.getheader("X-Frame-Options") == "DENY" and answer.getheader("Cache-Control") == "no-store", "expected headers")
    status, view = server.look("view", preset="gla", text="the cat sat")
    expect(status == 200 and [len(row) for row in view["view"]["matrix"]] == [1, 2, 3], f"got {view}")
    answer, _ = server.ask("POST", "/api/view", json.dumps({"preset": "gla", "text": "a b"}))
    expect(re.fullmatch(r"answer;dur=[\d.]+", answer.getheader("Server-Timing")), "expected how long it took")
    # A browser says that it knows brotli: nothing is packed on the way to the same machine.
    answer, _ = server.ask("GET", "/", headers={"Accept-Encoding": "gzip, br"})
    expect(answer.getheader("Content-Encoding") is None, "expected the page as it is")


def check_refuses(server):
    status, answer = server.look("view", preset="glaa", text="a")
    expect((status, answer) == (400, {"error": "unknown preset glaa, did you mean gla?"}), f"got {answer}")
    for path in ("/etc/passwd", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/", "/index.html", "//etc/passwd"):
        answer, text = server.ask("GET", path)
        expect(answer.status == 404 and "root:" not in text, f"{path}: got {answer.status} {text}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "POST"):
        answer, _ = server.ask(method, "/")
        expect(answer.status == 405, f"{method}: got {answer.status}")
    for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"}, {"Host": "127.0.0.1"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for method, path in ("GET", "/"), ("POST", "/api/view"):
            answer, text = server.ask(method, path, '{"preset": "gla", "text": "a"}' if method == "POST" else None, headers)
            expect(answer.status == 403 and "matrix" not in text, f"{headers}: got {answer.status}")
    answer, _ = server.ask("POST", "/api/view", '{"preset": "gla", "text": "a"}', {"Content-Type": "text/plain"})
    expect(answer.status == 415, f"got {answer.status}")
    answer, _ = server.ask("POST", "/api/view", json.dumps({"preset": "gla", "text": "a " * 40000}))
    expect(answer.status == 413, f"expected a body that is too large to be refused, got {answer.status}")
    # In chunks a body announces no length, and could be of any.
    answer, _ = server.ask("POST", "/api/view", iter([b'{"preset": "gla", ', b'"text": "a"}']))
    expect(answer.status == 411, f"expected a body in chunks to be refused, got {answer.status}")


def check_malformed(server):
    host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    for data in (
        b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n" + host + b"\r\n", b"\x00\xff\xfe" * 100, b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /\r\n\r\n", b"BREW / HTTP/1.1\r\n" + host + b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET http://evil.example/ HTTP/1.1\r\n" + host + b"\r\n",
        b"GET / HTTP/1.1\r\n" + host + host + b"\r\n", b"GET etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"GET /%zz%00 HTTP/1.1\r\n" + host + b"\r\n",
        b"POST /api/view HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nContent-Length: 99999999999999\r\n\r\n{}",
        b"POST /api/view HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /api/view HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"POST /api/view HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{}",
    ):
        received = server.raw(data)
        expect(not received or re.match(rb"HTTP/1\.1 4\d\d ", received), f"{data[:60]}: got {received[:80]}")
    expect(server.look("view", preset="gla", text="a")[0] == 200, "expected it to serve on")


def check_port(server):
    done = isomer("explore", "--port", server.port)
    wanted = f"isomer explore: port {server.port} is taken or not allowed: give another with --port, or --port 0\n"
    expect((done.returncode, done.stdout, done.stderr) == (1, "", wanted), f"got {done.returncode} {done.stderr}")
    # On this machine alone: no other address of it listens.
    with socket.socket() as other:
        other.bind(("127.0.0.2", server.port))


def check_requests(folder):
    for arguments, line in (
        (["glaa"], "unknown preset glaa, did you mean gla?"),
        (["gla", "--text", " "], "mixers: expected words, got none"),
        ([folder], f"{folder}: expected the folder of a run or of a model (with config.json), got neither"),
    ):
        done = isomer("explore", *arguments, "--port", 0)
        expect(done.returncode == 2 and done.stderr.startswith(f"isomer explore: {line}") and done.stderr.count("\n") == 1, f"{arguments}: got {done.returncode} {done.stderr}")
    expect(isomer("explore", "--port", 70000).returncode == 2, "expected a port that there is none of to be refused")


def check_run(folder):
    (folder / "recipe.toml").write_text(RECIPE)
    done = isomer("train", folder / "recipe.toml", "--out", folder / "run", "--set", "train.steps=3")
    expect(done.returncode == 0, done.stderr)
    with Server(folder / "run", "--text", "1 2 3 1 2") as server:
        status, view = server.look("view", text="1 2 3 1 2", layer=1)
        expect(status == 200 and [layer["preset"] for layer in view["layers"]] == ["gla", "sliding-window"], f"got {view}")
        shown = json.loads(isomer("show", folder / "run", "--dsf", "--prompt", "1 2 3 1 2", "--json").stdout)["rows"]
        want = next(row for row in shown if row["layer"] == 1 and row["head"] == 0)["matrix"]
        for row, whole in zip(view["view"]["matrix"], want):
            expect(all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(row, whole)), "expected the matrix of isomer show --dsf")
        for path in ("/recipe.toml", "/metrics.jsonl", "/checkpoints/latest/config.json"):
            expect(server.ask("GET", path)[0].status == 404, f"expected {path} not to be served")


def check_gguf(_):
    with Server(GOLDENS / "gguf" / "llama.gguf", "--text", "Once upon") as server:
        status, view = server.look("view", text="Once upon", layer=1)
        expect(status == 200 and len(view["view"]["matrix"]) == len(view["words"]) and view["layer"] == 1, f"got {view}")
    done = isomer("explore", "none.gguf", "--port", 0)
    expect(done.returncode == 2 and done.stderr.startswith("isomer explore: none.gguf: ") and done.stderr.count("\n") == 1, f"got {done.returncode} {done.stderr}")


def check_ends(folder):
    for number in signal.SIGINT, signal.SIGTERM:
        with Server() as server:
            # A connection that says nothing does not hold it up for long.
            with socket.create_connection(("127.0.0.1", server.port)):
                server.process.send_signal(number)
                began = time.monotonic()
                status = server.process.wait(timeout=20)
            expect(status == 0 and time.monotonic() - began < 10, f"expected status 0 after signal {number}, got {status}")
            expect(server.process.stderr.read() == "", "expected no words")
    programs = folder / "bin"
    programs.mkdir()
    script = programs / "xdg-open"
    script.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{folder}/opening" && mv "{folder}/opening" "{folder}/opened"\n')
    script.chmod(0o755)
    with Server("--open", env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}) as server:
        for _ in range(200):
            if (folder / "opened").exists():
                break
            time.sleep(0.05)
        expect((folder / "opened").read_text() == f"http://127.0.0.1:{server.port}/", "expected a browser to be asked for the address")


def check_without_http(folder):
    """Where the module is not beside the program, nor where it is installed."""
    alone = folder / "alone" / "bin" / "isomer"
    alone.parent.mkdir(parents=True)
    shutil.copy(PROGRAM, alone)
    done = subprocess.run([alone, "explore", "--port", "0"], capture_output=True, text=True)
    wanted = "isomer explore: this program was built without HTTP: install libcpp-httplib-dev and build it again\n"
    expect((done.returncode, done.stdout, done.stderr) == (1, "", wanted), f"got {done.returncode} {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Server("deltanet") as server:
            for check in check_serves, check_refuses, check_malformed, check_port:
                check(server)
        for check in check_requests, check_run, check_gguf, check_ends, check_without_http:
            check(folder)


main()
