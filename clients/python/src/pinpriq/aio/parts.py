"""What a worker with asyncio is made of. Its twin for threads is `pinpriq.sync.parts`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any


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


async def call(function: Callable[..., Any], argument: Any) -> Any:
    """Call a function. One without `async` runs in a thread, so that it blocks nobody."""
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    result = await asyncio.to_thread(function, argument)
    return await result if inspect.isawaitable(result) else result
