"""Sends requests over the pool of redis-py, with asyncio, and sends them again where that is safe.

Its twin without asyncio is `pinpriq.sync.link`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import EqualJitterBackoff, NoBackoff

from ..attempts import (
    BROKEN,
    PAUSE_FIRST_S,
    PAUSE_MAX_S,
    Again,
    Attempts,
    CarriedOut,
    NotConnected,
)
from ..errors import Disconnected, Refused, is_refusal, refusal_from
from ..options import POOL_NEEDS_NO_NAME, Options
from ..requests.base import Request, Word

T = TypeVar("T")


class AsyncLink:
    """The connections of one client."""

    def __init__(self, options: Options) -> None:
        self.options = options
        # Requests are sent again here, where it is known which of them may be.
        self.pool: Any = redis.ConnectionPool.from_url(
            options.url, retry=Retry(NoBackoff(), 0), **options.redis
        )
        self._retry = Retry(EqualJitterBackoff(PAUSE_MAX_S, PAUSE_FIRST_S), -1, (Again,))

    async def close(self) -> None:
        """Close all connections."""
        await self.pool.disconnect()

    async def connection(self) -> Any:
        """Return a connection, which the caller gives back with `give_back`."""
        try:
            if POOL_NEEDS_NO_NAME:
                return await self.pool.get_connection()
            return await self.pool.get_connection("_")
        except BROKEN as error:
            if is_refusal(error):
                raise
            raise NotConnected(str(error)) from error

    async def give_back(self, connection: Any) -> None:
        """Take a connection back into the pool."""
        await self.pool.release(connection)

    async def run(self, request: Request[T]) -> T:
        """Have a request carried out. Raises a refusal, or `Disconnected`."""
        attempts = Attempts(request, self.options.retry_for_s)

        async def attempt() -> T:
            try:
                reply = await self._exchange([request.words])
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


async def next_reply(connection: Any, seconds: float) -> Any:
    """Return what comes on a connection, or None if nothing came in so many seconds."""
    return await connection.read_response(timeout=seconds, disconnect_on_error=False)
