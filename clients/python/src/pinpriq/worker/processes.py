"""Runs a worker in several processes, and replaces those that die."""

from __future__ import annotations

import logging
import multiprocessing
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any

from .. import tracing
from .pipe import StopPipe

log = logging.getLogger("pinpriq.worker")

#: How much longer than the grace time a process may take to end, in seconds.
SLACK_S = 5.0

#: The shortest time between two starts of the same process, in seconds.
RESTART_PAUSE_S = 1.0


def run_processes(
    count: int,
    work: Callable[[], bool],
    pipe: Callable[[], AbstractContextManager[StopPipe]],
    grace_s: float,
) -> bool:
    """Run `work` in so many processes until the pipe says that it is time to stop.

    Returns whether all of them ended in time and with success.
    """
    context = multiprocessing.get_context("fork")

    def child() -> None:
        in_time = work()
        tracing.flush()
        sys.exit(0 if in_time else 1)

    def start() -> ForkProcess:
        process = context.Process(target=child)
        process.start()
        return process

    # The processes begin before the pipe, so that the handlers of signals are their own.
    running = [start() for _ in range(count)]
    with pipe() as stop:
        _replace_until(stop, running, start)
        return _stop(running, grace_s)


def _replace_until(
    stop: StopPipe, running: list[ForkProcess], start: Callable[[], ForkProcess]
) -> None:
    """Replace processes that have died, until it is time to stop."""
    started = time.monotonic()
    while True:
        waited: list[Any] = [stop.fileno(), *(process.sentinel for process in running)]
        if stop.fileno() in wait(waited):
            if stop.is_time():
                return
            continue
        pause = RESTART_PAUSE_S - (time.monotonic() - started)
        if pause > 0 and wait([stop.fileno()], pause):
            continue
        started = time.monotonic()
        for index, process in enumerate(running):
            if not process.is_alive():
                log.error("the process %s has died: another one begins", process.pid)
                running[index] = start()


def _stop(running: list[ForkProcess], grace_s: float) -> bool:
    """Tell all processes to stop, and end those that do not in time."""
    until = time.monotonic() + grace_s + SLACK_S
    for process in running:
        process.terminate()
    for process in running:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
    return all(process.exitcode == 0 for process in running)
