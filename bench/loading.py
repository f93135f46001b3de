"""What the measurements here share: a server of one's own, a client of its RESP door, and how long a
take with its ack lasts. Measures nothing by itself.
"""

import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PIPELINE = 1_000
ANSWER_S = 60
PAYLOAD = b"x" * 100


def request(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%s" % (len(words), b"".join(parts))


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address, ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def reply(self):
        line = self.replies.readline().rstrip()
        if line[:1] == b"*":
            return [self.reply() for _ in range(int(line[1:]))]
        if line[:1] == b"$" and line != b"$-1":
            return self.replies.read(int(line[1:]) + 2)[:-2]
        if line[:1] not in (b"+", b":", b"$"):
            sys.exit(f"the server has answered {line!r}")
        return line[1:]

    def ask(self, *words):
        self.socket.sendall(request(*words))
        return self.reply()

    def put_all(self, queue, count, payload=None):
        """Puts so many tasks, with what `payload` returns for each."""
        put = request("PUT", queue, PAYLOAD)
        while count > 0:
            some = min(PIPELINE, count)
            puts = (request("PUT", queue, payload()) for _ in range(some)) if payload else [put] * some
            self.socket.sendall(b"".join(puts))
            for _ in range(some):
                self.reply()
            count -= some


class Server:
    """A server on free ports of the loopback interface, with a directory of its own unless it gets one.
    Both are gone at the end."""

    def __init__(self, program, durability, *more, data=None):
        self.made = data is None
        self.data = data or tempfile.mkdtemp()
        self.began = time.monotonic()
        command = [program, "serve", "--data", self.data, "--durability", durability]
        command += ["--resp", "127.0.0.1:0", "--pinpriq", "off", "--http", "127.0.0.1:0"]
        command += ["--task-bytes-max", str(1 << 40), *more]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.addresses = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.made:
            shutil.rmtree(self.data)

    def address(self, door="resp"):
        """Where a door listens. Waits until the server has loaded its tasks."""
        while door not in self.addresses:
            line = self.process.stderr.readline()
            if not line:
                sys.exit("the server has ended")
            if "listening" in line:
                found = dict(re.findall(r"(\w+)=\"?([^\s\"]+)", line))
                self.addresses[found["door"]] = found["address"]
        return self.addresses[door]

    def client(self):
        host, port = self.address().rsplit(":", 1)
        return Client((host, int(port)))

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            [line] = [line for line in status if line.startswith("VmRSS")]
        return int(line.split()[1]) << 10


def latencies(client, goes_on):
    """How long a take and its ack have lasted, each time, in seconds."""
    found = []
    while goes_on() or not found:
        client.ask("PUT", "others", "x")
        began = time.perf_counter()
        [[_, _, receipt, _]] = client.ask("TAKE", "others")
        client.ask("ACK", "others", receipt)
        found.append(time.perf_counter() - began)
    return sorted(found)


def quantile(found, share):
    return found[int(len(found) * share)]


def told(found):
    names = [("p50", quantile(found, 0.5)), ("p99", quantile(found, 0.99)), ("max", found[-1])]
    figures = ", ".join(f"{name} {seconds * 1e6:.0f} us" for name, seconds in names)
    return f"{len(found)} times take and ack, {figures}"
