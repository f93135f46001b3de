"""What the trials of scripts/archive_check.py share: the program, its servers, a client of the RESP
door, and what is in a place. Decides nothing about archives.
"""

import datetime
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from archive_store import Failure, ending, expect

PROGRAM, WORK = sys.argv[1], pathlib.Path(sys.argv[2])

# How many moments of a server that archives are chosen by chance, and where the choice starts.
MOMENTS, SEED = int(sys.argv[3]), int(sys.argv[5])

# How long anything may take before it counts as missing, in seconds.
PATIENCE = 60
# A commit may be a little later than what it commits, in milliseconds.
SLACK_MS = 200
# How a shard and a number are one id.
SHARD_IDS = 1 << 46


class Ended(Failure):
    """Another has failed, or a signal has come."""


class Lost(Failure):
    """The connection has ended, and what was asked last may have happened."""


def go_on():
    if ending.is_set():
        raise Ended("it has not come to its end")


def await_that(holds, what, within=PATIENCE, pace=0.05):
    """Waits until something holds, and returns what that is."""
    until = time.monotonic() + within
    while not (found := holds()):
        go_on()
        expect(time.monotonic() < until, f"after {within} s it is not so that {what}")
        ending.wait(pace)
    return found


def now_ms():
    return time.time_ns() // 1_000_000


