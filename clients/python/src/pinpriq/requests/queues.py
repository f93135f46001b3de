"""Requests about whole queues, schedules, topics and the server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from .. import parsing
from ..replies import MemberShown, Page, QueueShown, ScheduleShown, Stats
from ..settings import QueueSettings
from ..spans import Moment, Span, moment_ms
from .base import Name, Priority, Repeat, Request, Words

#: Which side of a queue is paused: puts, takes, or both if it is None.
Side = Literal["in", "out"]


def create(queue: Name, settings: QueueSettings) -> Request[None]:
    """Make a queue that exists even when it is empty."""
    return Words("QUEUE", "CREATE", queue).add(*settings.words()).request(parsing.nothing)


def set_(queue: Name, settings: QueueSettings, member: Name | None) -> Request[None]:
    """Change settings of a queue."""
    words = Words("QUEUE", "SET", queue).add(*settings.words()).option("MEMBER", member)
    return words.request(parsing.nothing, Repeat.SAFE)


def show(queue: Name, member: Name | None) -> Request[QueueShown]:
    """Tell the settings of a queue."""
    words = Words("QUEUE", "SHOW", queue).option("MEMBER", member)
    return words.request(parsing.queue_shown, Repeat.SAFE)


def list_(
    what: Literal["QUEUE", "SCHEDULE"], prefix: Name | None, count: int | None, cursor: Name
) -> Request[Page[str]]:
    """Tell names, page by page."""
    words = Words(what, "LIST").option("PREFIX", prefix).option("COUNT", count)
    return words.option("CURSOR", cursor).request(parsing.page_of_names, Repeat.SAFE)


def truncate(queue: Name, member: Name | None) -> Request[int]:
    """Remove all tasks of a queue."""
    words = Words("QUEUE", "TRUNCATE", queue).option("MEMBER", member)
    return words.request(parsing.number)


def drop(queue: Name) -> Request[int]:
    """Remove a queue with all that belongs to it."""
    return Words("QUEUE", "DROP", queue).request(parsing.number)


def pause(queue: Name, side: Side | None, for_: Span | None, member: Name | None) -> Request[None]:
    """Pause a queue."""
    words = Words("QUEUE", "PAUSE", queue)
    if side is not None:
        words.add(side)
    words.span("FOR", for_).option("MEMBER", member)
    return words.request(parsing.nothing, Repeat.SAFE)


def resume(queue: Name, side: Side | None, member: Name | None) -> Request[None]:
    """End a pause."""
    words = Words("QUEUE", "RESUME", queue)
    if side is not None:
        words.add(side)
    return words.option("MEMBER", member).request(parsing.nothing, Repeat.SAFE)


def stats(queue: Name | None, member: Name | None) -> Request[Stats]:
    """Tell the figures of a queue, or of all together."""
    words = Words("STATS")
    if queue is not None:
        words.add(queue)
    return words.option("MEMBER", member).request(parsing.stats, Repeat.SAFE)


def export(queue: Name, cursor: Name, count: int | None) -> Request[Page[bytes]]:
    """Show all that another server needs to go on with a queue."""
    words = Words("EXPORT", queue).option("CURSOR", cursor).option("COUNT", count)
    return words.request(parsing.page_of_records, Repeat.SAFE)


def import_(queue: Name, record: Name, payload: bytes | None) -> Request[str]:
    """Take over one record of an export."""
    return Words("IMPORT", queue, record).option("PAYLOAD", payload).request(parsing.text)


def schedule_set(
    name: Name,
    queue: Name,
    payload: bytes,
    *,
    every: Span | None,
    at: Moment | None,
    cron: str | None,
    zone: str | None,
    key: Name | None,
    priority: Priority | None,
    ttl: Span | None,
    ttr: Span | None,
    missed: Literal["one", "all", "none"] | None,
    overlap: Literal["allow", "skip"] | None,
) -> Request[datetime | None]:
    """Put a task into a queue again and again."""
    words = Words("SCHEDULE", "SET", name, queue, payload).span("EVERY", every)
    words.option("AT", None if at is None else moment_ms(at)).option("CRON", cron)
    words.option("ZONE", zone).option("KEY", key).priority(priority)
    words.span("TTL", ttl).span("TTR", ttr).option("MISSED", missed).option("OVERLAP", overlap)
    return words.request(parsing.deadline, Repeat.SAFE)


def schedule_show(name: Name) -> Request[ScheduleShown]:
    """Tell what a schedule does."""
    return Words("SCHEDULE", "SHOW", name).request(parsing.schedule, Repeat.SAFE)


def schedule_pause(name: Name, verb: Literal["PAUSE", "RESUME"]) -> Request[None]:
    """Pause or resume a schedule."""
    return Words("SCHEDULE", verb, name).request(parsing.nothing, Repeat.SAFE)


def schedule_drop(name: Name) -> Request[bool]:
    """Remove a schedule."""
    return Words("SCHEDULE", "DROP", name).request(parsing.flag)


def schedule_fire(name: Name) -> Request[str]:
    """Put a task of a schedule now."""
    return Words("SCHEDULE", "FIRE", name).request(parsing.text)


def join(topic: Name, member: Name, lease: Span | None) -> Request[int]:
    """Give a member a lane in a topic."""
    words = Words("JOIN", topic, member).span("LEASE", lease)
    return words.request(parsing.number, Repeat.SAFE)


def beat(member: Name, lease: Span | None) -> Request[None]:
    """Give a sign of life."""
    return Words("BEAT", member).span("LEASE", lease).request(parsing.nothing, Repeat.SAFE)


def leave(topic: Name | None, member: Name) -> Request[int]:
    """End a lane of a member, or the member."""
    words = Words("LEAVE", member) if topic is None else Words("LEAVE", topic, member)
    return words.request(parsing.number)


def publish(
    topic: Name,
    payload: bytes,
    *,
    key: Name | None,
    priority: Priority | None,
    deadline: Moment | None,
    ttl: Span | None,
) -> Request[int]:
    """Put one task into each lane of a topic."""
    words = Words("PUBLISH", topic, payload).option("KEY", key).priority(priority)
    words.option("DEADLINE", None if deadline is None else moment_ms(deadline)).span("TTL", ttl)
    return words.request(parsing.number)


def members(topic: Name) -> Request[list[MemberShown]]:
    """Tell the members of a topic."""
    return Words("MEMBERS", topic).request(parsing.members, Repeat.SAFE)


def ping() -> Request[None]:
    """Ask for a sign of life of the server."""
    return Words("PING").request(parsing.nothing, Repeat.SAFE)


def info(sections: Sequence[str]) -> Request[dict[str, str]]:
    """Tell about the server."""
    return Words("INFO", *sections).request(parsing.info, Repeat.SAFE)


def whoami() -> Request[str | None]:
    """Tell the user of the connection."""
    return Words("ACL", "WHOAMI").request(parsing.text_or_none, Repeat.SAFE)


def client_list() -> Request[str]:
    """Tell who is connected."""
    return Words("CLIENT", "LIST").request(parsing.text, Repeat.SAFE)


def client_kill(numbers: Sequence[int]) -> Request[int]:
    """End connections by number."""
    words = Words("CLIENT", "KILL")
    for each in numbers:
        words.option("ID", each)
    return words.request(parsing.number)
