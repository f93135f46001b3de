"""Workers in processes of their own, started from the command line and stopped by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinpriq import Client, State, Worker
from pinpriq.__main__ import load, main
from servers import Server

TESTS = Path(__file__).resolve().parent


@contextmanager
def started(
    server: Server, place: Path, *arguments: str, app: str = "worker_app:worker"
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, and end it if the block has not."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = os.environ | {
        "PINPRIQ_URL": server.url,
        "WORKER_PLACE": str(place),
        "PYTHONPATH": paths,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "pinpriq", "worker", app, *arguments], env=environment, cwd=place
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def read(path: Path) -> str:
    """Wait until a file is there, and return what it says."""
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} has not come"
        time.sleep(0.01)
    return path.read_text()


@pytest.mark.parametrize(
    ("arguments", "queue"),
    [
        (["--threads", "3"], "jobs"),
        (["--processes", "2", "--threads", "2"], "jobs"),
        (["--asyncio", "--tasks", "5"], "async-jobs"),
        (["--queues", "jobs"], "jobs"),
    ],
)
def test_it_works_until_sigterm(
    client: Client, server: Server, tmp_path: Path, arguments: list[str], queue: str
) -> None:
    with started(server, tmp_path, *arguments) as process:
        for number in range(20):
            client.queue(queue).put(str(number))
        for number in range(20):
            read(tmp_path / f"did-{number}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert client.stats()["present"] == 0


@pytest.mark.parametrize("arguments", [[], ["--processes", "1"], ["--asyncio", "--tasks", "1"]])
def test_sigterm_finishes_what_runs_and_gives_back_the_rest(
    client: Client, server: Server, tmp_path: Path, arguments: list[str]
) -> None:
    queue = client.queue("slow")
    for name in "abc":
        queue.put(name)
    with started(server, tmp_path, "--queues", "slow", *arguments) as process:
        read(tmp_path / "began-a")
        process.send_signal(signal.SIGTERM)
        while queue.stats().counts[State.READY] < 2:
            assert process.poll() is None
        (tmp_path / "go-a").touch()
        assert process.wait(timeout=30) == 0
    assert (tmp_path / "did-a").exists()
    assert [task.value for task in queue.tasks()] == ["b", "c"]
    assert [task.failures for task in queue.tasks()] == [0, 0]


def test_a_job_that_takes_too_long_is_given_back(
    client: Client, server: Server, tmp_path: Path
) -> None:
    put = client.queue("slow").put("a")
    with started(server, tmp_path, app="worker_app:impatient") as process:
        read(tmp_path / "began-a")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 1
    task = client.queue("slow").get(put.id)
    assert task is not None
    assert (task.state, task.failures) == (State.READY, 0)


def test_a_second_signal_ends_it_at_once(client: Client, server: Server, tmp_path: Path) -> None:
    client.queue("slow").put("a")
    client.queue("slow").put("b")
    with started(server, tmp_path, "--queues", "slow") as process:
        read(tmp_path / "began-a")
        process.send_signal(signal.SIGTERM)
        while client.queue("slow").stats().counts[State.READY] < 1:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == -signal.SIGTERM


def test_a_signal_that_another_thread_receives_is_heard(
    client: Client, server: Server, tmp_path: Path
) -> None:
    # As one that comes just before the main thread waits, it interrupts nothing there.
    queue = client.queue("signals")
    with started(server, tmp_path, "--queues", "signals,jobs") as process:
        for name in ("SIGUSR1", "SIGTERM"):
            queue.put(name)
            read(tmp_path / f"did-{name}")
            if name == "SIGUSR1":
                client.queue("jobs").put("after")
                read(tmp_path / "did-after")
        assert process.wait(timeout=30) == 0
    assert client.stats()["present"] == 0


def test_a_process_that_dies_is_replaced(client: Client, server: Server, tmp_path: Path) -> None:
    queue = client.queue("jobs")
    with started(server, tmp_path, "--processes", "1") as process:
        queue.put("first")
        first = int(read(tmp_path / "did-first"))
        assert first != process.pid
        os.kill(first, signal.SIGKILL)
        queue.put("second")
        assert int(read(tmp_path / "did-second")) not in (first, process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_what_a_function_returns_is_the_result(
    client: Client, server: Server, tmp_path: Path
) -> None:
    with started(server, tmp_path, "--processes", "2") as process:
        total, worker = client.queue("sums").put_and_wait([1, 2, 3], 30).result
        assert total == 6
        assert worker != process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_wrong_usage_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["worker", "worker_app:worker", "--threads", "0"],
        ["worker", "worker_app:worker", "--asyncio", "--threads", "2"],
        ["worker", "worker_app:worker", "--tasks", "2"],
        ["worker", "worker_app:worker", "--queues", "nothing"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert "error:" in capsys.readouterr().err
    for place in ("worker_app:nothing", "no_such_module:worker", "worker_app:PLACE"):
        with pytest.raises(SystemExit, match="pinpriq: "):
            load(place)
    assert isinstance(load("worker_app:worker"), Worker)
