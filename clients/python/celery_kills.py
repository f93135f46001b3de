"""Kills Celery workers and their broker while tasks run, and counts what is lost and done twice.

    celery_kills.py --program PATH --tasks 10000 --worker-kills 20 --broker-kills 5

With `--redis` it does the same once more on Redis with its default settings. The application
acknowledges late, so that a task is not lost with its worker. It ends with status 1 if a task was
lost on pinpriq, or was done twice although neither its worker nor the server was killed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import redis
from celery import Celery

import pinpriq.celery  # noqa: F401
from pinpriq import Client, Disconnected

PRIORITIES = (0, 5, 9)

#: How long a task takes, in seconds.
TASK_S = 0.005

#: How many tasks the producer may be ahead of the workers.
AHEAD_MAX = 1000

#: How long the lease of a killed worker lasts, in seconds.
LEASE_S = 5.0

#: A run is over when nothing has happened for so many seconds, and at the latest after a while.
QUIET_S = 30.0
RUN_MAX_S = 900.0

WORKERS = 2
CONCURRENCY = 2

app = Celery("celery_kills", broker=os.environ.get("KILLS_BROKER", "pinpriq://127.0.0.1:7251"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
)
if app.conf.broker_url.startswith("pinpriq"):
    app.conf.broker_transport_options = {"lease_seconds": LEASE_S}


@app.task(name="work")
def work(number: int) -> None:
    """Note when it begins and ends, under the name of the worker."""
    worker = os.environ["KILLS_WORKER"]
    with open(Path(os.environ["KILLS_PLACE"]) / f"{worker}.{os.getpid()}", "ab", 0) as notes:
        notes.write(f"{number} {worker} begin {time.time()}\n".encode())
        time.sleep(TASK_S)
        notes.write(f"{number} {worker} end {time.time()}\n".encode())


@dataclass
class Note:
    """One run of a task."""

    worker: str
    began: float
    ended: float | None = None


@dataclass
class Notes:
    """What all workers have noted so far."""

    place: Path
    runs: dict[int, list[Note]] = field(default_factory=lambda: defaultdict(list))
    done: set[int] = field(default_factory=set)
    _read: dict[Path, int] = field(default_factory=dict)

    def read(self) -> None:
        """Read what is new."""
        for path in self.place.iterdir():
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                lines = file.read()
            complete = lines[: lines.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(complete)
            for line in complete.decode().splitlines():
                self._take(*line.split())

    def _take(self, number: str, worker: str, what: str, when: str) -> None:
        runs = self.runs[int(number)]
        if what == "begin":
            runs.append(Note(worker, float(when)))
            return
        last = next(run for run in reversed(runs) if run.worker == worker)
        last.ended = float(when)
        self.done.add(int(number))


class Broker:
    """The program that is killed, on one port with one directory."""

    def __init__(self, command: Sequence[str], port: int, log: Path) -> None:
        self._command = command
        self._log = log
        self.port = port
        self.killed_at: list[float] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"the broker did not start: see {self._log}") from None
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Kill it and start it again."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.killed_at.append(time.time())
        self.start()

    def stop(self) -> None:
        """Stop in order."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)


