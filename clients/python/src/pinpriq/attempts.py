"""Decides what becomes of a request whose reply did not come, or said to try again.

Nothing here does I/O, so connections with and without asyncio share it.
"""

from __future__ import annotations

import math
import os
import socket
import time
from typing import Any, Generic, TypeVar

from redis import exceptions as redis_errors

from .errors import (
    ClusterDown,
    Disconnected,
    PinpriqError,
    Stale,
    TryAgain,
    Unknown,
    is_refusal,
    refusal_from,
)
from .requests.base import Repeat, Request
from .spans import Span, span_s

T = TypeVar("T")

#: The longest and the first pause between two attempts, in seconds.
PAUSE_MAX_S = 1.0
PAUSE_FIRST_S = 0.02

#: What redis-py and the system raise when a connection cannot be made or breaks.
BROKEN = (redis_errors.ConnectionError, redis_errors.TimeoutError, OSError)


#: How long to wait for the end of a request that was given up, and how often to undo it.
UNDO_S = 2.0
UNDO_TRIES = 4


def end_sending(descriptor: int) -> None:
    """Tell the other end of a socket that nothing more is sent. Encryption learns nothing of it."""
    with socket.socket(fileno=os.dup(descriptor)) as same:
        same.shutdown(socket.SHUT_WR)


class NotConnected(Exception):
    """No connection could be made, so the request was not sent."""


class Again(redis_errors.RedisError):
    """The request can be sent again. `final` is what to raise if time is up."""

    def __init__(self, final: PinpriqError) -> None:
        super().__init__(str(final))
        self.final = final


class CarriedOut(Exception):
    """A refusal shows that an earlier attempt was carried out."""


class Attempts(Generic[T]):
    """The attempts to have one request carried out."""

    def __init__(self, request: Request[T], retry_for_s: float) -> None:
        self._request = request
        self._until = time.monotonic() + retry_for_s
        self._uncertain = False

    def judge(self, error: Exception) -> Exception:
        """Return what to raise after an attempt has failed with this error."""
        in_time = time.monotonic() < self._until
        if isinstance(error, NotConnected):
            final = Disconnected(f"no connection to the server: {error}")
            return Again(final) if in_time else final
        if is_refusal(error):
            return self._judge_refusal(error, in_time)
        if isinstance(error, BROKEN):
            self._uncertain = True
            final = Disconnected(f"the connection broke before the reply: {error}")
            return Again(final) if in_time and self._may_repeat() else final
        return error

    def _judge_refusal(self, error: Exception, in_time: bool) -> Exception:
        refused = refusal_from(error, self._uncertain)
        if isinstance(refused, TryAgain | ClusterDown):
            return Again(refused) if in_time else refused
        if isinstance(refused, Unknown):
            self._uncertain = True
            return Again(refused) if in_time and self._may_repeat() else refused
        stale = isinstance(refused, Stale) and self._uncertain
        if stale and self._request.repeat is Repeat.STALE_IS_DONE:
            return CarriedOut()
        return refused

    def _may_repeat(self) -> bool:
        return self._request.repeat is not Repeat.NEVER

    def result(self, reply: Any) -> T:
        """Return what the reply means."""
        result = self._request.parse(reply)
        if (
            self._uncertain
            and self._request.repeat is Repeat.STALE_IS_DONE
            and isinstance(result, list)
        ):
            result[:] = [None if isinstance(each, Stale) else each for each in result]
        return result


class Deadline:
    """Cuts a long wait into requests that each end before the socket gives up."""

    def __init__(self, wait: Span | None, slice_s: float) -> None:
        self._until: float | None
        if wait is None or wait == math.inf:
            self._until = None
        else:
            self._until = time.monotonic() + span_s(wait)
        self._slice_s = slice_s

    def next_ms(self) -> int:
        """Return for how long the next request may wait. 0 is no wait."""
        if self._until is None:
            return max(1, int(self._slice_s * 1000))
        left = min(self._slice_s, self._until - time.monotonic())
        return max(0, round(left * 1000))

    def passed(self) -> bool:
        """Tell whether the whole wait is over."""
        return self._until is not None and time.monotonic() >= self._until
