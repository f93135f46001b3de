"""What a worker with threads is made of. Its twin for asyncio is `pinpriq.aio.parts`."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..job import check_result


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


def attempt(function: Callable[..., Any], argument: Callable[[], Any]) -> BaseException | None:
    """Call a function with an argument, and return what was raised, or None.

    What an `async` function returns is run to its end in this thread.
    """
    try:
        result = function(argument())
        if inspect.isawaitable(result):
            result = asyncio.run(_end_of(result))
        check_result(result)
    except BaseException as error:
        # An end of the program, too, is only that of the job.
        return error
    return None


async def _end_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