class Workers:
    """The workers, of which each has a name of its own."""

    def __init__(self, url: str, place: Path, log: Path) -> None:
        self._url = url
        self._place = place
        self._log = log
        self._count = 0
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: dict[str, float] = {}

    def start(self) -> None:
        """Start one more."""
        self._count += 1
        name = f"w{self._count}"
        here = Path(__file__).resolve().parent
        environment = os.environ | {
            "KILLS_BROKER": self._url,
            "KILLS_PLACE": str(self._place),
            "KILLS_WORKER": name,
            "PYTHONPATH": os.pathsep.join([str(here), str(here / "src")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with self._log.open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "celery", "-A", "celery_kills", "worker",
                 f"--concurrency={CONCURRENCY}", f"--hostname={name}@kills", "--loglevel=WARNING",
                 "--without-gossip", "--without-mingle"],
                env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill a worker with all its processes."""
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.killed[name] = time.time()

    def stop(self) -> None:
        """Stop all in order, and kill those that do not."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.running.clear()


class Producer:
    """Sends the tasks, a bounded number ahead of the workers."""

    def __init__(self, tasks: int, notes: Notes) -> None:
        self._tasks = tasks
        self._notes = notes
        self.sent = 0
        self.errors = 0
        self.given_up = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        for number in range(self._tasks):
            while self.sent - len(self._notes.done) > AHEAD_MAX and not self.given_up.is_set():
                time.sleep(0.05)
            while not self.given_up.is_set():
                try:
                    work.apply_async((number,), priority=PRIORITIES[number % len(PRIORITIES)])
                except Exception:
                    # The broker is down. A program sends again what was not accepted.
                    self.errors += 1
                    time.sleep(0.1)
                else:
                    self.sent += 1
                    break


@dataclass
class Result:
    """What one run came to."""

    lost: int
    twice_worker: int
    twice_broker: int
    twice_unexplained: int


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def cause_of(again: Note, before: Note, workers: Workers, broker: Broker) -> str:
    """Tell why a task was run again: its worker was killed, the broker was, or neither."""
    killed_at = workers.killed.get(before.worker)
    if killed_at is not None and killed_at <= again.began + 1:
        return "worker"
    if any(before.began - 1 <= moment <= again.began for moment in broker.killed_at):
        return "broker"
    return "unexplained"


def run(name: str, url: str, broker: Broker, options: argparse.Namespace, place: Path) -> Result:
    """Run the application once, with kills in between, and print what came of it."""
    dice = random.Random(options.seed)
    notes_place = place / "notes"
    notes_place.mkdir()
    notes = Notes(notes_place)
    workers = Workers(url, notes_place, place / "workers.log")
    app.conf.broker_url = url
    app.conf.broker_transport_options = (
        {"lease_seconds": LEASE_S} if url.startswith("pinpriq") else {}
    )
    producer = Producer(options.tasks, notes)
    kills = ["worker"] * options.worker_kills + ["broker"] * options.broker_kills
    dice.shuffle(kills)
    step = options.tasks / (len(kills) + 1)
    started = changed = time.monotonic()
    done = 0
    try:
        for _ in range(WORKERS):
            workers.start()
        producer.thread.start()
        while len(notes.done) < options.tasks:
            time.sleep(0.05)
            notes.read()
            if len(notes.done) != done:
                done, changed = len(notes.done), time.monotonic()
            progress = (options.worker_kills + options.broker_kills - len(kills) + 1) * step
            quiet = time.monotonic() - changed
            # What was lost must not hold up the kills for ever.
            if kills and (done >= progress or quiet > QUIET_S / 3):
                changed = time.monotonic()
                if kills.pop() == "broker":
                    broker.kill()
                else:
                    workers.kill(dice.choice(list(workers.running)))
                    workers.start()
            elif not kills and quiet > QUIET_S:
                break
            if time.monotonic() - started > RUN_MAX_S:
                print(f"{name}: the time of {RUN_MAX_S:.0f} s is over")
                break
        seconds = time.monotonic() - started
        held = 0
        if url.startswith("pinpriq"):
            await_empty(url)
        else:
            held = held_by_redis(broker.port)
    finally:
        producer.given_up.set()
        workers.stop()
        producer.thread.join(timeout=30)
    notes.read()
    return report(name, notes, workers, broker, producer, seconds, held)


def await_empty(url: str) -> None:
    """Wait until no task is left or taken, so that late second runs are counted."""
    until = time.monotonic() + 2 * LEASE_S + 10
    with Client(url) as client:
        while time.monotonic() < until:
            try:
                if client.queue("celery").stats()["present"] == 0:
                    return
            except Disconnected:
                pass
            time.sleep(0.1)


def held_by_redis(port: int) -> int:
    """Return how many messages Redis still has, which come again after the visibility timeout."""
    with redis.Redis(port=port, decode_responses=True) as client:
        lists = [key for key in client.keys("celery*") if client.type(key) == "list"]
        return int(client.hlen("unacked")) + sum(int(client.llen(key)) for key in lists)


def report(
    name: str,
    notes: Notes,
    workers: Workers,
    broker: Broker,
    producer: Producer,
    seconds: float,
    held: int,
) -> Result:
    """Count, and print the counts."""
    causes = {"worker": 0, "broker": 0, "unexplained": 0}
    for runs in notes.runs.values():
        runs.sort(key=lambda run: run.began)
        for before, again in itertools.pairwise(runs):
            causes[cause_of(again, before, workers, broker)] += 1
    not_done = producer.sent - len(notes.done)
    # A message that is held may be one of a task that was done before the broker forgot that.
    lost = max(0, not_done - held)
    done_by_priority = ", ".join(
        f"{sum(PRIORITIES[number % len(PRIORITIES)] == priority for number in notes.done)} "
        f"of priority {priority}"
        for priority in PRIORITIES
    )
    print(
        f"{name}: {producer.sent} tasks accepted, {len(notes.done)} done in {seconds:.0f} s "
        f"({done_by_priority})"
    )
    print(
        f"{name}: {len(workers.killed)} workers and {len(broker.killed_at)} times the broker "
        f"killed, {producer.errors} sends refused and sent again"
    )
    print(
        f"{name}: {not_done} not done, {held} still held by the broker for later, "
        f"so at least {lost} LOST"
        if held
        else f"{name}: {lost} LOST"
    )
    print(
        f"{name}: {sum(causes.values())} run again: {causes['worker']} after their worker was "
        f"killed, {causes['broker']} after the broker was, {causes['unexplained']} after neither"
    )
    sys.stdout.flush()
    return Result(lost, causes["worker"], causes["broker"], causes["unexplained"])


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--program", required=True, help="the path of the pinpriq program")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--worker-kills", type=int, default=20)
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--redis", action="store_true", help="do the same on Redis afterwards")
    parser.add_argument("--redis-server", default="redis-server", help="the program of Redis")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.redis and shutil.which(options.redis_server) is None:
        parser.error(f"there is no {options.redis_server}: install it, or name it")
    with tempfile.TemporaryDirectory(prefix="celery-kills-") as directory:
        place = Path(directory)
        port = free_port()
        command = [options.program, "serve", "--data", str(place / "data"), "--pinpriq", "off",
                   "--http", "off", "--resp", f"127.0.0.1:{port}"]  # fmt: skip
        result = run_on("pinpriq", f"pinpriq://127.0.0.1:{port}", command, port, options, place)
        if options.redis:
            port = free_port()
            (place / "dump").mkdir()
            command = [options.redis_server, "--port", str(port), "--dir", str(place / "dump")]
            run_on("redis", f"redis://127.0.0.1:{port}/0", command, port, options, place)
    failed = result.lost or result.twice_unexplained
    print("celery_kills: FAILED" if failed else "celery_kills: PASSED")
    return 1 if failed else 0


def run_on(
    name: str, url: str, command: Sequence[str], port: int, options: argparse.Namespace, place: Path
) -> Result:
    """Run the application on one broker."""
    own = place / name
    own.mkdir()
    broker = Broker(command, port, own / "broker.log")
    broker.start()
    try:
        # Connections of a run before must not be used.
        app._pool = None
        app.amqp._producer_pool = None
        return run(name, url, broker, options, own)
    finally:
        broker.stop()


if __name__ == "__main__":
    # Workers know the application under the name of its module.
    from celery_kills import main as main_of_module

    sys.exit(main_of_module())
