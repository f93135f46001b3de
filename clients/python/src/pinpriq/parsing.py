"""Turns the replies of the server, as redis-py gives them for RESP2, into values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from .errors import Refused, is_refusal, refusal_from
from .replies import (
    Attempt,
    Awaited,
    BatchShown,
    Explanation,
    Lease,
    MemberShown,
    Origin,
    Outcome,
    Page,
    Put,
    Reason,
    ScheduleShown,
    State,
    Stats,
)
from .serialisers import Serialiser
from .spans import moment_of, span_of
from .task import Task
from .values import mapping, text, text_or_none, texts

T = TypeVar("T")


def plain(value: Any) -> Any:
    """Return any reply with texts instead of bytes."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return text(value) if isinstance(value, bytes) else value


def nothing(_: Any) -> None:
    """Ignore a reply that only says that it is done."""


def number(value: Any) -> int:
    """Return a number."""
    return int(value)


def flag(value: Any) -> bool:
    """Tell whether a count is not 0."""
    return int(value) != 0


def state(value: Any) -> State:
    """Return the state that one letter means."""
    return State(text(value))


def rate_of(shown: Any) -> tuple[int, float] | None:
    """Return a number of tasks and the span for them, or None for null."""
    if shown is None:
        return None
    count, _, ms = text(shown).partition("/")
    return int(count), int(ms) / 1000


def put(
    unique: bool, waits: bool, always_new: bool, serialiser: Serialiser | None = None
) -> Callable[[Any], Put]:
    """Return the parser for the reply to a put with these options. One that waits asks for results.

    With `always_new` the unique key is of this put alone. Then a duplicate is the put itself,
    whose first reply was lost.
    """

    def parse(reply: Any) -> Put:
        if not unique and not waits:
            return Put(text(reply), True)
        new = True if always_new or not unique else flag(reply[1])
        if not waits:
            return Put(text(reply[0]), new)
        outcome = None if reply[-2] is None else Outcome(text(reply[-2]))
        return Put(text(reply[0]), new, outcome, result_bytes=reply[-1], serialiser=serialiser)

    return parse


#: How the fields of a record are read, by their types. Others are as they came.
_READ: dict[str, Callable[[Any], Any]] = {
    "str": text,
    "str | None": text_or_none,
    "datetime | None": moment_of,
    "float": span_of,
    "float | None": span_of,
    "tuple[int, float] | None": rate_of,
    "State | None": state,
    "int | Literal['none'] | None": plain,
    "float | Literal['none'] | None": (
        lambda reply: text(reply) if isinstance(reply, bytes) else span_of(reply)
    ),
    "dict[str, str]": texts,
    "tuple[str, ...]": lambda reply: tuple(map(text, reply or ())),
    "tuple[Attempt, ...]": lambda reply: tuple(record(Attempt, mapping(it)) for it in reply or ()),
    "bool": lambda reply: text(reply) in ("yes", "on"),
}


def record(kind: type[T], of: Mapping[str, Any], **others: Any) -> T:
    """Return a record of this class from a map with the names of its fields."""
    for name, type_ in kind.__annotations__.items():
        if name in of:
            read = _READ.get(type_)
            others[name] = of[name] if read is None else read(of[name])
    return kind(**others)


def task(reply: Any, serialiser: Serialiser | None) -> Task:
    """Return one task, from an array of four or from a map."""
    if len(reply) == 4 and not isinstance(reply, dict):
        queue, id_, receipt, payload = reply
        return Task(
            text(queue),
            text(id_),
            text_or_none(receipt),
            payload,
            serialiser.load(payload) if serialiser else None,
        )
    of = mapping(reply)
    origin = None
    if of["origin_queue"] is not None:
        origin = Origin(
            text(of["origin_queue"]),
            text(of["origin_id"]),
            moment_of(of["origin_put_at"]),
            int(of["origin_attempts"] or 0),
            int(of["origin_failures"] or 0),
            moment_of(of["origin_at"]),
        )
    value = serialiser.load(of["payload"]) if serialiser else None
    return record(Task, of, receipt=None, value=value, origin=origin)


def tasks(serialiser: Serialiser | None) -> Callable[[Any], list[Task]]:
    """Return the parser for an array of tasks. Without a serialiser they have no values."""
    return lambda reply: [task(each, serialiser) for each in reply or []]


def page(item: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    """Return the parser for a page of these."""
    return lambda reply: Page(text(reply[0]), tuple(map(item, reply[1])))


def lease(reply: Any) -> Lease:
    """Return one lease."""
    return record(Lease, mapping(reply), door=None)


def refusals(count: int) -> Callable[[Any], list[Refused | None]]:
    """Return the parser for the reply to an `ACK` of so many receipts: None for each that is done.

    A single receipt that is refused raises instead.
    """

    def parse(reply: Any) -> list[Refused | None]:
        if count == 1:
            return [None]
        return [refusal_from(each) if is_refusal(each) else None for each in reply]

    return parse


def deadline(reply: Any) -> datetime | None:
    """Return the moment that the reply names, or None."""
    return moment_of(reply)


def awaited(serialiser: Serialiser) -> Callable[[Any], Awaited]:
    """Return the parser for how a task ended, and what came of the work."""
    return lambda reply: Awaited(
        Outcome(text(reply[0])), state(reply[1]), result_bytes=reply[2], serialiser=serialiser
    )


def explanation(reply: Any) -> Explanation:
    """Return why a task is not handed out."""
    of = mapping(reply)
    reasons = []
    for each in of["reasons"]:
        details = mapping(each)
        code = text(details.pop("code"))
        for name, value in details.items():
            if name in ("until", "since", "next_at", "open_at", "at"):
                details[name] = moment_of(value)
            elif isinstance(value, bytes):
                details[name] = text(value)
        reasons.append(Reason(code, details))
    return Explanation(
        text_or_none(of["id"]),
        None if of["state"] is None else state(of["state"]),
        moment_of(of["since"]),
        tuple(reasons),
        span_of(of["eta_ms"]),
        span_of(of["eta_low"]),
        span_of(of["eta_high"]),
    )


def members(reply: Any) -> list[MemberShown]:
    """Return the members of a topic."""
    return [record(MemberShown, mapping(each)) for each in reply]


def stats(reply: Any) -> Stats:
    """Return the figures of a queue or of all."""
    figures: dict[str, Any] = {}
    for name, value in mapping(reply).items():
        if isinstance(value, list | dict):
            figures[name] = mapping(value)
        else:
            figures[name] = text(value) if isinstance(value, bytes) else value
    counts = {State(letter): count for letter, count in figures["counts"].items()}
    return Stats(counts, figures["transitions"], figures)


def schedule(reply: Any) -> ScheduleShown:
    """Return what a schedule does."""
    return record(ScheduleShown, mapping(reply))


def batch(reply: Any) -> BatchShown:
    """Return how far a batch is."""
    return record(BatchShown, mapping(reply))


def batch_awaited(reply: Any) -> tuple[bool, BatchShown]:
    """Return whether a batch that was awaited is done, and how far it is."""
    return text(reply[0]) == "done", batch(reply[1])


def info(reply: Any) -> dict[str, str]:
    """Return the facts of `INFO`, by name."""
    lines = (line.partition(":") for line in text(reply).splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
