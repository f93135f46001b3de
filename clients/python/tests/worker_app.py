"""Workers that tests start in processes of their own. They write what they do to files."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

from pinpriq import Worker

PLACE = Path(os.environ.get("WORKER_PLACE", "."))

worker = Worker(os.environ.get("PINPRIQ_URL"), ttr=5, prefetch=4, grace=20)
impatient = Worker(os.environ.get("PINPRIQ_URL"), ttr=30, grace=0.2)


# One that is not for the worker.
signal.signal(signal.SIGUSR1, lambda *_: None)


def note(name: str, text: str) -> None:
    """Write a file in one step."""
    half = PLACE / f".{name}.{os.getpid()}"
    half.write_text(text)
    half.rename(PLACE / name)


@worker.job("jobs")
def work(value: str) -> None:
    note(f"did-{value}", str(os.getpid()))


@worker.job("async-jobs")
async def work_async(value: str) -> None:
    await asyncio.sleep(0)
    note(f"did-{value}", str(os.getpid()))


@worker.job("sums")
def add(numbers: list[int]) -> list[int]:
    return [sum(numbers), os.getpid()]


@worker.job("slow")
def work_slowly(value: str) -> None:
    """Run until the test lets it go on."""
    note(f"began-{value}", str(os.getpid()))
    while not (PLACE / f"go-{value}").exists():
        time.sleep(0.01)
    note(f"did-{value}", str(os.getpid()))


@worker.job("signals")
def hear(name: str) -> None:
    """Have this thread receive a signal, whatever the main thread does."""
    signal.pthread_kill(threading.get_ident(), signal.Signals[name])
    note(f"did-{name}", str(os.getpid()))


@impatient.job("slow")
def work_too_slowly(value: str) -> None:
    work_slowly(value)
