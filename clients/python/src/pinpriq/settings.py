"""The settings of a queue or lane: how they are sent and shown.

Printed from the server's table of settings by `cargo test -p pinpriq-proto printed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .parsing import record
from .requests.base import Words
from .spans import Span
from .values import mapping


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
    #: The highest cost that a task may have.
    cost_max: int | None = None
    #: Whose turn it is among ready tasks.
    ranking: Literal["strict", "fair", "ageing"] | None = None
    #: How many tasks of one key may be taken at once.
    key_limit: int | Literal["none"] | None = None
    #: What the tasks of one key that are taken may cost in a time.
    key_rate: tuple[int, Span] | Literal["none"] | None = None
    #: Whether a task that has failed holds back the others of its key.
    key_hold: bool | None = None
    #: How many tasks of one share may be taken at once.
    share_limit: int | Literal["none"] | None = None
    #: What the tasks of one share that are taken may cost in a time.
    share_rate: tuple[int, Span] | Literal["none"] | None = None
    #: The most tasks of one share that are not finished; a put beyond it is refused.
    share_capacity: int | Literal["none"] | None = None
    #: The limits that it uses together with other queues.
    uses: str | bytes | None = None
    #: How much later a task goes for each step of its priority, if tasks are ageing.
    ageing: Span | Literal["none"] | None = None
    #: How many shares have metrics of their own: those with most tasks.
    share_metrics: int | Literal["none"] | None = None
    #: How many of its last attempts a task keeps, for people to look at.
    history: int | None = None

    def words(self) -> Words:
        """Return the settings as the words of a request."""
        words = Words()
        words.option("IDS", self.ids)
        words.span("TTL", self.ttl)
        words.span("TTR", self.ttr)
        words.option("AFTERACK", self.after_ack)
        words.span("ZOMBIE", self.zombie)
        words.option("CAPACITY", self.capacity)
        words.option("ATTEMPTS", self.attempts)
        words.span("BACKOFF", self.backoff)
        words.span("BACKOFFMAX", self.backoff_max)
        words.option("DEADLETTER", self.dead_letter)
        words.option("ONEXPIRY", self.on_expiry)
        words.option("LIMIT", self.limit)
        words.rate("RATE", self.rate)
        words.option("CAPACITYBYTES", self.capacity_bytes)
        words.option("OVERFLOW", self.overflow)
        words.on_off("RELEASEFAILS", self.release_fails)
        words.option("COSTMAX", self.cost_max)
        words.option("RANKING", self.ranking)
        words.option("KEYLIMIT", self.key_limit)
        words.rate("KEYRATE", self.key_rate)
        words.on_off("KEYHOLD", self.key_hold)
        words.option("SHARELIMIT", self.share_limit)
        words.rate("SHARERATE", self.share_rate)
        words.option("SHARECAPACITY", self.share_capacity)
        words.option("USES", self.uses)
        words.span("AGEING", self.ageing)
        words.option("SHAREMETRICS", self.share_metrics)
        words.option("HISTORY", self.history)
        return words


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
    cost_max: int
    ranking: str
    key_limit: int | None
    key_rate: tuple[int, float] | None
    key_hold: bool
    share_limit: int | None
    share_rate: tuple[int, float] | None
    share_capacity: int | None
    uses: str | None
    ageing: float | None
    share_metrics: int | None
    history: int
    #: Which sides are paused.
    paused: str
    #: When the pause of puts ends.
    paused_in_until: datetime | None
    #: When the pause of takes ends.
    paused_out_until: datetime | None


def queue_shown(reply: Any) -> QueueShown:
    """Return the settings of a queue."""
    of = mapping(reply)
    names = QueueShown.__annotations__
    return record(QueueShown, {name: of.get(name, of.get(name.replace("_", ""))) for name in names})
