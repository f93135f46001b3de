"""Turns the replies of the server, as redis-py gives them for RESP2, into values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from .errors import Refused, is_refusal, refusal_from
from .replies import (
    Awaited,
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
from .task import Task, task_of
from .values import mapping, text, text_or_none


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


def put(unique: bool, waits: bool, always_new: bool) -> Callable[[Any], Put]:
    """Return the parser for the reply to a put with these options.

    With `always_new` the unique key is of this put alone. Then a duplicate is the put itself,
    whose first reply was lost.
    """

    def parse(reply: Any) -> Put:
        if not unique and not waits:
            return Put(text(reply), True)
        new = True if always_new or not unique else flag(reply[1])
        outcome = reply[-1] if waits else None
        return Put(text(reply[0]), new, None if outcome is None else Outcome(text(outcome)))

    return parse


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
    return task_of(of, value, origin)


def tasks(serialiser: Serialiser | None) -> Callable[[Any], list[Task]]:
    """Return the parser for an array of tasks. Without a serialiser they have no values."""

    def parse(reply: Any) -> list[Task]:
        return [task(each, serialiser) for each in reply or []]

    return parse


def task_or_none(serialiser: Serialiser) -> Callable[[Any], Task | None]:
    """Return the parser for one task or null."""

    def parse(reply: Any) -> Task | None:
        return None if reply is None else task(reply, serialiser)

    return parse


def page_of_tasks(serialiser: Serialiser) -> Callable[[Any], Page[Task]]:
    """Return the parser for a page of tasks."""

    def parse(reply: Any) -> Page[Task]:
        return Page(text(reply[0]), tuple(task(each, serialiser) for each in reply[1]))

    return parse


def page_of_names(reply: Any) -> Page[str]:
    """Return a page of names."""
    return Page(text(reply[0]), tuple(text(each) for each in reply[1]))


def page_of_records(reply: Any) -> Page[bytes]:
    """Return a page of an export, whose records are JSON."""
    return Page(text(reply[0]), tuple(reply[1]))


def lease(reply: Any) -> Lease:
    """Return one lease."""
    of = mapping(reply)
    return Lease(
        text(of["queue"]),
        text_or_none(of["member"]),
        text(of["id"]),
        of["client"],
        text_or_none(of["name"]),
        text_or_none(of["address"]),
        text_or_none(of.get("door")),
        moment_of(of["since"]),
        moment_of(of["until"]),
    )


def page_of_leases(reply: Any) -> Page[Lease]:
    """Return a page of leases."""
    return Page(text(reply[0]), tuple(lease(each) for each in reply[1]))


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


def awaited(reply: Any) -> Awaited:
    """Return how a task ended."""
    return Awaited(Outcome(text(reply[0])), state(reply[1]))


def explanation(reply: Any) -> Explanation:
    """Return why a task is not handed out."""
    of = mapping(reply)
    reasons = []
    for each in of["reasons"]:
        details = mapping(each)
        code = text(details.pop("code"))
        for name, value in details.items():
            if name in ("until", "since", "next_at"):
                details[name] = moment_of(value)
            elif isinstance(value, bytes):
                details[name] = text(value)
        reasons.append(Reason(code, details))
    return Explanation(
        text_or_none(of["id"]),
        None if of["state"] is None else state(of["state"]),
        moment_of(of["since"]),
        tuple(reasons),
    )


def members(reply: Any) -> list[MemberShown]:
    """Return the members of a topic."""
    shown = []
    for each in reply:
        of = mapping(each)
        shown.append(
            MemberShown(
                text(of["member"]),
                of["incarnation"],
                moment_of(of["lease_until"]),
                of["ready"],
                of["taken"],
            )
        )
    return shown


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
    of = mapping(reply)
    return ScheduleShown(
        name=text(of["name"]),
        queue=text(of["queue"]),
        payload=of["payload"],
        cron=text_or_none(of["cron"]),
        zone=text_or_none(of["zone"]),
        key=of["key"],
        priority=of["priority"],
        every=span_of(of["every"]),
        at=moment_of(of["at"]),
        ttl=span_of(of["ttl"]),
        ttr=span_of(of["ttr"]),
        fired=of["fired"],
        missed=of["missed"],
        last_slot=moment_of(of["last_slot"]),
        next_at=moment_of(of["next_at"]),
        last_id=text_or_none(of["last_id"]),
        on_missed=text(of["on_missed"]),
        overlap=text(of["overlap"]),
        paused=text(of["paused"]) == "yes",
    )


def info(reply: Any) -> dict[str, str]:
    """Return the facts of `INFO`, by name."""
    lines = (line.partition(":") for line in text(reply).splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
