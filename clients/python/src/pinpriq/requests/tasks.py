"""Requests that put, take, show and change tasks."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Literal

from .. import parsing
from ..errors import Refused
from ..replies import Awaited, Explanation, Lease, Page, Put, State, Task
from ..serialisers import Serialiser
from ..spans import Moment, Span, moment_ms
from .base import NO_PRIORITY, OWN, Name, OwnKey, Priority, Receipt, Repeat, Request, Words

#: What a duplicate of a unique key does.
OnDuplicate = Literal["keep", "reject", "replace"]

#: Which end of the priorities, and which among equals.
From = Literal["min", "max"]
Order = Literal["oldest", "newest"]

#: The most tasks that one take may acknowledge.
DONE_MAX = 100

#: How long the server remembers the unique key of a task that is put back, in seconds.
PUT_BACK_WINDOW_S = 30.0

#: The most bytes of a reason.
REASON_BYTES_MAX = 1024


def own_key() -> str:
    """Return a unique key that no other put has: 128 random bits in 22 letters."""
    return secrets.token_urlsafe(16)


def cut_reason(reason: str) -> bytes:
    """Return a reason that fits, cut between two letters if it is too long."""
    return reason.encode("utf-8", "replace")[:REASON_BYTES_MAX].decode("utf-8", "ignore").encode()


def put(
    queue: Name,
    payload: bytes,
    *,
    key: Name | None,
    priority: Priority | None,
    delay: Span | None,
    at: Moment | None,
    ttl: Span | None,
    ttr: Span | None,
    id: Name | None,
    room: Span | None,
    unique: Name | OwnKey | None,
    window: Span | None,
    on_duplicate: OnDuplicate | None,
    buried: bool,
    reason: str | None,
    own_window: Span,
    wait_ms: int | None,
) -> Request[Put]:
    """Put a task. `own_window` is for a put whose unique key is its own."""
    own = unique is OWN
    if buried and own:
        # The server refuses a unique key here.
        unique, own = None, False
    words = Words("PUT", queue, payload).option("KEY", key).priority(priority)
    words.span("DELAY", delay).option("AT", None if at is None else moment_ms(at))
    words.span("TTL", ttl).span("TTR", ttr).option("ID", id)
    words.option("WAIT", wait_ms).span("ROOM", room)
    if unique is not None:
        words.option("UNIQUE", own_key() if unique is OWN else unique)
        words.span("WINDOW", own_window if own and window is None else window)
    words.option("ONDUP", on_duplicate)
    if buried:
        words.add("STATE", "B")
    words.option("REASON", None if reason is None else cut_reason(reason))
    parse = parsing.put(unique is not None, wait_ms is not None, own)
    return words.request(parse, Repeat.NEVER if unique is None else Repeat.SAFE)


def _take(
    verb: str,
    queues: Sequence[Name],
    *,
    count: int,
    wait_ms: int,
    ttr: Span | None,
    from_: From | None,
    order: Order | None,
    group: bool,
    meta: bool,
    member: Name | None,
    done: Iterable[tuple[Name, Receipt]],
) -> Request[list[Task]]:
    words = Words(verb).names(queues)
    if count != 1:
        words.option("COUNT", count)
    if wait_ms:
        words.option("WAIT", wait_ms)
    words.span("TTR", ttr).option("FROM", from_).option("ORDER", order)
    words.switch("GROUP", group).switch("WITHMETA", meta)
    finishes = False
    for queue, receipt in done:
        words.add("DONE", queue, receipt)
        finishes = True
    words.option("MEMBER", member)
    repeat = Repeat.NEVER if verb == "POP" or finishes else Repeat.SAFE
    # The caller reads the payloads, so that one that cannot be read does not hide the others.
    request = words.request(parsing.tasks(None), repeat)
    if verb == "POP" and member is not None:
        return request
    return replace(request, undo=lambda tasks: undone(tasks, member))


def undone(tasks: Sequence[Task], member: Name | None) -> list[Sequence[Request[Any]]]:
    """Return what gives taken tasks back, and puts popped ones back as new tasks.

    Each is a request, and others to try if that is refused: a queue may want ids to be given.
    Nothing can be put back into the lane of a member.
    """
    steps: list[Sequence[Request[Any]]] = []
    for task in tasks:
        if task.receipt is not None:
            steps.append([release(task.queue, task.receipt, member=member)])
        elif member is None:
            steps.append([_put_again(task, None), _put_again(task, task.id)])
    return steps


def _put_again(task: Task, id_: str | None) -> Request[Put]:
    now = datetime.now(timezone.utc)
    ttl_s = None if task.ttl_at is None else max(0.001, (task.ttl_at - now).total_seconds())
    # Without a state nothing but the payload was told.
    told = task.state is not None
    return put(
        task.queue,
        task.payload,
        key=task.key,
        priority=NO_PRIORITY if told and task.priority is None else task.priority,
        delay=None,
        at=None,
        ttl=ttl_s,
        ttr=None,
        id=id_,
        room=None,
        unique=OWN,
        window=None,
        on_duplicate=None,
        buried=False,
        reason=None,
        own_window=PUT_BACK_WINDOW_S,
        wait_ms=None,
    )


def take(
    queues: Sequence[Name],
    *,
    count: int = 1,
    wait_ms: int = 0,
    ttr: Span | None = None,
    from_: From | None = None,
    order: Order | None = None,
    group: bool = False,
    meta: bool = True,
    member: Name | None = None,
    done: Iterable[tuple[Name, Receipt]] = (),
) -> Request[list[Task]]:
    """Take tasks under a lease. A repeated one leaves the lease of a lost reply to its end."""
    return _take(
        "TAKE",
        queues,
        count=count,
        wait_ms=wait_ms,
        ttr=ttr,
        from_=from_,
        order=order,
        group=group,
        meta=meta,
        member=member,
        done=done,
    )


def pop(
    queues: Sequence[Name],
    *,
    count: int,
    wait_ms: int,
    from_: From | None,
    order: Order | None,
    group: bool,
    meta: bool,
    member: Name | None,
) -> Request[list[Task]]:
    """Take tasks for good. It is never sent again, since the tasks of a lost reply are gone."""
    return _take(
        "POP",
        queues,
        count=count,
        wait_ms=wait_ms,
        ttr=None,
        from_=from_,
        order=order,
        group=group,
        meta=meta,
        member=member,
        done=(),
    )


def peek(
    queue: Name,
    serialiser: Serialiser,
    *,
    count: int,
    state: State | None,
    from_: From | None,
    order: Order | None,
    meta: bool,
    member: Name | None,
) -> Request[list[Task]]:
    """Show tasks."""
    words = Words("PEEK", queue).option("FROM", from_).option("ORDER", order)
    words.option("STATE", None if state is None else State(state).value).option("COUNT", count)
    words.switch("WITHMETA", meta).option("MEMBER", member)
    return words.request(parsing.tasks(serialiser), Repeat.SAFE)


def get(queue: Name, id: Name, serialiser: Serialiser, member: Name | None) -> Request[Task | None]:
    """Show one task."""
    words = Words("GET", queue, id).option("MEMBER", member)
    return words.request(parsing.task_or_none(serialiser), Repeat.SAFE)


def ack(
    queue: Name,
    receipts: Sequence[Receipt],
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    zombie: Span | None = None,
    member: Name | None = None,
) -> Request[list[Refused | None]]:
    """Finish taken tasks."""
    if bool(receipts) == (id is not None):
        raise ValueError("give either receipts or the id")
    words = Words("ACK", queue).add(*receipts).option("ID", id)
    words.option("PAYLOAD", payload).span("ZOMBIE", zombie).option("MEMBER", member)
    parse = parsing.refusals(max(1, len(receipts)))
    return words.request(parse, Repeat.STALE_IS_DONE if receipts else Repeat.NEVER)


def release(
    queue: Name,
    receipt: Receipt | None,
    *,
    id: Name | None = None,
    delay: Span | None = None,
    ttl: Span | None = None,
    priority: Priority | None = None,
    payload: bytes | None = None,
    tail: bool = False,
    member: Name | None = None,
) -> Request[State]:
    """Give a taken task back."""
    words = Words("RELEASE", queue).holder(receipt, id).span("DELAY", delay).span("TTL", ttl)
    words.priority(priority).option("PAYLOAD", payload).switch("TAIL", tail)
    words.option("MEMBER", member)
    return words.request(parsing.state, Repeat.NEVER if receipt is None else Repeat.SAFE)


def bury(
    queue: Name,
    receipt: Receipt | None,
    *,
    id: Name | None,
    payload: bytes | None,
    reason: str | None,
    member: Name | None,
) -> Request[None]:
    """Set a taken task aside."""
    words = Words("BURY", queue).holder(receipt, id).option("PAYLOAD", payload)
    words.option("REASON", None if reason is None else cut_reason(reason))
    words.option("MEMBER", member)
    return words.request(parsing.nothing, Repeat.NEVER if receipt is None else Repeat.SAFE)


def fail(
    queue: Name,
    receipt: Receipt | None,
    *,
    id: Name | None,
    reason: str | None,
    delay: Span | None,
    payload: bytes | None,
    member: Name | None,
) -> Request[State]:
    """Say that a taken task failed."""
    words = Words("FAIL", queue).holder(receipt, id)
    words.option("REASON", None if reason is None else cut_reason(reason))
    words.span("DELAY", delay).option("PAYLOAD", payload).option("MEMBER", member)
    return words.request(parsing.state, Repeat.NEVER if receipt is None else Repeat.SAFE)


def touch(
    queue: Name,
    receipt: Receipt | None,
    *,
    id: Name | None = None,
    by: Span | None = None,
    member: Name | None = None,
) -> Request[datetime | None]:
    """Renew a lease, or move its deadline."""
    words = Words("TOUCH", queue).holder(receipt, id).span("BY", by).option("MEMBER", member)
    return words.request(parsing.deadline, Repeat.SAFE if by is None else Repeat.NEVER)


def dig(
    queue: Name,
    id: Name,
    *,
    delay: Span | None,
    ttl: Span | None,
    priority: Priority | None,
    payload: bytes | None,
    member: Name | None,
) -> Request[State]:
    """Bring a buried task back."""
    words = Words("DIG", queue, id).span("DELAY", delay).span("TTL", ttl).priority(priority)
    words.option("PAYLOAD", payload).option("MEMBER", member)
    return words.request(parsing.state)


def plow(
    queue: Name,
    *,
    count: int | None,
    delay: Span | None,
    ttl: Span | None,
    member: Name | None,
) -> Request[int]:
    """Bring the oldest buried tasks back."""
    words = Words("PLOW", queue).option("COUNT", count).span("DELAY", delay).span("TTL", ttl)
    return words.option("MEMBER", member).request(parsing.number)


def kick(queue: Name, count: int, member: Name | None) -> Request[int]:
    """Bring the oldest buried tasks back, in the words of beanstalkd."""
    return Words("KICK", queue, count).option("MEMBER", member).request(parsing.number)


def kick_id(queue: Name, id: Name, member: Name | None) -> Request[State]:
    """Bring a buried task back, in the words of beanstalkd."""
    words = Words("KICK", queue).option("ID", id).option("MEMBER", member)
    return words.request(parsing.state)


def kill(queue: Name, ids: Sequence[Name], member: Name | None) -> Request[int]:
    """Remove tasks."""
    return Words("KILL", queue, *ids).option("MEMBER", member).request(parsing.number)


def moved_by(
    verb: Literal["SNATCH", "RESTART"],
    queue: Name,
    id: Name,
    *,
    delay: Span | None,
    ttl: Span | None,
    member: Name | None,
) -> Request[State]:
    """Take a task away from its holder, or bring it back as if it had never been taken."""
    words = Words(verb, queue, id).span("DELAY", delay).span("TTL", ttl)
    return words.option("MEMBER", member).request(parsing.state)


def switch(
    queue: Name,
    id: Name,
    to: State,
    *,
    delay: Span | None,
    ttl: Span | None,
    member: Name | None,
) -> Request[State]:
    """Turn a task that is not taken into another state."""
    words = Words("SWITCH", queue, id, State(to).value).span("DELAY", delay).span("TTL", ttl)
    return words.option("MEMBER", member).request(parsing.state)


def update(
    queue: Name,
    id: Name,
    *,
    priority: Priority | None,
    payload: bytes | None,
    ttl: Span | Literal["none"] | None,
    receipt: Receipt | None,
    member: Name | None,
) -> Request[None]:
    """Change a task where it is."""
    words = Words("UPDATE", queue, id).priority(priority).option("PAYLOAD", payload)
    if isinstance(ttl, str):
        words.add("TTL", "NONE")
    else:
        words.span("TTL", ttl)
    words.option("RECEIPT", receipt).option("MEMBER", member)
    return words.request(parsing.nothing, Repeat.SAFE)


def move(
    queue: Name, to: Name, *, count: int | None, state: State | None, member: Name | None
) -> Request[int]:
    """Move tasks of one state to another queue."""
    words = Words("MOVE", queue, to).option("COUNT", count)
    words.option("STATE", None if state is None else State(state).value)
    return words.option("MEMBER", member).request(parsing.number)


def redrive(queue: Name, *, count: int | None, member: Name | None) -> Request[int]:
    """Move dead letters back."""
    words = Words("REDRIVE", queue).option("COUNT", count).option("MEMBER", member)
    return words.request(parsing.number)


def explain(queue: Name, id: Name | None, member: Name | None) -> Request[Explanation]:
    """Tell why a task is not handed out."""
    words = Words("EXPLAIN", queue)
    if id is not None:
        words.add(id)
    return words.option("MEMBER", member).request(parsing.explanation, Repeat.SAFE)


def scan(
    queue: Name,
    serialiser: Serialiser,
    *,
    cursor: Name,
    count: int | None,
    state: State | None,
    key: Name | None,
    meta: bool,
    member: Name | None,
) -> Request[Page[Task]]:
    """Show all tasks, page by page."""
    words = Words("SCAN", queue).option("CURSOR", cursor).option("COUNT", count)
    words.option("STATE", None if state is None else State(state).value).option("KEY", key)
    words.switch("WITHMETA", meta).option("MEMBER", member)
    return words.request(parsing.page_of_tasks(serialiser), Repeat.SAFE)


def leases(
    queue: Name | None, *, cursor: Name, count: int | None, member: Name | None
) -> Request[Page[Lease]]:
    """Show who holds which task, page by page."""
    words = Words("LEASES")
    if queue is not None:
        words.add(queue)
    words.option("COUNT", count).option("CURSOR", cursor).option("MEMBER", member)
    return words.request(parsing.page_of_leases, Repeat.SAFE)


def await_(queue: Name, id: Name, *, wait_ms: int, member: Name | None) -> Request[Awaited]:
    """Wait until a task is finished."""
    words = Words("AWAIT", queue, id)
    if wait_ms:
        words.option("WAIT", wait_ms)
    return words.option("MEMBER", member).request(parsing.awaited, Repeat.SAFE)
