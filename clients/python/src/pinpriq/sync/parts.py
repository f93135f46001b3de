"""What a worker with threads is made of. Its twin for asyncio is `pinpriq.aio.parts`."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any


class Stop(threading.Event):
    """Says whether to stop."""


class Crew:
    """Several runs of one function at the same time, each in a thread."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def start(self, count: int, function: Callable[[int], None]) -> None:
        """Begin so many runs, each with its number."""
        for number in range(count):
            thread = threading.Thread(
                target=function, args=(number,), name=f"pinpriq-worker-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def join(self, seconds: float) -> bool:
        """Wait until all have ended, at most for so many seconds. Returns whether they have."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def abandon(self) -> None:
        """Leave what still runs alone. The threads end with the process."""


def call(function: Callable[..., Any], argument: Any) -> Any:
    """Call a function. What an `async` one returns is run to its end in this thread."""
    result = function(argument)
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    return result
