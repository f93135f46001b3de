"""The settings of a queue or lane: how they are sent and shown.

Printed from the server's table of settings by `cargo test -p pinpriq-proto printed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .spans import Span, moment_of, span_ms, span_of
from .values import mapping, text, text_or_none


@dataclass(frozen=True)
class QueueSettings:
    """Settings of a queue or lane. Those that are None stay as they are. Spans are seconds.

    `"none"` removes a setting. `rate` is a number of tasks and the span for them.
    """

    #: How ids come about.
    ids: Literal["sequence", "time64", "uuid", "given"] | None = None
    #: How long a task lives that says nothing else.
    ttl: Span | Literal["none"] | None = None
    #: How long a lease lasts that says nothing else.
    ttr: Span | Literal["none"] | None = None
    #: What becomes of a task that was acknowledged.
    after_ack: Literal["delete", "keep", "zombie"] | None = None
    #: How long a finished task stays.
    zombie: Span | None = None
    #: The most tasks that are not finished; a put beyond it is refused.
    capacity: int | Literal["none"] | None = None
    #: How often a task may fail before it is buried or becomes a dead letter.
    attempts: int | Literal["none"] | None = None
    #: How long a task waits after its first failure; after each further one, twice as long.
    backoff: Span | Literal["none"] | None = None
    #: The longest that a task waits after a failure.
    backoff_max: Span | None = None
    #: The queue that gets tasks that have failed too often.
    dead_letter: str | bytes | None = None
    #: What becomes of a task whose TTL has passed.
    on_expiry: Literal["delete", "deadletter"] | None = None
    #: The most tasks that are taken at once; to others the queue looks empty meanwhile.
    limit: int | Literal["none"] | None = None
    #: How many tasks may be taken in a time.
    rate: tuple[int, Span] | Literal["none"] | None = None
    #: The most bytes of payloads and keys of tasks that are not finished.
    capacity_bytes: int | Literal["none"] | None = None
    #: What happens to a put that finds the queue full.
    overflow: Literal["refuse", "evict"] | None = None
    #: Whether a release is a failure.
    release_fails: bool | None = None

    def words(self) -> list[str | bytes | int]:
        """Return the settings as the words of a request."""
        words: list[str | bytes | int] = []
        if self.ids is not None:
            words += ["IDS", self.ids]
        if self.ttl is not None:
            words += ["TTL", _span(self.ttl)]
        if self.ttr is not None:
            words += ["TTR", _span(self.ttr)]
        if self.after_ack is not None:
            words += ["AFTERACK", self.after_ack]
        if self.zombie is not None:
            words += ["ZOMBIE", _span(self.zombie)]
        if self.capacity is not None:
            words += ["CAPACITY", self.capacity]
        if self.attempts is not None:
            words += ["ATTEMPTS", self.attempts]
        if self.backoff is not None:
            words += ["BACKOFF", _span(self.backoff)]
        if self.backoff_max is not None:
            words += ["BACKOFFMAX", _span(self.backoff_max)]
        if self.dead_letter is not None:
            words += ["DEADLETTER", self.dead_letter]
        if self.on_expiry is not None:
            words += ["ONEXPIRY", self.on_expiry]
        if self.limit is not None:
            words += ["LIMIT", self.limit]
        if self.rate is not None:
            words += ["RATE", _rate(self.rate)]
        if self.capacity_bytes is not None:
            words += ["CAPACITYBYTES", self.capacity_bytes]
        if self.overflow is not None:
            words += ["OVERFLOW", self.overflow]
        if self.release_fails is not None:
            words += ["RELEASEFAILS", "on" if self.release_fails else "off"]
        return words


def _span(span: Span | str) -> str | int:
    return span if isinstance(span, str) else span_ms(span)


def _rate(rate: tuple[int, Span] | str) -> str:
    return rate if isinstance(rate, str) else f"{rate[0]}/{span_ms(rate[1])}"


def _rate_of(shown: Any) -> tuple[int, float] | None:
    if shown is None:
        return None
    count, _, ms = text(shown).partition("/")
    return int(count), int(ms) / 1000


@dataclass(frozen=True)
class QueueShown:
    """The settings of a queue. Spans are in seconds, and None means `none`."""

    ids: str
    ttl: float | None
    ttr: float | None
    after_ack: str
    zombie: float | None
    capacity: int | None
    attempts: int | None
    backoff: float | None
    backoff_max: float
    dead_letter: str | None
    on_expiry: str
    limit: int | None
    rate: tuple[int, float] | None
    capacity_bytes: int | None
    overflow: str
    release_fails: bool
    #: Which sides are paused.
    paused: str
    #: When the pause of puts ends.
    paused_in_until: datetime | None
    #: When the pause of takes ends.
    paused_out_until: datetime | None


def queue_shown(reply: Any) -> QueueShown:
    """Return the settings of a queue."""
    of = mapping(reply)
    return QueueShown(
        ids=text(of["ids"]),
        ttl=span_of(of["ttl"]),
        ttr=span_of(of["ttr"]),
        after_ack=text(of["afterack"]),
        zombie=span_of(of["zombie"]),
        capacity=of["capacity"],
        attempts=of["attempts"],
        backoff=span_of(of["backoff"]),
        backoff_max=of["backoffmax"] / 1000,
        dead_letter=text_or_none(of["deadletter"]),
        on_expiry=text(of["onexpiry"]),
        limit=of["limit"],
        rate=_rate_of(of["rate"]),
        capacity_bytes=of["capacitybytes"],
        overflow=text(of["overflow"]),
        release_fails=text(of["releasefails"]) == "on",
        paused=text(of["paused"]),
        paused_in_until=moment_of(of["paused_in_until"]),
        paused_out_until=moment_of(of["paused_out_until"]),
    )
