"""What the server tells about a task.

Printed from the server's table of fields by `cargo test -p pinpriq-proto printed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .replies import Attempt, Origin, State


@dataclass(frozen=True)
class Task:
    """A task and all that the server tells about it.

    The fields after `payload` have their default unless the request asked for everything (`meta`).
    `receipt` is only there for a task that was just taken. `slot` is that of a task that a schedule
    has put.
    """

    #: Name; for a task in a lane the topic.
    queue: str
    #: Its id.
    id: str
    #: Of the lease just granted (TAKE).
    receipt: str | None
    #: Its bytes.
    payload: bytes
    #: The payload as the serialiser of the queue reads it.
    value: Any = None
    #: Whose lane it is in, if it is in one.
    member: str | None = None
    #: Its key, if it has one.
    key: bytes | None = None
    #: On whose behalf it runs, if its put said that.
    share: bytes | None = None
    #: What a take of it costs.
    cost: int = 0
    #: Its priority, if it has one.
    priority: int | None = None
    #: A letter; for POP the state before it was popped, R.
    state: State | None = None
    #: How often it was taken, this time included.
    attempts: int = 0
    #: How often it has failed.
    failures: int = 0
    #: Why it failed or was buried the last time, perhaps empty.
    reason: str | None = None
    #: Moment of the put.
    put_at: datetime | None = None
    #: End of its time to live, if it has one.
    ttl_at: datetime | None = None
    #: End of its delay, in W.
    ready_at: datetime | None = None
    #: End of its lease, in T, if the lease has a TTR.
    lease_until: datetime | None = None
    #: End of its stay, in Z.
    purge_at: datetime | None = None
    #: Number of the client that has taken it, in T, until the server restarts.
    client: int | None = None
    #: Name of that client, if it has one and is still connected.
    client_name: str | None = None
    #: Address of that client, while it is connected.
    client_address: str | None = None
    #: The schedule that has put it, if one has.
    schedule: str | None = None
    #: Moment of the slot for which a schedule has put it.
    slot: datetime | None = None
    #: Short values by name that its put gave it.
    headers: dict[str, str] = field(default_factory=dict)
    #: Why it was cancelled, perhaps empty, in T until its holder stops.
    cancelled: str | None = None
    #: How far the work has come, for people, in T if its holder has said that.
    progress: str | None = None
    #: How far the work has come, for who takes it next, if a holder has said that.
    checkpoint: bytes | None = None
    #: The batch it is pending in.
    batch: str | None = None
    #: The batches that have to be done before it, in W.
    after: tuple[str, ...] = ()
    #: Whether it waits in W until it is freed.
    held: bool = False
    #: What has come of the work, if it is finished and its holder said that.
    result: bytes | None = None
    #: How often it may fail before it is given up, if its put said that.
    attempts_max: int | Literal["none"] | None = None
    #: How long it waits after its first failure, if its put said that.
    backoff: float | Literal["none"] | None = None
    #: The longest that it waits after a failure, if its put said that.
    backoff_max: float | None = None
    #: Its last attempts that have ended, oldest first (GET).
    history: tuple[Attempt, ...] = ()
    #: Where a dead letter comes from.
    origin: Origin | None = None
