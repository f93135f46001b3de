"""What a job function can ask for by raising, and what a worker tells about its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..replies import State
from ..spans import Span, span_ms


class Retry(Exception):
    """Raise it to fail the job and have it tried again after `delay` seconds.

    The failure counts, so the job may be given up. Without `delay` the back-off applies.
    """

    def __init__(self, reason: str = "", *, delay: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = str(reason)
        self.delay = _checked(delay)


class Bury(Exception):
    """Raise it to set the job aside, because it can never be done."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


class GiveBack(Exception):
    """Raise it to give the job back after `delay` seconds, which is no failure."""

    def __init__(self, *, delay: Span | None = None) -> None:
        super().__init__("given back")
        self.delay = _checked(delay)


def _checked(delay: Span | None) -> Span | None:
    """Return a delay. Raises `ValueError` where it is given, and not only where it is used."""
    if delay is not None:
        span_ms(delay)
    return delay


#: What can happen to a job.
Kind = Literal["start", "end", "failed", "lost", "recalled", "cancelled", "released"]


@dataclass(frozen=True)
class Event:
    """Something that happened to a job, for figures and logs.

    | kind | when | with |
    |---|---|---|
    | `start` | the function is about to be called | |
    | `end` | it has returned | `duration_s` |
    | `failed` | it has raised, or its payload cannot be read | `duration_s`, `error`, `state` |
    | `lost` | the lease ended while the function ran: another worker may have the task | |
    | `recalled` | the server has called back a job that had not begun, for a more urgent one | |
    | `cancelled` | the task was cancelled: the function is asked to end, or is not called | |
    | `released` | the job was given back, unfinished | |

    `state` is what the failed job is now, and None if its lease had ended.
    """

    kind: Kind
    queue: str
    id: str
    attempts: int
    duration_s: float | None = None
    error: BaseException | None = None
    state: State | None = None
