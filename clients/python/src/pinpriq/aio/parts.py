"""What a worker with asyncio is made of. Its twin for threads is `pinpriq.sync.parts`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ..job import check_result

#: How long a job may take to end that is broken off, in seconds.
CANCEL_S = 1.0


class AsyncStop:
    """Says whether to stop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Say that it is time."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether it is time."""
        return self._event.is_set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is time, at most for so many seconds. Returns whether it is."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        return True


class AsyncMonitor(asyncio.Condition):
    """A lock, whose holder can wait for a change that another one tells."""

    async def wait_for_change(self, seconds: float) -> None:
        """Wait for a change without the lock, at most for so many seconds."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.wait(), seconds)

    def tell_change(self) -> None:
        """Wake all that wait for a change."""
        self.notify_all()


class AsyncCrew:
    """Several runs of one function at the same time."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, count: int, function: Callable[[int], Awaitable[None]]) -> None:
        """Begin so many runs, each with its number."""

        async def run(number: int) -> None:
            await function(number)

        self._tasks = [asyncio.create_task(run(number)) for number in range(count)]

    async def join(self, seconds: float) -> bool:
        """Wait until all have ended, at most for so many seconds. Returns whether they have."""
        _, running = await asyncio.wait(self._tasks, timeout=seconds)
        return not running

    async def abandon(self) -> None:
        """Break off what still runs. A function in a thread goes on by itself."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class AsyncCall:
    """A call of a function with an argument.

    A function without `async` runs in a thread, so that it blocks no other.
    """

    def __init__(self, function: Callable[..., Any], argument: Callable[[], Any]) -> None:
        self._function = function
        self._argument = argument
        #: What the function has returned.
        self.result: Any = None
        self._job: asyncio.Task[BaseException | None] | None = None
        self._in_thread = False

    async def run(self) -> BaseException | None:
        """Return what was raised, or None.

        It has an asyncio task of its own, so only a cancellation of this call is raised, and not
        one inside of the function.
        """
        job = self._job = asyncio.create_task(self._attempt())
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError as error:
            if job.cancelled():
                return error
            job.cancel()
            # It may have something to put in order.
            await asyncio.wait([job], timeout=CANCEL_S)
            raise

    def cancel(self) -> None:
        """Break it off. A function in a thread goes on by itself."""
        if self._job is not None:
            self._job.cancel()

    def ask_to_end(self) -> None:
        """Break it off, except in a thread, whose end is waited for."""
        if not self._in_thread:
            self.cancel()

    async def _attempt(self) -> BaseException | None:
        function, argument = self._function, self._argument
        try:
            if inspect.iscoroutinefunction(function):
                result = await function(argument())
            else:
                # An exception must not come through a future, which refuses some.
                self._in_thread = True
                result, error = await asyncio.to_thread(_call, function, argument)
                self._in_thread = False
                if error is not None:
                    return error
                if inspect.isawaitable(result):
                    result = await result
            check_result(result)
            self.result = result
        except BaseException as error:
            # An end of the program, too, is only that of the job.
            return error
        return None


def _call(
    function: Callable[..., Any], argument: Callable[[], Any]
) -> tuple[Any, BaseException | None]:
    try:
        return function(argument()), None
    except BaseException as error:
        return None, error
