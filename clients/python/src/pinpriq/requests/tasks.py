"""Requests that put, take and settle tasks: more than the words of `pinpriq.commands`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .. import commands, parsing
from ..errors import Refused
from ..replies import Put, State
from ..serialisers import Serialiser
from ..spans import Span
from ..task import Task
from .base import NO_PRIORITY, OWN, Done, Name, OwnKey, Receipt, Repeat, Request, Words

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The most tasks that one take may acknowledge.
DONE_MAX = 100

#: How long the server remembers the unique key of a task that is put back, in seconds.
PUT_BACK_WINDOW_S = 30.0


def own_key() -> str:
    """Return a unique key that no other put has: 128 random bits in 22 letters."""
    return secrets.token_urlsafe(16)


def put(
    queue: Name,
    payload: bytes,
    *,
    unique: Name | OwnKey | None,
    own_window: Span,
    buried: bool = False,
    wait_ms: int | None = None,
    serialiser: Serialiser | None = None,
    **options: Unpack[commands.PutOptions],
) -> Request[Put]:
    """Put a task. `own_window` is for a put whose unique key is its own.

    With `wait_ms` it waits for the end of the task, whose result the serialiser reads.
    """
    own = unique is OWN
    if buried and own:
        # The server refuses a unique key here.
        unique, own = None, False
    if own and options.get("window") is None:
        options["window"] = own_window
    if unique is None:
        options.pop("window", None)
    words = commands.put(
        queue,
        payload,
        unique=own_key() if unique is OWN else unique,
        state=State.BURIED if buried else None,
        result=wait_ms is not None,
        **options,
    )
    parse = parsing.put(unique is not None, wait_ms is not None, own, serialiser)
    repeat = Repeat.NEVER if unique is None else Repeat.SAFE
    return words.option("WAIT", wait_ms).request(parse, repeat)


def take(
    queues: Sequence[Name],
    *,
    count: int = 1,
    wait_ms: int = 0,
    member: Name | None = None,
    done: Iterable[Done] = (),
    **options: Unpack[commands.TakeOptions],
) -> Request[list[Task]]:
    """Take tasks under a lease. A repeated one leaves the lease of a lost reply to its end."""
    finished = tuple(done)
    words = commands.take(
        queues, count=_count(count), meta=True, member=member, done=finished, **options
    )
    # The caller reads the payloads, so that one that cannot be read does not hide the others.
    repeat = Repeat.NEVER if finished else Repeat.SAFE
    request = _waiting(words, wait_ms).request(parsing.tasks(None), repeat)
    return replace(request, undo=lambda tasks: undone(tasks, member))


def pop(
    queues: Sequence[Name],
    *,
    count: int,
    wait_ms: int,
    member: Name | None,
    **options: Unpack[commands.PopOptions],
) -> Request[list[Task]]:
    """Take tasks for good. It is never sent again, since the tasks of a lost reply are gone."""
    words = commands.pop(queues, count=_count(count), meta=True, member=member, **options)
    request = _waiting(words, wait_ms).request(parsing.tasks(None))
    if member is not None:
        return request
    return replace(request, undo=lambda tasks: undone(tasks, member))


def _count(count: int) -> int | None:
    return None if count == 1 else count


def _waiting(words: Words, wait_ms: int) -> Words:
    return words.option("WAIT", wait_ms or None)


def undone(tasks: Sequence[Task], member: Name | None) -> list[Sequence[Request[Any]]]:
    """Return what gives taken tasks back, and puts popped ones back as new tasks.

    Each is a request, and others to try if that is refused: a queue may want ids to be given.
    Nothing can be put back into the lane of a member.
    """
    steps: list[Sequence[Request[Any]]] = []
    for task in tasks:
        if task.receipt is not None:
            words = commands.release(task.queue, task.receipt, member=member)
            steps.append([words.request(parsing.state, Repeat.SAFE)])
        elif member is None:
            steps.append([_put_again(task, None), _put_again(task, task.id)])
    return steps


def _put_again(task: Task, id_: str | None) -> Request[Put]:
    now = datetime.now(timezone.utc)
    ttl_s = None if task.ttl_at is None else max(0.001, (task.ttl_at - now).total_seconds())
    # Without a state only the payload is known.
    told = task.state is not None
    return put(
        task.queue,
        task.payload,
        key=task.key,
        priority=NO_PRIORITY if told and task.priority is None else task.priority,
        ttl=ttl_s,
        id=id_,
        unique=OWN,
        own_window=PUT_BACK_WINDOW_S,
    )


def ack(
    queue: Name,
    receipts: Sequence[Receipt],
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    result: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[commands.AckOptions],
) -> Request[list[Refused | None]]:
    """Finish taken tasks."""
    words = commands.ack(
        queue, *receipts, id=id, payload=payload, result=result, member=member, **options
    )
    parse = parsing.refusals(max(1, len(receipts)))
    return words.request(parse, Repeat.STALE_IS_DONE if receipts else Repeat.NEVER)


def repeat_of(receipt: Receipt | None) -> Repeat:
    """Say whether a request about a lease is safe to send again: it is with a receipt."""
    return Repeat.NEVER if receipt is None else Repeat.SAFE


def touch(
    queue: Name,
    receipt: Receipt | None,
    *,
    id: Name | None = None,
    member: Name | None = None,
    **options: Unpack[commands.TouchOptions],
) -> Request[datetime | None]:
    """Renew a lease, or move its deadline, and tell how far the work has come."""
    words = commands.touch(queue, receipt, id=id, member=member, **options)
    return words.request(
        parsing.deadline, Repeat.SAFE if options.get("by") is None else Repeat.NEVER
    )
