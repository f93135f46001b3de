"""What a worker works on. Nothing here does I/O."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..job import check_function
from ..settings import QueueSettings
from .events import Event, Kind

if TYPE_CHECKING:
    from ..aio.job import AsyncJob
    from ..sync.job import Job

log = logging.getLogger("pinpriq.worker")

#: How long one take may block, in seconds. A worker that has to stop notices it after that.
WAIT_S = 1.0

#: The most jobs that are taken ahead of a fair queue, which charges a share for each.
FAIR_PREFETCH_MAX = 1

#: The first and the longest pause after an error, in seconds.
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0


@dataclass(frozen=True)
class Handler:
    """A function for the tasks of one queue, or of the lane of a member in a topic."""

    name: str
    function: Callable[..., Any]
    member: str | None = None
    with_job: bool = False
    settings: QueueSettings | None = None


@dataclass(frozen=True)
class Source:
    """Queues, or topics of one member, that one request can take from."""

    names: tuple[str, ...]
    member: str | None = None

    def rotated(self, by: int) -> tuple[str, ...]:
        """Return the names in another order, so that none of them always comes first."""
        at = by % len(self.names)
        return self.names[at:] + self.names[:at]

    def parts(self) -> list[Source]:
        """Return a source for each name, for names that live in different shards."""
        return [Source((name,), self.member) for name in self.names]


@dataclass
class Plan:
    """All handlers of a worker, and how it works."""

    ttr_s: float
    prefetch: int
    grace_s: float
    lease_s: float
    on_event: Callable[[Event], None] | None
    handlers: dict[tuple[str, str | None], Handler] = field(default_factory=dict)

    def add(self, handler: Handler) -> None:
        """Add a handler. Raises `ValueError` if its queue has one already.

        Raises `TypeError` for a generator, since calling that runs nothing.
        """
        check_function(handler.function)
        place = (handler.name, handler.member)
        if place in self.handlers:
            raise ValueError(f"there is a function for {handler.name!r} already")
        self.handlers[place] = handler

    def only(self, names: set[str]) -> None:
        """Keep the handlers of these queues and topics. Raises `ValueError` for an unknown one."""
        known = {handler.name for handler in self.handlers.values()}
        if unknown := sorted(names - known):
            raise ValueError(f"no function is for {', '.join(unknown)}")
        self.handlers = {
            place: handler for place, handler in self.handlers.items() if handler.name in names
        }

    def sources(self) -> list[Source]:
        """Return what to take from: all queues together, and each member with its topics."""
        by_member: dict[str | None, list[str]] = {}
        for handler in self.handlers.values():
            by_member.setdefault(handler.member, []).append(handler.name)
        return [Source(tuple(names), member) for member, names in by_member.items()]

    def members(self) -> list[tuple[str, str]]:
        """Return the topics to join, each with the member."""
        return [
            (handler.name, handler.member)
            for handler in self.handlers.values()
            if handler.member is not None
        ]

    def described(self) -> str:
        """Say in words what the worker serves."""
        queues = [handler.name for handler in self.handlers.values() if handler.member is None]
        lanes = [f"{topic} as {member}" for topic, member in self.members()]
        parts = [", ".join(queues), f"the topics {', '.join(lanes)}" if lanes else ""]
        return " and ".join(part for part in parts if part) or "nothing"

    def tell(self, kind: Kind, job: AsyncJob | Job, **more: Any) -> None:
        """Tell the hook of a job. What it raises is logged, and does not touch the job."""
        if self.on_event is not None:
            try:
                self.on_event(Event(kind, job.queue.name, job.id, job.attempts, **more))
            except BaseException:
                log.exception("the hook for events failed")


def backoffs() -> Iterator[float]:
    """Go through the pauses after one error after the other, in seconds."""
    for times in itertools.count():
        yield min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(times, 10))
