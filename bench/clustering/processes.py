"""Processes that a measurement starts, what they spend, and how they end."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# How long anything may take to start.
PATIENCE_S = 120


class Trouble(Exception):
    """Why something could not be measured."""


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def await_that(what, is_so, every_s=0.02, patience_s=PATIENCE_S):
    """Asks until something is so."""
    until, pause = time.monotonic() + patience_s, threading.Event()
    while not is_so():
        if time.monotonic() > until:
            raise Trouble(f"after {patience_s} s: {what}")
        pause.wait(every_s)


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Processes:
    """The processes of one measurement with their directory. They end when the block ends."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="pinpriq-clusters-"))
        # PostgreSQL runs as another user.
        self.directory.chmod(0o755)
        self.by_name, self.kinds = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.by_name)):
            self.kill(name)
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self, kind, name, command, environment=None):
        """Starts a process. What is spent is reported for each kind."""
        inherited = {it: os.environ[it] for it in os.environ if not it.startswith("PINPRIQ_")}
        with open(self.directory / f"{name}.log", "ab") as log:
            self.by_name[name] = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**inherited, **(environment or {})}, cwd=self.directory,
            )
        self.kinds[name] = kind

    def await_that(self, what, is_so, **limits):
        """Asks until something is so, as long as all processes run."""

        def is_so_yet():
            for name, process in self.by_name.items():
                if process.poll() is not None:
                    raise Trouble(f"{name} has ended with {process.returncode}: {self.log(name)}")
            return is_so()

        try:
            await_that(what, is_so_yet, **limits)
        except Trouble as trouble:
            logs = "".join(f"\n{name}: {self.log(name)}" for name in self.by_name)
            raise Trouble(f"{trouble}{logs}") from None

    def log(self, name):
        text = (self.directory / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-8:])

    def signal(self, name, number):
        self.by_name[name].send_signal(number)

    def kill(self, name):
        """Ends a process and those that it has started, at once. Everything is thrown away."""
        process = self.by_name.pop(name)
        family = descendants(process.pid, stats())
        process.kill()
        process.wait()
        for pid in family[1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def forget(self, name):
        """Notes that a process has ended, as it should."""
        self.by_name.pop(name).wait()

    def cpu_s(self):
        """The processor time of each kind so far, in seconds."""
        spent, found = {}, stats()
        for name, process in self.by_name.items():
            family = descendants(process.pid, found)
            seconds = sum(found[pid][1] for pid in family if pid in found)
            spent[self.kinds[name]] = spent.get(self.kinds[name], 0) + seconds
        return spent

    def threads_cpu_s(self, name):
        """The processor time of each kind of thread of a process, in seconds."""
        spent = {}
        for thread in Path(f"/proc/{self.by_name[name].pid}/task").iterdir():
            title, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
            kind = title.rstrip("0123456789-")
            seconds = sum(int(field) for field in rest.split()[11:13]) / TICKS_PER_SECOND
            spent[kind] = spent.get(kind, 0) + seconds
        return spent


def stats():
    """Of each process its parent, and its processor time with that of children that have ended."""
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            # The name of a process may hold anything but is in brackets.
            fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks = sum(int(field) for field in fields[11:15])
        found[int(entry.name)] = (int(fields[1]), ticks / TICKS_PER_SECOND)
    return found


def descendants(root, found):
    """A process and everything that comes from it."""
    family, grown = [root], True
    while grown:
        more = [pid for pid, (parent, _) in found.items() if parent in family and pid not in family]
        family += more
        grown = bool(more)
    return family


def spent_since(before, after):
    return {kind: after[kind] - before.get(kind, 0) for kind in after}
