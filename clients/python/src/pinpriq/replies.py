"""What the server answers, as values. Moments are aware `datetime`s in UTC, spans seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Literal, TypeVar

from .serialisers import Serialiser

T = TypeVar("T")


class State(str, Enum):
    """The state of a task."""

    READY = "R"
    TAKEN = "T"
    WAITING = "W"
    BURIED = "B"
    ZOMBIE = "Z"
    DONE = "D"
    #: The task is not there.
    GONE = "X"


class Outcome(str, Enum):
    """How a task ended, or `TIMEOUT` if it has not."""

    ACKED = "acked"
    BURIED = "buried"
    EXPIRED = "expired"
    KILLED = "killed"
    DEAD = "dead"
    EVICTED = "evicted"
    MOVED = "moved"
    CANCELLED = "cancelled"
    #: The batches that it waited for have ended in a way for which it was not meant.
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


@dataclass(frozen=True, kw_only=True)
class WithResult:
    """What came of the work on a task that was waited for."""

    #: The result as the server has it, or None.
    result_bytes: bytes | None = None
    #: What reads the result.
    serialiser: Serialiser | None = field(default=None, repr=False, compare=False)

    @property
    def result(self) -> Any:
        """What came of the work, as the serialiser of the queue reads it, or None.

        None if its worker did not say, or if that was not kept. Raises `SerialisationError`.
        """
        if self.result_bytes is None or self.serialiser is None:
            return self.result_bytes
        return self.serialiser.load(self.result_bytes)


@dataclass(frozen=True)
class Put(WithResult):
    """What became of a put.

    `new` is false for a duplicate: then `id` is that of the first task. With a key that the caller
    gave, that may be the task of this very put, sent again after a lost reply. `outcome` tells how
    the task ended, for a put that waits. It is None if that is unknown, or if the put did not wait.
    `result` is what came of the work then.
    """

    id: str
    new: bool
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Origin:
    """Where a dead letter comes from."""

    queue: str
    id: str
    put_at: datetime | None
    attempts: int
    failures: int
    moved_at: datetime | None


@dataclass(frozen=True)
class Attempt:
    """An attempt of a task that has ended.

    `how` is `acked`, `released`, `failed`, `buried`, `expired`, `closed` or `snatched`. `name` and
    `address` are those of the client that had the task, as far as they are known.
    """

    client: int | None
    name: str | None
    address: str | None
    taken_at: datetime | None
    ended_at: datetime | None
    how: str
    reason: str | None


@dataclass(frozen=True)
class Awaited(WithResult):
    """How a task that was awaited ended, its state, and as `result` what came of the work."""

    outcome: Outcome
    state: State


@dataclass(frozen=True)
class Reason:
    """One reason why a task is not handed out, with what belongs to it."""

    code: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """Why a task is not handed out, or which task is next. `id` is None if none can be.

    `eta` says in how many seconds it is handed out if all goes on as in the last minute, `eta_low`
    and `eta_high` how far that may be off. They are None where that cannot be told.
    """

    id: str | None
    state: State | None
    since: datetime | None
    reasons: tuple[Reason, ...]
    eta: float | None = None
    eta_low: float | None = None
    eta_high: float | None = None


@dataclass(frozen=True)
class Lease:
    """Who holds a task. `until` is None for a lease that ends with its connection."""

    queue: str
    member: str | None
    id: str
    client: int | None
    name: str | None
    address: str | None
    door: str | None
    since: datetime | None
    until: datetime | None
    #: How far the work has come, if the holder has told that.
    progress: str | None = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a long answer. Go on with `cursor` until it is `0`."""

    cursor: str
    items: tuple[T, ...]


@dataclass(frozen=True)
class Changed:
    """How many tasks a bulk change was about: those that have changed, and all it looked at."""

    changed: int
    looked: int


@dataclass(frozen=True)
class MemberShown:
    """A member of a topic, as `members` tells it."""

    member: str
    incarnation: int
    lease_until: datetime | None
    ready: int
    taken: int


@dataclass(frozen=True)
class BatchShown:
    """How far a batch is.

    `state` is `open`, `closed` or `done`. Of its `total` tasks so many are `pending`, those that
    are `buried` among them, `acked`, or `failed`, which is every other end. So many tasks are
    `waiting` for it.
    """

    name: str
    state: str
    total: int
    pending: int
    buried: int
    acked: int
    failed: int
    waiting: int
    opened_at: datetime | None
    done_at: datetime | None


@dataclass(frozen=True)
class Stats:
    """The figures of a queue, a lane, or of all together.

    `counts` has the tasks in each state. `figures` has every figure under its name of the
    protocol, such as `put`, `acked` or `oldest_ready_ms`; spans there are milliseconds.
    """

    counts: Mapping[State, int]
    transitions: Mapping[str, int]
    figures: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.figures[name]


@dataclass(frozen=True)
class ScheduleShown:
    """What a schedule does and what it has done. Spans are in seconds."""

    name: str
    queue: str
    payload: bytes
    cron: str | None
    zone: str | None
    key: bytes | None
    priority: int | None
    every: float | None
    at: datetime | None
    ttl: float | None
    ttr: float | None
    fired: int
    missed: int
    last_slot: datetime | None
    next_at: datetime | None
    last_id: str | None
    on_missed: str
    overlap: str
    paused: bool
    share: bytes | None = None
    cost: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    #: How often a task may fail, and how long it waits then, if not as its queue says.
    attempts_max: int | Literal["none"] | None = None
    backoff: float | Literal["none"] | None = None
    backoff_max: float | None = None
