#!/usr/bin/env python3
"""Plays conversations against servers that speak beanstalkd's protocol.

    beanstalkd_play.py check --beanstalkd PATH|--pinpriq PATH [FILES...]
    beanstalkd_play.py record --beanstalkd PATH [FILES...]

`check` compares the replies of the server with those in the files, and exits 1 if one differs.
`record` writes the replies of a real beanstalkd 1.13 into the files. Without FILES it is all of
them. crates/pinpriq-server/testdata/beanstalkd/README.md describes the format. Each conversation
gets a server of its own, and many are played at once, since time passes in some. Needs Linux: what
a server is doing is read from /proc, because a connection to ask would be counted.

It does not judge a reply: a difference in one byte is a difference.
"""

import argparse
import concurrent.futures
import difflib
import fcntl
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVERSATIONS = ROOT / "crates/pinpriq-server/testdata/beanstalkd"

# How long a reply, a start or an end may take before it counts as missing.
PATIENCE = 15.0
# What a server gets to digest a step without an answer, at least and at most.
SETTLE_LEAST = 0.02
SETTLE_MOST = 2.0
# Below the ports that the kernel gives to clients.
PORTS = range(12_000, 32_000)
# The lines of `stats` that depend on the machine, on the process or on how much is logged.
MASKED = {
    b"pid", b"version", b"rusage-utime", b"rusage-stime", b"uptime", b"binlog-max-size", b"id",
    b"hostname", b"os", b"platform",
}
# A run of one character that is longer than this is written as a count.
RUN_MOST = 40
# The last line of a map in a file that leaves out some of its lines.
ELLIPSIS = "…"
# How wide a line of a file may be.
WIDTH = 100


class Trouble(Exception):
    """A conversation cannot go on as it is written."""


# Servers.


def beanstalkd_command(path, port, data):
    """How a real beanstalkd is started, without a binlog."""
    return [path, "-l", "127.0.0.1", "-p", str(port)]


def pinpriq_command(path, port, data):
    """How pinpriq is started with nothing but the door for clients of beanstalkd."""
    return [
        path, "serve", "--data", data, "--durability", "memory",
        "--pinpriq", "off", "--resp", "off", "--http", "off",
        "--beanstalkd", f"127.0.0.1:{port}",
    ]  # fmt: skip


COMMANDS = {"B": beanstalkd_command, "P": pinpriq_command}

# Several programs may play at once, so each begins elsewhere.
candidates = itertools.cycle(
    [*PORTS[os.getpid() * 37 % len(PORTS) :], *PORTS[: os.getpid() * 37 % len(PORTS)]]
)


def begin_elsewhere(number):
    """Makes a process that was forked begin at another port than its siblings."""
    for _ in range(number % len(PORTS)):
        next(candidates)


