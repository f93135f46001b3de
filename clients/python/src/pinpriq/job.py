"""What the jobs of both clients have in common."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The longest progress, in bytes.
PROGRESS_BYTES_MAX = 256
#: The largest checkpoint, in bytes.
CHECKPOINT_BYTES_MAX = 65_536
#: The largest result that any server takes, in bytes. Most take a MiB, as of a payload.
RESULT_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Told:
    """How far the work on a job has come, as far as the server does not know it yet."""

    #: For people.
    progress: bytes | None = None
    #: For the next attempt. An empty one removes what the server knows.
    checkpoint: bytes | None = None


class Telling:
    """What a job tells of how far its work has come.

    Nothing here talks to the server. A worker sends the newest values within a second, `touch` at
    once, and a failure takes along a checkpoint that was not sent yet.
    """

    def progress(self, text: str | bytes) -> None:
        """Tell people how far the work has come. The text is gone with the lease.

        Raises `ValueError` if it has more than 256 bytes. An empty one removes the former.
        """
        told = text.encode() if isinstance(text, str) else text
        if len(told) > PROGRESS_BYTES_MAX:
            raise ValueError(
                f"a progress has at most {PROGRESS_BYTES_MAX} bytes, and this one {len(told)}"
            )
        self.__dict__["_progress"] = told

    def checkpoint(self, value: str | bytes) -> None:
        """Note how far the work has come, for the next attempt, which finds it as bytes.

        Raises `ValueError` if it has more than 65,536 bytes. An empty one removes the former.
        """
        told = value.encode() if isinstance(value, str) else bytes(value)
        if len(told) > CHECKPOINT_BYTES_MAX:
            raise ValueError(
                f"a checkpoint has at most {CHECKPOINT_BYTES_MAX} bytes, and this one {len(told)}"
            )
        self.__dict__["_checkpoint"] = told

    def has_untold(self) -> bool:
        """Tell whether the server does not know all of it."""
        return "_progress" in self.__dict__ or "_checkpoint" in self.__dict__

    def take_untold(self) -> Told:
        """Return what the server does not know, since it is about to be told."""
        # The function of the job may tell more in another thread at any moment.
        take = self.__dict__.pop
        return Told(take("_progress", None), take("_checkpoint", None))

    def keep_untold(self, told: Told) -> None:
        """Keep what the server was not told after all, unless there is something newer."""
        if told.progress is not None:
            self.__dict__.setdefault("_progress", told.progress)
        if told.checkpoint is not None:
            self.__dict__.setdefault("_checkpoint", told.checkpoint)


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
