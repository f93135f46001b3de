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


class Monitor(threading.Condition):
    """A lock, whose holder can wait for a change that another one tells."""

    def wait_for_change(self, seconds: float) -> None:
        """Wait for a change without the lock, at most for so many seconds."""
        self.wait(seconds)

    def tell_change(self) -> None:
        """Wake all that wait for a change."""
        self.notify_all()


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


class Call:
    """A call of a function with an argument.

    What an `async` function returns is run to its end in this thread.
    """

    def __init__(self, function: Callable[..., Any], argument: Callable[[], Any]) -> None:
        self._function = function
        self._argument = argument
        #: What the function has returned.
        self.result: Any = None

    def run(self) -> BaseException | None:
        """Return what was raised, or None."""
        try:
            result = self._function(self._argument())
            if inspect.isawaitable(result):
                result = asyncio.run(_end_of(result))
            check_result(result)
            self.result = result
        except BaseException as error:
            # An end of the program, too, is only that of the job.
            return error
        return None

    def cancel(self) -> None:
        """Leave it alone, since nothing can break off a thread."""

    def ask_to_end(self) -> None:
        """Leave it alone, since it asks its job by itself."""


async def _end_of(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
