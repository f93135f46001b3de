"""Pools and connections of redis-py. The twin with asyncio is `pinpriq.aio.pools`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry as Retry

from .. import attempts
from ..attempts import BROKEN, UNDO_S
from ..options import Options, check_pool
from ..requests.base import Word

#: Only asyncio breaks off a call that must come to its end.
CANCELLED: tuple[type[BaseException], ...] = ()


class Pools:
    """The pools of one client, one for each server."""

    def __init__(self, options: Options) -> None:
        # The link sends requests again, since it knows which of them it may.
        self._pools: list[Any] = [
            redis.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **options.redis)
            for url in options.urls
        ]
        for pool in self._pools:
            check_pool(pool)

    def here(self) -> list[Any]:
        """Return the pools."""
        return self._pools

    def close(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            pool.disconnect()


class Soon:
    """Runs functions at once, where asyncio runs them in the background."""

    def run(self, function: Callable[[], None]) -> None:
        """Run a function."""
        function()

    def finish(self) -> None:
        """Wait for nothing."""


def send(connection: Any, words: Sequence[Word]) -> None:
    """Send a request on a connection that is there, and never on a new one in its place."""
    if connection._sock is None:
        raise ConnectionError("the connection has ended")
    connection.send_command(*words)


def send_all(connection: Any, requests: Sequence[Sequence[Word]]) -> None:
    """Send requests in one write on a connection that is there."""
    if connection._sock is None:
        raise ConnectionError("the connection has ended")
    connection.send_packed_command(connection.pack_commands(requests), check_health=False)


def end_sending(connection: Any) -> None:
    """Tell the server that nothing more is sent, while its replies can still be read."""
    attempts.end_sending(connection._sock.fileno())


def late_reply(connection: Any) -> Any:
    """Return what still comes on a connection, or None."""
    try:
        if connection.can_read(timeout=UNDO_S):
            return connection.read_response(disconnect_on_error=False)
    except BROKEN:
        pass
    return None


def next_reply(connection: Any, seconds: float) -> Any:
    """Return what comes on a connection, or None if nothing came in so many seconds."""
    return connection.read_response(timeout=seconds, disconnect_on_error=False)


def next_message(connection: Any, seconds: float, lock: AbstractContextManager[Any]) -> Any:
    """Do the same as `next_reply`, while others send on this connection under the lock.

    It waits without the lock, since an encrypted connection cannot be read and written at once.
    """
    for waits in (True, False):
        with lock:
            sock = connection._sock
            if sock is None:
                # A writer has noticed it. Anything else would connect again.
                raise ConnectionError("the connection has ended")
            if connection.can_read(timeout=0):
                return connection.read_response(disconnect_on_error=False)
        if waits:
            wait([sock], seconds)
    return None
