"""Sends requests over the pool of redis-py, with asyncio, and sends them again where that is safe.

Its twin without asyncio is `pinpriq.sync.link`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, TypeVar

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import EqualJitterBackoff, NoBackoff

from ..attempts import (
    BROKEN,
    PAUSE_FIRST_S,
    PAUSE_MAX_S,
    UNDO_S,
    UNDO_TRIES,
    Again,
    Attempts,
    CarriedOut,
    NotConnected,
    end_sending,
)
from ..errors import Disconnected, PinpriqError, Refused, is_refusal, refusal_from
from ..options import POOL_NEEDS_NO_NAME, Options, check_pool
from ..requests.base import Request, Word

T = TypeVar("T")

log = logging.getLogger("pinpriq")


class AsyncLink:
    """The connections of one client.

    Each event loop has connections of its own, since those of one cannot be used in another.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._pools: dict[asyncio.AbstractEventLoop, list[Any]] = {}
        self._soon: set[asyncio.Task[None]] = set()
        # Which of the servers has answered last.
        self._current = 0
        self._retry = Retry(EqualJitterBackoff(PAUSE_MAX_S, PAUSE_FIRST_S), -1, (Again,))
        for pool in self._new_pools():
            check_pool(pool)

    def _new_pools(self) -> list[Any]:
        # Requests are sent again here, where it is known which of them may be.
        return [
            redis.ConnectionPool.from_url(url, retry=Retry(NoBackoff(), 0), **self.options.redis)
            for url in self.options.urls
        ]

    def _pools_here(self) -> list[Any]:
        """Return the pools of the running event loop, one for each server."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            # Connections of a loop that is closed cannot be closed any more, only dropped.
            for closed in [each for each in self._pools if each.is_closed()]:
                del self._pools[closed]
            self._pools[loop] = self._new_pools()
        return self._pools[loop]

    async def close(self) -> None:
        """Close all connections of the running event loop."""
        here = asyncio.get_running_loop()
        await asyncio.gather(*(task for task in self._soon if task.get_loop() is here))
        for pool in self._pools.pop(here, []):
            await pool.disconnect()

    async def connection(self) -> Any:
        """Return a connection, which the caller gives back with `give_back`.

        It is one to the server that answered last. If that cannot be reached, the others follow.
        """
        pools = self._pools_here()
        first = self._current
        failed: Exception | None = None
        for index in (*range(first, len(pools)), *range(first)):
            pool = pools[index]
            try:
                if POOL_NEEDS_NO_NAME:
                    connection = await pool.get_connection()
                else:
                    connection = await pool.get_connection("_")
            except BROKEN as error:
                if is_refusal(error):
                    raise
                failed = error
                continue
            self._current = index
            connection.pinpriq_pool = pool
            return connection
        raise NotConnected(str(failed)) from failed

    async def give_back(self, connection: Any) -> None:
        """Take a connection back into its pool."""
        await connection.pinpriq_pool.release(connection)

    async def run(self, request: Request[T], retry_for_s: float | None = None) -> T:
        """Have a request carried out. Raises a refusal, or `Disconnected`.

        `retry_for_s` is for how long to send it again, instead of the option of the client.
        """
        attempts = Attempts(
            request, self.options.retry_for_s if retry_for_s is None else retry_for_s
        )

        async def attempt() -> T:
            try:
                if request.undo is None:
                    reply = await self._exchange([request.words])
                else:
                    reply = [await self._exchange_or_undo(request)]
            except Exception as error:
                verdict = attempts.judge(error)
                if isinstance(verdict, CarriedOut):
                    return attempts.result(b"OK")
                raise verdict from error
            return attempts.result(reply[0])

        async def failed(_: Exception) -> None:
            """Nothing is left to clean up after an attempt."""

        try:
            return await self._retry.call_with_retry(attempt, failed)
        except Again as again:
            raise again.final from again.__cause__

    async def run_soon(self, request: Request[Any]) -> None:
        """Have a request carried out in the background. A refusal is only logged."""
        task = asyncio.create_task(self._run_quietly(request))
        self._soon.add(task)
        task.add_done_callback(self._soon.discard)

    async def _run_quietly(self, request: Request[Any]) -> None:
        try:
            await self.run(request)
        except PinpriqError as error:
            log.warning("a task that was popped may come again: %s", error)

    async def _exchange(self, requests: Sequence[Sequence[Word]]) -> list[Any]:
        """Send requests on one connection, and return their replies.

        Raises the refusal of a single request, and returns those of several.
        """
        connection = await self.connection()
        try:
            if len(requests) == 1:
                await connection.send_command(*requests[0])
            else:
                await connection.send_packed_command(connection.pack_commands(requests))
            replies: list[Any] = []
            for _ in requests:
                try:
                    replies.append(await connection.read_response())
                except Exception as error:
                    if not is_refusal(error) or len(requests) == 1:
                        raise
                    replies.append(error)
            return replies
        except BaseException as error:
            # A reply may still be under way, and must not be taken for that of a later request.
            if not is_refusal(error):
                await connection.disconnect()
            raise
        finally:
            await self.give_back(connection)

    async def _exchange_or_undo(self, request: Request[Any]) -> Any:
        """Send a request, and return its reply. If that is broken off, nothing is lost by it."""
        connection = await self.connection()
        try:
            await send(connection, request.words)
            return await connection.read_response(disconnect_on_error=False)
        except BaseException as error:
            if not is_refusal(error):
                if not isinstance(error, BROKEN):
                    await self._undo(connection, request)
                await connection.disconnect()
            raise
        finally:
            await self.give_back(connection)

    async def _undo(self, connection: Any, request: Request[Any]) -> None:
        """End a request that nobody waits for any more, and undo it if it was carried out."""
        assert request.undo is not None
        try:
            # The server ends what blocks, and sends the replies to what it has done.
            _end_sending(connection)
            reply = await _late_reply(connection)
            steps = [] if reply is None else request.undo(request.parse(reply))
        except Exception as error:
            if not is_refusal(error):
                log.warning("a reply that came too late could not be read: %s", error)
            return
        for step in steps:
            await self.carry_out_one_of(step)

    async def carry_out_one_of(self, requests: Sequence[Request[Any]]) -> None:
        """Have the first of these requests carried out that is not refused, cancelled or not."""
        left = list(requests)
        for _ in range(UNDO_TRIES):
            try:
                await self.run(left[0], UNDO_S)
            except asyncio.CancelledError:
                continue
            except PinpriqError as error:
                left.pop(0)
                if not left:
                    log.warning("a task that came too late was not given back: %s", error)
                    return
            else:
                return

    async def run_all(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Have requests carried out in one round trip. Refusals are among the results.

        Nothing is sent again. Raises `Disconnected` if replies are missing.
        """
        if not requests:
            return []
        try:
            if len(requests) == 1:
                try:
                    replies = await self._exchange([requests[0].words])
                except Exception as error:
                    if not is_refusal(error):
                        raise
                    replies = [error]
            else:
                replies = await self._exchange([request.words for request in requests])
        except (NotConnected, *BROKEN) as error:
            raise Disconnected(f"no reply from the server: {error}") from error
        return [_result(*pair) for pair in zip(requests, replies, strict=True)]

    async def run_transaction(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Have requests carried out at one moment, all or none. It is not sent again.

        Raises `Aborted` if one of them is refused.
        """
        words: list[Sequence[Word]] = [(b"MULTI",)]
        words.extend(request.words for request in requests)
        words.append((b"EXEC",))
        try:
            replies = await self._exchange(words)
        except (NotConnected, *BROKEN) as error:
            if is_refusal(error):
                raise refusal_from(error) from error
            raise Disconnected(f"no reply from the server: {error}") from error
        refused = next((each for each in replies[1:-1] if isinstance(each, Exception)), None)
        if isinstance(replies[-1], Exception):
            if refused is not None:
                raise refusal_from(refused) from replies[-1]
            raise refusal_from(replies[-1])
        return [_result(*pair) for pair in zip(requests, replies[-1], strict=True)]


def _result(request: Request[T], reply: Any) -> T | Refused:
    if isinstance(reply, Exception):
        return refusal_from(reply)
    return request.parse(reply)


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


def _end_sending(connection: Any) -> None:
    """Tell the server that nothing more is sent, while its replies can still be read."""
    writer = connection._writer
    if writer.can_write_eof():
        writer.write_eof()
    else:
        end_sending(writer.get_extra_info("socket").fileno())


async def _late_reply(connection: Any) -> Any:
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


async def late_replies(connection: Any) -> list[Any]:
    """End a connection, and return what still comes on it."""
    replies = []
    try:
        _end_sending(connection)
        while (reply := await _late_reply(connection)) is not None:
            replies.append(reply)
    except (OSError, AttributeError) as error:
        log.debug("nothing more can be read: %s", error)
    return replies


async def next_reply(connection: Any, seconds: float) -> Any:
    """Return what comes on a connection, or None if nothing came in so many seconds."""
    return await connection.read_response(timeout=seconds, disconnect_on_error=False)
