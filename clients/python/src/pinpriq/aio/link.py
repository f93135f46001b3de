"""Sends requests over the pools of redis-py, and sends them again where that is safe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from redis.backoff import EqualJitterBackoff

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
)
from ..errors import Disconnected, PinpriqError, Refused, is_refusal, refusal_from
from ..options import POOL_NEEDS_NO_NAME, Options
from ..requests.base import Request, Word
from .pools import CANCELLED, AsyncPools, AsyncSoon, Retry, end_sending, late_reply, send

T = TypeVar("T")

log = logging.getLogger("pinpriq")


class AsyncLink:
    """The connections of one client."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._pools = AsyncPools(options)
        self._soon = AsyncSoon()
        # Which of the servers has answered last.
        self._current = 0
        self._retry = Retry(EqualJitterBackoff(PAUSE_MAX_S, PAUSE_FIRST_S), -1, (Again,))

    @property
    def url(self) -> str:
        """The server that answered last, in the words of redis-py."""
        return self.options.urls[self._current]

    async def close(self) -> None:
        """Close all connections."""
        await self._soon.finish()
        await self._pools.close()

    async def connection(self) -> Any:
        """Return a connection, which the caller gives back with `give_back`.

        It is one to the server that answered last. If that cannot be reached, the others follow.
        """
        pools = self._pools.here()
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
                    [reply] = await self._exchange([request.words])
                    if isinstance(reply, Exception):
                        raise reply
                else:
                    reply = await self._exchange_or_undo(request)
            except Exception as error:
                verdict = attempts.judge(error)
                if isinstance(verdict, CarriedOut):
                    return attempts.result(b"OK")
                raise verdict from error
            return attempts.result(reply)

        async def failed(_: Exception) -> None:
            """Nothing is left to clean up after an attempt."""

        try:
            return await self._retry.call_with_retry(attempt, failed)
        except Again as again:
            raise again.final from again.__cause__

    async def run_soon(self, request: Request[Any]) -> None:
        """Have a request carried out, with asyncio later. A refusal is only logged."""
        await self._soon.run(lambda: self._run_quietly(request))

    async def _run_quietly(self, request: Request[Any]) -> None:
        try:
            await self.run(request)
        except PinpriqError as error:
            log.warning("a task that was popped may come again: %s", error)

    async def _exchange(self, requests: Sequence[Sequence[Word]]) -> list[Any]:
        """Send requests on one connection, and return their replies, which may be refusals."""
        connection = await self.connection()
        try:
            await connection.send_packed_command(connection.pack_commands(requests))
            replies: list[Any] = []
            for _ in requests:
                try:
                    replies.append(await connection.read_response())
                except Exception as error:
                    if not is_refusal(error):
                        raise
                    replies.append(error)
            return replies
        except BaseException:
            # A reply may still be under way, and must not be taken for that of a later request.
            await connection.disconnect()
            raise
        finally:
            await self.give_back(connection)

    async def _exchange_or_undo(self, request: Request[Any]) -> Any:
        """Send a request, and return its reply. If that is broken off, nothing is lost by it."""
        connection = await self.connection()
        try:
            await send(connection, request.words)
            # Neither a cancellation nor an exception that a signal raises, such as Ctrl-C, may
            # close the connection: with it would go a reply that is on its way.
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
        """End a request whose caller gave up, and undo it if it was carried out."""
        assert request.undo is not None
        try:
            # The server ends what blocks, and sends the replies to what it has done.
            end_sending(connection)
            reply = await late_reply(connection)
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
            except CANCELLED:
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
        replies = await self._exchange_once([request.words for request in requests])
        return [_result(*pair) for pair in zip(requests, replies, strict=True)]

    async def run_transaction(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Have requests carried out at one moment, all or none. It is not sent again.

        Raises `Aborted` if one of them is refused.
        """
        words: list[Sequence[Word]] = [(b"MULTI",)]
        words.extend(request.words for request in requests)
        words.append((b"EXEC",))
        replies = await self._exchange_once(words)
        refused = next((each for each in replies[1:-1] if isinstance(each, Exception)), None)
        if isinstance(replies[-1], Exception):
            if refused is not None:
                raise refusal_from(refused) from replies[-1]
            raise refusal_from(replies[-1])
        return [_result(*pair) for pair in zip(requests, replies[-1], strict=True)]

    async def _exchange_once(self, requests: Sequence[Sequence[Word]]) -> list[Any]:
        """Do the same as `_exchange`, with the exceptions of this package."""
        try:
            return await self._exchange(requests)
        except Exception as error:
            if is_refusal(error):
                raise refusal_from(error) from error
            if isinstance(error, (NotConnected, *BROKEN)):
                raise Disconnected(f"no reply from the server: {error}") from error
            raise


def _result(request: Request[T], reply: Any) -> T | Refused:
    if isinstance(reply, Exception):
        return refusal_from(reply)
    return request.parse(reply)


async def late_replies(connection: Any) -> list[Any]:
    """End a connection, and return what still comes on it."""
    replies = []
    try:
        end_sending(connection)
        while (reply := await late_reply(connection)) is not None:
            replies.append(reply)
    except (OSError, AttributeError) as error:
        log.debug("nothing more can be read: %s", error)
    return replies
