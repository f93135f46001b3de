"""Sends requests over the pool of redis-py, and sends them again where that is safe.

Its twin with asyncio is `pinpriq.aio.link`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import redis
from redis.backoff import EqualJitterBackoff, NoBackoff
from redis.retry import Retry

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


class Link:
    """The connections of one client."""

    def __init__(self, options: Options) -> None:
        self.options = options
        # Requests are sent again here, where it is known which of them may be.
        self.pool: Any = redis.ConnectionPool.from_url(
            options.url, retry=Retry(NoBackoff(), 0), **options.redis
        )
        self._retry = Retry(EqualJitterBackoff(PAUSE_MAX_S, PAUSE_FIRST_S), -1, (Again,))

    def close(self) -> None:
        """Close all connections."""
        self.pool.disconnect()

    def connection(self) -> Any:
        """Return a connection, which the caller gives back with `give_back`."""
        try:
            if POOL_NEEDS_NO_NAME:
                return self.pool.get_connection()
            return self.pool.get_connection("_")
        except BROKEN as error:
            if is_refusal(error):
                raise
            raise NotConnected(str(error)) from error

    def give_back(self, connection: Any) -> None:
        """Take a connection back into the pool."""
        self.pool.release(connection)

    def run(self, request: Request[T]) -> T:
        """Have a request carried out. Raises a refusal, or `Disconnected`."""
        attempts = Attempts(request, self.options.retry_for_s)

        def attempt() -> T:
            try:
                reply = self._exchange([request.words])
            except Exception as error:
                verdict = attempts.judge(error)
                if isinstance(verdict, CarriedOut):
                    return attempts.result(b"OK")
                raise verdict from error
            return attempts.result(reply[0])

        def failed(_: Exception) -> None:
            """Nothing is left to clean up after an attempt."""

        try:
            return self._retry.call_with_retry(attempt, failed)
        except Again as again:
            raise again.final from again.__cause__

    def _exchange(self, requests: Sequence[Sequence[Word]]) -> list[Any]:
        """Send requests on one connection, and return their replies.

        Raises the refusal of a single request, and returns those of several.
        """
        connection = self.connection()
        try:
            if len(requests) == 1:
                connection.send_command(*requests[0])
            else:
                connection.send_packed_command(connection.pack_commands(requests))
            replies: list[Any] = []
            for _ in requests:
                try:
                    replies.append(connection.read_response())
                except Exception as error:
                    if not is_refusal(error) or len(requests) == 1:
                        raise
                    replies.append(error)
            return replies
        except BaseException as error:
            # A reply may still be under way, and must not be taken for that of a later request.
            if not is_refusal(error):
                connection.disconnect()
            raise
        finally:
            self.give_back(connection)

    def run_all(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Have requests carried out in one round trip. Refusals are among the results.

        Nothing is sent again. Raises `Disconnected` if replies are missing.
        """
        if not requests:
            return []
        try:
            if len(requests) == 1:
                try:
                    replies = self._exchange([requests[0].words])
                except Exception as error:
                    if not is_refusal(error):
                        raise
                    replies = [error]
            else:
                replies = self._exchange([request.words for request in requests])
        except (NotConnected, *BROKEN) as error:
            raise Disconnected(f"no reply from the server: {error}") from error
        return [_result(*pair) for pair in zip(requests, replies, strict=True)]

    def run_transaction(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Have requests carried out at one moment, all or none. It is not sent again.

        Raises `Aborted` if one of them is refused.
        """
        words: list[Sequence[Word]] = [(b"MULTI",)]
        words.extend(request.words for request in requests)
        words.append((b"EXEC",))
        try:
            replies = self._exchange(words)
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


def next_reply(connection: Any, seconds: float) -> Any:
    """Return what comes on a connection, or None if nothing came in so many seconds."""
    return connection.read_response() if connection.can_read(timeout=seconds) else None