def moment(at_ms):
    """Returns a moment as the program takes and prints it."""
    at = datetime.datetime.fromtimestamp(at_ms // 1_000, datetime.timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03}Z"


class Resp:
    """A client of the RESP door."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(parts))

    def reply(self):
        """Returns a reply: bytes, a number, None, a list, or an error as a Failure."""
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Lost("the server has ended the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            return Failure(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"+":
            return text
        if text == b"-1":
            return None
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        content = self.file.read(int(text) + 2)
        if not content.endswith(b"\r\n"):
            raise Lost("the server has ended the connection within a reply")
        return content[:-2]

    def call(self, *words):
        self.send(*words)
        reply = self.reply()
        if isinstance(reply, Failure):
            raise reply
        return reply


class Server:
    """A server with a data directory. Its doors are closed again by `stop`."""

    def __init__(self, runner, data, shards, *settings):
        words = ["serve", "--data", data, "--pinpriq", "off", "--resp", "127.0.0.1:0"]
        words += ["--http", "127.0.0.1:0", "--shards", shards, "--log-format", "json"]
        self.data, self.ports, self.errors, self.warnings = data, {}, [], []
        self.process = runner.begin(*words, *settings, stdout=subprocess.DEVNULL)
        while len(self.ports) < 2:
            line = self.process.stderr.readline()
            self.note(runner, line)
            expect(line, f"the server on {data} has not started")
            found = re.search(r'127\.0\.0\.1:(\d+)","door":"(\w+)"', line)
            if found:
                self.ports[found[2]] = int(found[1])
        self.reader = threading.Thread(target=self.drain, args=(runner,), daemon=True)
        self.reader.start()
        self.http = f"127.0.0.1:{self.ports['http']}"
        self.resp = f"127.0.0.1:{self.ports['resp']}"

    def drain(self, runner):
        for line in self.process.stderr:
            self.note(runner, line)

    def note(self, runner, line):
        runner.log(line)
        if '"level":"ERROR"' in line or "panicked" in line:
            self.errors.append(line)
        if '"level":"WARN"' in line:
            self.warnings.append(line)

    def client(self):
        return Resp(self.ports["resp"])

    def figures(self):
        """Returns what INFO tells, by name."""
        with self.client() as client:
            lines = client.call("INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        expect(status == 0, f"the server has ended with {status}")

    def kill(self):
        expect(self.process.poll() is None, f"the server on {self.data} has ended by itself")
        self.process.kill()
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)


class Runner:
    """Runs the program, and keeps what it prints."""

    def __init__(self, name, environment):
        self.name, self.path = name, WORK / f"{name}.log"
        self.file = self.path.open("w", encoding="utf-8")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "PINPRIQ_")) and not name.lower().endswith("_proxy")
        } | environment
        self.lock = threading.Lock()
        self.processes = []

    def log(self, text):
        with self.lock:
            self.file.write(text)
            self.file.flush()

    def begin(self, *words, program=PROGRAM, stdout=subprocess.PIPE, **variables):
        go_on()
        # What it starts itself can be ended with it.
        process = subprocess.Popen(
            [program, *map(str, words)], env=self.environment | variables, cwd=WORK, text=True,
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True,
        )
        with self.lock:
            self.processes.append(process)
        return process

    def end(self, process, within=PATIENCE):
        """Returns the status of a command, and what it has printed."""
        until, printed = time.monotonic() + within, None
        while printed is None:
            try:
                printed, told = process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                go_on()
                is_late = time.monotonic() > until
                expect(not is_late, f"{process.args[1:]} has not ended in {within} s")
        status = process.returncode
        self.log(f"{process.args[1:]}: {status}\n{printed}{told}")
        expect("panicked" not in told and status != 101, f"{process.args[1:]} has panicked")
        return status, printed, told

    def run(self, *words, status=0, **variables):
        """Runs a command that ends with a status, and returns what it has printed and told."""
        found, printed, told = self.end(self.begin(*words, **variables))
        wanted = status if isinstance(status, tuple) else (status,)
        what = f"{words} has ended with {found} instead of {status}: {printed[-500:]}{told[-500:]}"
        expect(found in wanted, what)
        return printed, told

    def json(self, *words, status=0):
        """Returns the objects of a command that prints JSON."""
        printed, _ = self.run(*words, "--json", status=status)
        return [json.loads(line) for line in printed.splitlines()]

    def kill_all(self):
        with self.lock:
            processes = list(self.processes)
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Trial:
    """One server, one place, and all that is tried with them."""

    def __init__(self, name, shards, place, proxy):
        self.name, self.shards, self.place, self.proxy = name, shards, place, proxy
        self.runner = Runner(name.replace(" ", "-"), place.environment)
        self.folder = WORK / self.runner.name
        self.folder.mkdir()
        self.data = self.folder / "data"
        self.dice = random.Random(name)
        self.restores = 0

    def run(self):
        try:
            self.steps()
        finally:
            self.runner.kill_all()

    def step(self, what):
        go_on()
        # In one write, since others print too.
        print(f"==> {self.name}: {what}\n", end="")

    def queue_in(self, client, shard, begin):
        """Returns the name of an empty queue in a shard."""
        for number in range(1_000):
            name = f"{begin}-{number}"
            if int(client.call("PUT", name, "probe")) // SHARD_IDS == shard:
                client.call("POP", name)
                return name
        raise Failure(f"no queue is in shard {shard}")

    # The place.

    def mark_names(self):
        """Returns the names of the marks by number, oldest first."""
        found = {}
        for name in self.place.names("marks/"):
            # In a directory there may be a file that is not complete yet.
            parts = re.fullmatch(r"marks/(\d{9})/(\d{3})", name)
            if parts:
                found[int(parts[1]) * 1_000 + int(parts[2])] = name
        return found

    def mark(self, number, name):
        """Returns a mark as it is written down."""
        mark, _ = json.JSONDecoder().raw_decode(self.place.read(name).decode())
        expect(mark["number"] == number, f"the number of {name}")
        return mark

    def marks(self):
        """Returns the marks of the place by number."""
        return {number: self.mark(number, name) for number, name in self.mark_names().items()}

    def newest_mark(self):
        """Returns the newest mark of the place, or None."""
        names = self.mark_names()
        return self.mark(*max(names.items())) if names else None

    # What a server has, and what is restored.

    def exported(self, server, queue):
        """Returns when each number in a queue was put, as the server tells."""
        words = ["export", queue, "--address", server.resp]
        # A queue that is not there yet has the status 4.
        printed, _ = self.runner.run(*words, status=(0, 4))
        lines = [json.loads(line) for line in printed.splitlines()]
        tasks = [line for line in lines if line["type"] == "task"]
        return {int(task["payload"]): task["put_at"] for task in tasks}

    def restored(self, *words, status=0):
        """Restores into a new directory, and returns it with what is said about it."""
        self.restores += 1
        data = self.folder / f"restored-{self.restores}"
        [said] = self.runner.json("restore", self.place.url, "--data", data, *words, status=status)
        return data, said
