"""Nodes of pinpriq, the client that talks to them, and the names of queues by shard."""

import json
import socket
import subprocess

from .processes import Trouble, free_ports


def shard_of(name, shards):
    """The shard of a queue: the slot that Redis Cluster would put the name into decides."""
    crc = 0
    for byte in name.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ (0x1021 if crc & 0x8000 else 0)
        crc &= 0xFFFF
    return crc % 16_384 * shards // 16_384


def queue_in(shard, shards):
    names = (f"jobs-{number}" for number in range(100_000))
    return next(name for name in names if shard_of(name, shards) == shard)


class Refused(Exception):
    """An error that the server has answered."""


class Client:
    """A client of RESP, with one request at a time."""

    def __init__(self, port, timeout_s=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def close(self):
        self.replies.close()
        self.socket.close()

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"*%d\r\n%s" % (len(words), b"".join(parts)))
        return self.reply()

    def reply(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the connection has ended")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        return rest


class Nodes:
    """Nodes of one cluster, started on an engine."""

    def __init__(self, processes, program, url, shards, session_s=5):
        self.processes, self.program, self.url = processes, program, url
        self.shards, self.session_s, self.ports = shards, session_s, {}

    def start(self, name):
        """Starts a node, or starts it again at another address."""
        self.ports[name], link = free_ports(2)
        self.processes.start("pinpriq", name, [
            self.program, "serve", "--cluster", self.url, "--node", name, "--pinpriq", "off",
            "--http", "off", "--resp", f"127.0.0.1:{self.ports[name]}", "--link", f"127.0.0.1:{link}",
            "--data", self.processes.directory / f"data-{name}", "--shards", self.shards,
            "--session-ttl", f"{self.session_s}s", "--log-level", "warn",
        ])

    def cluster(self, *words):
        """Runs `pinpriq cluster`, and returns the objects that it prints."""
        command = [self.program, "cluster", *words, "--cluster", self.url, "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def owners(self):
        """The owner of each shard that is served."""
        rows = self.cluster("shards")
        return {row["shard"]: row["owner"] for row in rows if row["state"] == "serving"}

    def await_owners(self, name):
        """Waits until one node serves all shards."""
        def is_so():
            owners = self.owners()
            return len(owners) == self.shards and set(owners.values()) == {name}

        self.processes.await_that(f"{name} does not serve all shards", is_so, every_s=0.05)

    def await_member(self, name):
        """Waits until a node lives and knows all shards: until it answers for each of them."""
        def is_so():
            try:
                client = Client(self.ports[name])
                for shard in range(self.shards):
                    client.ask("PEEK", queue_in(shard, self.shards))
                client.close()
                return True
            except Refused as refusal:
                return str(refusal).startswith("NOQUEUE")
            except OSError:
                return False

        self.processes.await_that(f"{name} does not answer", is_so, every_s=0.02)

    def fill(self, shard, count, size):
        """Puts tasks into the queue of a shard."""
        name, port = next(iter(self.ports.items()))
        command = [self.program, "bench", "put", "--address", f"127.0.0.1:{port}"]
        command += ["--queue", queue_in(shard, self.shards), "--count", str(count)]
        command += ["--size", str(size), "--connections", "16", "--depth", "64"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            raise Trouble(f"{name} was not filled: {ran.stdout}{ran.stderr}")
