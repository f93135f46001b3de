"""What the jobs of both clients have in common."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any


class Cancellable:
    """What a job knows of a cancel of its task.

    A worker with a prefetch hears of it at once, and others when they renew the lease.
    """

    #: Why the task was cancelled, perhaps empty, and None while it is not.
    cancel_reason: str | None = None

    @property
    def cancelled(self) -> threading.Event:
        """What is set when the task was cancelled, so that its function should end."""
        # Made at the first use, since few functions ask. Several threads may do so at once.
        made: threading.Event = self.__dict__.setdefault("_cancelled", threading.Event())
        return made

    def note_cancelled(self, reason: str) -> None:
        """Take note that the task was cancelled."""
        self.cancel_reason = reason
        self.cancelled.set()


def reason_of(error: BaseException) -> str:
    """Return why an exception failed a job: its type and its message, if that can be read."""
    kind = type(error).__qualname__
    try:
        message = str(error)
    except BaseException:
        return f"{kind}, whose message cannot be read"
    return f"{kind}: {message}" if message else kind


def check_function(function: Callable[..., Any]) -> None:
    """Raise `TypeError` if calling a function would only make a generator."""
    plain = function
    while isinstance(plain, functools.partial):
        plain = plain.func
    for each in (plain, type(plain).__dict__.get("__call__")):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise TypeError(
                f"{function!r} has a yield, so calling it runs nothing: it cannot be a job"
            )


def check_result(result: Any) -> None:
    """Raise `TypeError` if what a function returned is work that is not done yet."""
    if inspect.isgenerator(result) or inspect.isasyncgen(result) or inspect.isawaitable(result):
        raise TypeError(f"the function returned {type(result).__name__}, which has not run")
