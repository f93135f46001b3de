"""Does something again and again in an asyncio task, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..errors import PinpriqError

log = logging.getLogger("pinpriq")


class AsyncHeartbeat:
    """Calls `beat` every `pause_s` seconds. A beat that fails is logged, and the next one comes."""

    def __init__(self, beat: Callable[[], Awaitable[None]], pause_s: float) -> None:
        self._beat = beat
        self._pause_s = pause_s
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin. The first beat comes after a pause."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End, and wait for a beat that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s)
            try:
                await self._beat()
            except PinpriqError as error:
                log.warning("a sign of life failed: %s", error)
            except Exception:
                # Without the next one, leases would end while their jobs run.
                log.exception("a sign of life failed")