class Server:
    """A server that has just been started. `kind` is B for beanstalkd and P for pinpriq."""

    def __init__(self, kind, path):
        self.kind = kind
        # What the kernel tells about each of its threads.
        self.threads = {}
        for _ in range(50):
            self.port = next(candidates)
            self.data = tempfile.mkdtemp(prefix="beanstalkd-play-")
            self.process = subprocess.Popen(
                COMMANDS[kind](str(path), self.port, self.data),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if self.has_begun():
                return
            status = self.process.poll()
            self.stop()
        raise Trouble(f"{path} does not start: {status}")

    def has_begun(self):
        """Waits until the port is this server's, without a connection that it would count."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            if self.owns(listener_of(self.port)):
                return True
            time.sleep(0.002)
        return False

    def open_files(self):
        try:
            return set(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return set()

    def owns(self, inode):
        try:
            links = {os.readlink(f"/proc/{self.process.pid}/fd/{it}") for it in self.open_files()}
        except OSError:
            return False
        return f"socket:[{inode}]" in links

    def activity(self):
        """Returns how often its threads have run, or None if one is running."""
        turns = {}
        try:
            for thread in os.listdir(f"/proc/{self.process.pid}/task"):
                if thread not in self.threads:
                    directory = f"/proc/{self.process.pid}/task/{thread}"
                    names = f"{directory}/stat", f"{directory}/schedstat"
                    self.threads[thread] = [os.open(name, os.O_RDONLY) for name in names]
                state, schedule = (os.pread(it, 400, 0) for it in self.threads[thread])
                if state.rpartition(b") ")[2][:1] != b"S":
                    return None
                turns[thread] = schedule.split()[2]
        except OSError:
            return None
        return turns

    def settle(self, least=SETTLE_LEAST):
        """Waits until the server has nothing left to do before its next deadline."""
        time.sleep(least)
        until = time.monotonic() + SETTLE_MOST
        before = self.activity()
        while time.monotonic() < until:
            time.sleep(0.0003)
            now = self.activity()
            if now is not None and now == before:
                return
            before = now

    def drain(self):
        # One that is just starting would be ended by the signal.
        number = signal.SIGUSR1 if self.kind == "B" else signal.SIGUSR2
        wait_until(lambda: self.catches(number))
        self.process.send_signal(number)
        self.settle()

    def catches(self, number):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            caught = next(int(it.split()[1], 16) for it in file if it.startswith("SigCgt:"))
        return bool(caught >> (number - 1) & 1)

    def stop(self):
        self.process.kill()
        self.process.wait()
        for file in [file for files in self.threads.values() for file in files]:
            os.close(file)
        self.threads = {}
        shutil.rmtree(self.data, ignore_errors=True)


def listener_of(port):
    """Returns the inode of the socket that listens at a port of the loopback interface."""
    wanted = f"0100007F:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as file:
        next(file)
        for line in file:
            fields = line.split()
            # Those that listen come first.
            if fields[3] != "0A":
                return None
            if fields[1] == wanted:
                return fields[9]
    return None


def wait_until(holds):
    until = time.monotonic() + SETTLE_MOST
    while not holds() and time.monotonic() < until:
        time.sleep(0.0002)


# Clients.


class Client:
    """One connection. It reads replies: a line, and the body that some lines announce."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.unsent = b""
        self.finished = False
        # Whether it has sent whole lines only, and has read all replies.
        self.is_idle = False

    def send(self, data):
        data, self.unsent = self.unsent + data, b""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Trouble(f"cannot send: {error}") from None

    def has_delivered(self):
        """Whether the kernel has brought all to the server's side."""
        return struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, b"\0" * 4))[0] == 0

    def close(self, server):
        """Closes the connection and waits until the server has closed its side."""
        before = server.open_files()
        self.socket.close()
        wait_until(lambda: before - server.open_files())

    def receive_more(self):
        """Returns whether the server has sent more instead of closing."""
        try:
            data = self.socket.recv(1 << 17)
        except TimeoutError:
            raise Trouble(f"no reply, only {self.received!r}") from None
        except ConnectionError:
            data = b""
        self.received += data
        return bool(data)

    def take_until(self, length):
        while len(self.received) < length:
            if not self.receive_more():
                raise Trouble(f"the server has closed after {self.received!r}")
        taken, self.received = self.received[:length], self.received[length:]
        return taken

    def reply(self):
        """Reads one reply and returns its line without CRLF and its body with CRLF, or None."""
        while b"\r\n" not in self.received:
            if not self.receive_more():
                raise Trouble(f"the server has closed after {self.received!r}")
        line = self.take_until(self.received.index(b"\r\n") + 2)[:-2]
        words = line.split(b" ")
        if words[0] not in (b"RESERVED", b"FOUND", b"OK"):
            return line, None
        if not words[-1].isdigit():
            raise Trouble(f"no length in {line!r}")
        return line, self.take_until(int(words[-1]) + 2)

    def pending(self):
        """Returns what has arrived without a request to read it, and whether it is the end."""
        self.socket.setblocking(False)
        ended = False
        try:
            while data := self.socket.recv(1 << 17):
                self.received += data
            ended = True
        except BlockingIOError:
            pass
        except ConnectionError:
            ended = True
        finally:
            self.socket.settimeout(PATIENCE)
        return self.received, ended

    def replies_until_closed(self):
        while self.receive_more():
            pass
        replies = []
        while self.received:
            replies.append(self.reply())
        return replies

    def abandon(self):
        """Leaves no socket behind that waits for its time."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# How bytes are written.


def shown(data):
    """Writes a line of a reply. What is between two lines in a file, two spaces, is not in it."""
    text = ""
    for byte, run in itertools.groupby(data):
        count = len(list(run))
        if byte == 0x5C:
            text += "\\\\" * count
        elif not 0x20 <= byte < 0x7F:
            text += f"\\x{byte:02x}" * count
        elif count > RUN_MOST and chr(byte) not in "*{}":
            text += f"\\{{{chr(byte)}*{count}}}"
        else:
            text += chr(byte) * count
    while "  " in text:
        text = text.replace("  ", " \\x20")
    return text[:-1] + "\\x20" if text.endswith(" ") else text or '""'


def shown_reply(reply):
    """Writes a reply as the lines of a file, with what depends on the machine masked."""
    line, body = reply
    if body is None:
        return [shown(line)]
    if not body.endswith(b"\r\n"):
        raise Trouble(f"the body does not end where {line!r} says: {body!r}")
    body = body[:-2]
    if not line.startswith(b"OK "):
        return [shown(line), shown(body)]
    if not body.endswith(b"\n"):
        raise Trouble(f"the last line of the body does not end: {body!r}")
    lines = body[:-1].split(b"\n")
    if any(it.startswith(b"current-connections: ") for it in lines):
        line = b"OK *"
        lines = [
            key + b": *" if (key := it.partition(b": ")[0]) in MASKED else it for it in lines
        ]
    return [shown(it) for it in [line, *lines]]


def quoted(data):
    """Writes bytes to be sent, between quotation marks."""
    return '"' + shown(data).replace('"', '\\"') + '"' if data else '""'


def written_line(data):
    """Writes a line to be sent, without its CRLF."""
    plain = all(0x20 <= byte < 0x7F for byte in data) and not data.startswith(b'"')
    if plain and data and not {0x22, 0x5C} & set(data):
        text = data.decode()
        if shown(data) == text:
            return text
    return quoted(data)


ESCAPE = re.compile(rb'\\(?:([rnt\\"])|x([0-9a-f]{2})|\{([^*{}\\]+)\*(\d+)\})|(["\\])|([^"\\]+)')
ESCAPED = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}


def unquoted(text):
    """Returns the bytes that a text between quotation marks stands for."""
    data = text.encode()
    if len(data) < 2 or data[:1] != b'"' or data[-1:] != b'"':
        raise Trouble(f"quotation marks are missing: {text}")
    data, at, result = data[1:-1], 0, b""
    while at < len(data):
        match = ESCAPE.match(data, at)
        if match is None or match[5]:
            raise Trouble(f"no such escape: {text}")
        letter, code, run, count, _, plain = match.groups()
        if letter:
            result += ESCAPED[letter]
        elif code:
            result += bytes([int(code, 16)])
        elif run:
            result += run * int(count)
        else:
            result += plain
        at = match.end()
    return result


LINE = re.compile(r'("(?:[^"\\]|\\.)*"|.+?)(?:  |$)')


def commands(text):
    """Returns the bytes of lines with two spaces between them."""
    return b"".join(command(line) for line in LINE.findall(text))


def command(text):
    """Returns the bytes of a line: as they are, or between quotation marks."""
    if text.startswith('"'):
        return unquoted(text) + b"\r\n"
    if "\\" in text or '"' in text:
        raise Trouble("escapes and quotation marks belong between quotation marks")
    return text.encode() + b"\r\n"


# Files.


class Step:
    """What a client does, or what happens, and the replies that are expected of it."""

    def __init__(self, number, text):
        self.number = number
        self.text, _, replies = text.partition(" → ")
        self.expected = {"<": replies.split("  ") if replies else [], "B": [], "P": []}
        match = re.fullmatch(r"([a-z])([>|=!<\-/.X])(?: (.*))?", self.text)
        if match:
            self.client, self.kind, self.words = match[1], match[2], match[3] or ""
        elif match := re.fullmatch(r"([!+]) (\w+)", text):
            self.client, self.kind, self.words = None, match[1], match[2]
        else:
            raise Trouble(f"line {number} is no step: {text}")

    def replies_of(self, server):
        if self.differs():
            return self.expected[server]
        return self.expected["<"]

    def differs(self):
        """Whether the two servers reply differently on purpose."""
        return bool(self.expected["B"] or self.expected["P"])

    def written(self):
        """Returns its lines. Replies stand behind it if there is room, and else below it."""
        replies = "  ".join(self.expected["<"])
        beside = f"{self.text} → {replies}"
        if not self.differs() and replies and len(beside) <= WIDTH:
            return [beside]
        lines = [self.text]
        for mark in "B P".split() if self.differs() else "<":
            for at, line in enumerate(self.expected[mark]):
                if at and len(lines[-1]) + 2 + len(line) <= WIDTH:
                    lines[-1] += "  " + line
                else:
                    lines.append(f"{mark} {line}")
        return lines


class Conversation:
    def __init__(self, file, number, name):
        self.file, self.number, self.name = file, number, name
        # Steps and, between them, comments and empty lines as they are.
        self.parts = []

    def steps(self):
        return [part for part in self.parts if isinstance(part, Step)]

    def is_exception(self):
        """Whether it shows something that pinpriq deliberately does not copy."""
        return any(step.differs() for step in self.steps())


class File:
    def __init__(self, path):
        self.path = path
        self.preface, self.conversations = [], []
        parts = self.preface
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("== "):
                self.conversations.append(Conversation(self, number, line[3:]))
                parts = self.conversations[-1].parts
            elif not line or line.startswith("#"):
                parts.append(line)
            elif match := re.fullmatch(r"([<BP]) (.*)", line):
                steps = [part for part in parts if isinstance(part, Step)]
                if not steps:
                    raise Trouble(f"{path}:{number}: a reply to nothing")
                steps[-1].expected[match[1]] += match[2].split("  ")
            elif parts is self.preface:
                raise Trouble(f"{path}:{number}: a step before the first conversation")
            else:
                parts.append(Step(number, line))
        for conversation in self.conversations:
            for step in conversation.steps():
                if step.differs() and step.expected["<"]:
                    raise Trouble(f"{path}:{step.number}: either `<`, or `B` and `P`")

    def write(self):
        lines = list(self.preface)
        for conversation in self.conversations:
            lines.append(f"== {conversation.name}")
            for part in conversation.parts:
                lines += part.written() if isinstance(part, Step) else [part]
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# Playing.


class Play:
    """A conversation with a server that is there for nothing else."""

    def __init__(self, server, reminding=True):
        self.server = server
        self.reminding = reminding and server.kind == "B"
        self.clients = {}

    def client(self, name):
        if name not in self.clients:
            self.clients[name] = Client(self.server.port)
        return self.clients[name]

    def take(self, step):
        """Plays one step and returns the lines of the replies that it reads, or None."""
        kind, words = step.kind, step.words
        if step.client is None:
            if kind == "+":
                time.sleep(int(words) / 1000)
                self.remind()
            elif words == "drain":
                self.server.drain()
            else:
                raise Trouble(f"no action is called {words}")
            return None
        client = self.client(step.client)
        if client.unsent and kind not in ">=!|":
            raise Trouble("what was sent with the next write is not sent yet")
        client.is_idle = kind in "><" or client.is_idle and kind == "-"
        if kind == "|":
            client.unsent += commands(words)
        elif kind == ">":
            client.send(commands(words))
            return shown_reply(client.reply())
        elif kind == "<":
            return [line for _ in range(int(words or 1)) for line in shown_reply(client.reply())]
        elif kind == "=":
            client.send(unquoted(words))
            self.settle(client)
        elif kind == "!":
            client.send(commands(words))
            self.expect_nothing(client)
        elif kind == "-":
            self.expect_nothing(client)
        elif kind == "/":
            client.socket.shutdown(socket.SHUT_WR)
            client.finished = True
            self.settle(client)
        elif kind == ".":
            replies = client.replies_until_closed()
            del self.clients[step.client]
            client.socket.close()
            return [line for reply in replies for line in shown_reply(reply)]
        elif kind == "X":
            del self.clients[step.client]
            client.close(self.server)
            self.server.settle()
        return None

    def remind(self):
        """Makes a real beanstalkd look at the times to run that have ended.

        Where it looks in the very microsecond in which one ends, it forgets the connection until
        the next reply to it. That happens to one in ten. An empty line is replied to and counted
        nowhere. Conversations that show such defects get no reminder.
        """
        if not self.reminding:
            return
        for client in self.clients.values():
            if client.is_idle and client.pending() == (b"", False):
                client.send(b"\r\n")
                if client.reply() != (b"UNKNOWN_COMMAND", None):
                    raise Trouble("beanstalkd cannot be reminded")

    def settle(self, client):
        """Waits until what a client has sent is there, and the server is done with it."""
        wait_until(client.has_delivered)
        self.server.settle()

    def expect_nothing(self, client):
        self.settle(client)
        received, ended = client.pending()
        if received:
            raise Trouble(f"it has been sent {received!r}")
        if ended and not client.finished:
            raise Trouble("the server has closed")

    def finish(self):
        """At the end every client has read all that was sent to it."""
        for name, client in self.clients.items():
            try:
                self.expect_nothing(client)
            except Trouble as trouble:
                raise Trouble(f"at the end, client {name}: {trouble}") from None

    def abandon(self):
        for client in self.clients.values():
            client.abandon()


def play(conversation, kind, path):
    """Returns the replies of each step, and what went wrong, if anything did."""
    replies = {}
    step = None
    try:
        server = Server(kind, path)
    except Trouble as trouble:
        return replies, str(trouble)
    playing = Play(server, reminding=not conversation.is_exception())
    try:
        for step in conversation.steps():
            lines = playing.take(step)
            replies[step] = lines or []
        step = None
        playing.finish()
    except (Trouble, OSError, ValueError) as trouble:
        at = f"line {step.number}, {step.text}: " if step else ""
        return replies, at + str(trouble)
    finally:
        playing.abandon()
        server.stop()
    return replies, None


def key(line):
    """Returns the key of a line of a map, or None. A map begins with a line of hyphens."""
    return line if line == "---" else line.partition(": ")[0] if ": " in line else None


def shortened(expected, got):
    """Leaves out of the maps in a reply what the file leaves out of them."""
    got, short = list(got), []
    for at, line in enumerate(expected):
        after_map = next((it for it in expected[at:] if key(it) is None), None)
        while after_map == ELLIPSIS and got and key(got[0]) not in (None, key(line)):
            del got[0]
        if line == ELLIPSIS:
            short.append(line)
        elif got:
            short.append(got.pop(0))
    return short + got


def differences(conversation, replies, kind):
    """Describes each step with other replies than the file has for this server."""
    found = []
    for step, got in replies.items():
        expected = step.replies_of(kind)
        got = shortened(expected, got)
        if got != expected:
            lines = difflib.ndiff(expected, got)
            told = [f"    {line}" for line in lines if not line.startswith("?")]
            found.append("\n".join([f"  line {step.number}: {step.text}", *told]))
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["check", "record"])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--beanstalkd", metavar="PATH", help="a real beanstalkd 1.13")
    which.add_argument("--pinpriq", metavar="PATH", help="a pinpriq with this door")
    parser.add_argument("--workers", type=int, default=16, help="conversations at a time")
    parser.add_argument("--only", default="", help="conversations with this in their name")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    chosen = parser.parse_intermixed_args()
    if chosen.action == "record" and not chosen.beanstalkd:
        parser.error("what is right is recorded from a real beanstalkd")
    return chosen


def main():
    chosen = arguments()
    kind, path = ("B", chosen.beanstalkd) if chosen.beanstalkd else ("P", chosen.pinpriq)
    try:
        files = [File(it) for it in chosen.files or sorted(CONVERSATIONS.glob("*.txt"))]
    except Trouble as trouble:
        sys.exit(str(trouble))
    conversations = [
        it for file in files for it in file.conversations if chosen.only in it.name
    ]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(chosen.workers) as pool:
        results = pool.map(lambda it: play(it, kind, path), conversations)
        for conversation, (replies, trouble) in zip(conversations, results, strict=True):
            told = [f"  {trouble}"] if trouble else []
            if chosen.action == "check":
                told = differences(conversation, replies, kind) + told
            elif not trouble:
                for step, lines in replies.items():
                    mark = "B" if step.differs() else "<"
                    step.expected[mark] = shortened(step.expected[mark], lines)
            if told:
                failed += 1
                file = conversation.file.path
                print(f"{file}:{conversation.number}: {conversation.name}", *told, sep="\n")
    if chosen.action == "record":
        for file in files:
            file.write()
        print(f"{len(conversations)} conversations, {failed} could not be recorded")
    else:
        print(f"{len(conversations)} conversations, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
