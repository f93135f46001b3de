"""Pools and connections of redis-py with asyncio. The twin without is `pinpriq.sync.pools`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry as Retry
from redis.backoff import NoBackoff

from .. import attempts
from ..attempts import BROKEN, UNDO_S
from ..options import Options, check_pool
from ..requests.base import Word

#: What breaks off a call that must come to its end.
CANCELLED: tuple[type[BaseException], ...] = (asyncio.CancelledError,)


class AsyncPools:
    """The pools of one client, one for each server.

    Each event loop has connections of its own, since those of one cannot be used in another.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pools: dict[asyncio.AbstractEventLoop, list[Any]] = {}
        for pool in self._make():
            check_pool(pool)

    def _make(self) -> list[Any]:
        # The link sends requests again, since it knows which of them it may.
        return [
            redis.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **self._options.redis)
            for url in self._options.urls
        ]

    def here(self) -> list[Any]:
        """Return the pools of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            # The connections of a closed loop cannot be closed, only dropped.
            for closed in [each for each in self._pools if each.is_closed()]:
                del self._pools[closed]
            self._pools[loop] = self._make()
        return self._pools[loop]

    async def close(self) -> None:
        """Close all connections of the running event loop."""
        for pool in self._pools.pop(asyncio.get_running_loop(), []):
            await pool.disconnect()


class AsyncSoon:
    """Runs functions in the background."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, function: Callable[[], Awaitable[None]]) -> None:
        """Run a function."""

        async def run() -> None:
            await function()

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for those of the running event loop."""
        here = asyncio.get_running_loop()
        await asyncio.gather(*(task for task in self._tasks if task.get_loop() is here))


async def send(connection: Any, words: Sequence[Word]) -> None:
    """Send a request on a connection that is there, and never on a new one in its place.

    What redis-py has for this closes the connection when it is cancelled, and with it goes a reply
    that is on its way.
    """
    writer = connection._writer
    if writer is None:
        raise ConnectionError("the connection has ended")
    writer.writelines(connection.pack_command(*words))
    await writer.drain()


async def send_all(connection: Any, requests: Sequence[Sequence[Word]]) -> None:
    """Send requests in one write on a connection that is there."""
    writer = connection._writer
    if writer is None:
        raise ConnectionError("the connection has ended")
    writer.writelines(connection.pack_commands(requests))
    await writer.drain()


def end_sending(connection: Any) -> None:
    """Tell the server that nothing more is sent, while its replies can still be read."""
    writer = connection._writer
    if writer.can_write_eof():
        writer.write_eof()
    else:
        attempts.end_sending(writer.get_extra_info("socket").fileno())


async def late_reply(connection: Any) -> Any:
    """Return what still comes on a connection, or None. Being cancelled again changes nothing."""
    loop = asyncio.get_running_loop()
    until = loop.time() + UNDO_S
    while (left := until - loop.time()) > 0:
        try:
            return await connection.read_response(timeout=left, disconnect_on_error=False)
        except asyncio.CancelledError:
            continue
        except BROKEN:
            return None
    return None


async def next_reply(connection: Any, seconds: float) -> Any:
    """Return what comes on a connection, or None if nothing came in so many seconds."""
    return await connection.read_response(timeout=seconds, disconnect_on_error=False)


async def next_message(connection: Any, seconds: float, _: object) -> Any:
    """Do the same as `next_reply`, while others send on this connection."""
    return await next_reply(connection, seconds)
