"""The servers that are compared: how each is started, watched, measured and ended.

All have the same durability within a group: `memory` promises nothing, `sync` answers only when
the change is on disk. Each gets the settings that its own documentation recommends for that, and
nothing is tuned for or against any of them; Redis is spared the rewriting of its log.
"""

import json
import os
import resource
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# How long a server may take to start, and a run to end after its planned time.
PATIENCE_S = 30


@dataclass(frozen=True)
class Row:
    """A server with its settings."""

    name: str
    title: str
    # The name that the generator uses.
    kind: str
    # The number of requests of a job.
    requests: int
    # memory, sync, or limit for the echo.
    group: str
    program: str
    # Arguments of the program; {port}, {info_port} and {dir} stand for what is chosen at the start.
    flags: list = field(default_factory=list)
    version_flag: str = "--version"
    has_info: bool = False
    # Whether INFO is asked for at another port than the one that is loaded.
    has_info_port: bool = False

    def is_there(self):
        return shutil.which(self.program) is not None

    def version(self):
        if self.group == "limit":
            return "echo: a bare loop over readiness, one thread"
        output = subprocess.run([self.program, self.version_flag], capture_output=True, text=True)
        return (output.stdout or output.stderr).strip().split(" sha=")[0]


def missing_packages():
    programs = {"redis-server": "redis-server", "beanstalkd": "beanstalkd"}
    return [package for program, package in programs.items() if shutil.which(program) is None]


def rows(pinpriq, generator):
    """All rows in the order of the table."""

    def serve(durability, *doors):
        return ["serve", "--pinpriq", "off", "--http", "off", *doors, "--data", "{dir}",
                "--durability", durability, "--log-level", "warn"]

    def of_pinpriq(durability, done=False):
        flags = serve(durability, "--resp", "127.0.0.1:{port}")
        name, title, requests = "pinpriq", f"**pinpriq**, {durability}", 3
        if done:
            name, title, requests = "pinpriq-done", f"{title}, take with DONE", 2
        return Row(f"{name}-{durability}", title, name, requests, durability, str(pinpriq), flags,
                   has_info=True)

    def of_tubes(durability):
        flags = serve(durability, "--resp", "127.0.0.1:{info_port}",
                      "--beanstalkd", "127.0.0.1:{port}")
        title = f"**pinpriq**, {durability}, beanstalkd door"
        return Row(f"pinpriq-tubes-{durability}", title, "beanstalkd", 3, durability, str(pinpriq),
                   flags, has_info=True, has_info_port=True)

    def of_redis(name, title, kind, requests, group):
        flags = ["--port", "{port}", "--bind", "127.0.0.1", "--dir", "{dir}", "--save", ""]
        flags += ["--appendonly", "yes" if group == "sync" else "no", "--appendfsync", "always"]
        flags += ["--auto-aof-rewrite-percentage", "0", "--loglevel", "warning"]
        return Row(name, title, kind, requests, group, "redis-server", flags)

    beanstalkd = ["-l", "127.0.0.1", "-p", "{port}"]
    return [
        Row("echo", "echo over loopback, the limit", "echo", 3, "limit", str(generator),
            ["echo", "{port}"]),
        of_pinpriq("memory"),
        of_pinpriq("memory", done=True),
        of_tubes("memory"),
        of_redis("redis-pop-memory", "Redis, ZADD and ZPOPMIN, no lease", "redis-pop", 2, "memory"),
        of_redis("redis-lease-memory", "Redis, with leases (Lua)", "redis-lease", 3, "memory"),
        Row("beanstalkd-memory", "beanstalkd", "beanstalkd", 3, "memory", "beanstalkd",
            beanstalkd, "-v"),
        of_pinpriq("sync"),
        of_pinpriq("sync", done=True),
        of_tubes("sync"),
        of_redis("redis-pop-sync", "Redis AOF always, no lease", "redis-pop", 2, "sync"),
        of_redis("redis-lease-sync", "Redis AOF always, with leases (Lua)", "redis-lease", 3,
                 "sync"),
        Row("beanstalkd-sync", "beanstalkd -f0", "beanstalkd", 3, "sync", "beanstalkd",
            [*beanstalkd, "-b", "{dir}", "-f0"], "-v"),
    ]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Running:
    """A server that runs, until `end`."""

    def __init__(self, row, directory):
        self.row = row
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.info_port = free_port() if row.has_info_port else self.port
        # The rate last measured, however short that run was.
        self.last_rate = None
        places = {"port": self.port, "info_port": self.info_port, "dir": self.directory}
        command = [row.program] + [flag.format(**places) for flag in row.flags]
        self.log = open(self.directory.with_suffix(".log"), "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        try:
            self.wait_until_it_listens()
        except BaseException:
            self.end()
            raise

    def wait_until_it_listens(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                pass
            try:
                self.process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"{self.row.name} ended at its start: see {self.log.name}")
        raise RuntimeError(f"{self.row.name} does not listen")

    def cpu_s(self):
        """CPU time of all threads. The name of a process may hold anything but is in brackets."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def resident_bytes(self):
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def syncs(self):
        """How often the journal has been synced, where a server tells."""
        if not self.row.has_info:
            return None
        with socket.create_connection(("127.0.0.1", self.info_port),
                                      timeout=PATIENCE_S) as stream:
            stream.sendall(b"INFO persistence\r\nQUIT\r\n")
            with stream.makefile("rb") as answer:
                facts = dict(line.strip().split(b":", 1) for line in answer if b":" in line)
        return int(facts[b"journal_syncs"])

    def is_too_slow_for(self, load):
        """Whether a run would be over long before each slot came to its second job.

        Jobs that have begun are finished, which would take many times as long as the run.
        """
        slots, seconds = load[0] * load[1], load[2] / 1000
        return self.last_rate is not None and 2 * slots > 5 * seconds * self.last_rate

    def measure(self, generator, load):
        """One run, and what the server spent on it."""
        syncs, cpu_s = self.syncs(), self.cpu_s()
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [str(generator), "run", self.row.kind, str(self.port), *map(str, load)]
        patience = PATIENCE_S + load[2] / 1000
        output = subprocess.run(command, capture_output=True, text=True, timeout=patience)
        if output.returncode != 0:
            raise RuntimeError(f"{self.row.name}: {output.stderr.strip()}")
        result = json.loads(output.stdout)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        generator_s = used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime
        requests = max(result["requests"], 1)
        # Counted in requests, since in a short run many jobs begin and do not end.
        jobs = result["requests_in_time"] / self.row.requests
        self.last_rate = jobs / result["elapsed_ns"] * 1e9
        # If slots did not even reach their second job, the run was mostly puts.
        means_something = result["jobs_in_time"] >= 2 * load[0] * load[1]
        result.update(
            row=self.row.name,
            jobs_per_second=self.last_rate if means_something else None,
            cpu_us_per_request=(self.cpu_s() - cpu_s) / requests * 1e6,
            generator_us_per_request=generator_s / requests * 1e6,
            resident_bytes=self.resident_bytes(),
            syncs=None if syncs is None else self.syncs() - syncs,
        )
        return result

    def end(self):
        """Ends the server and removes what it wrote."""
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
