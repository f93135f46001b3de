"""The words of every command, with their types.

Printed from the server's table of commands by `cargo test -p pinpriq-proto printed`. The methods of
queues use these functions. `Queue.command` and `Client.command` send any of them.

Where there is a `member`, its lane is meant, and the queue is the topic then. `meta` asks for all
that is known of each task, `wait` says how long to wait, `payload` is the new one of the task, and
a `cursor` is `"0"` at first, then that of the last reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from .replies import State
from .requests.base import Done, Name, Priority, Receipt, Words
from .settings import QueueSettings
from .spans import Moment, Span

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: How each option is sent: its word, and the method of `Words` that adds it.
OPTIONS = {
    "key": ("KEY", "option"),
    "priority": ("PRIORITY", "priority"),
    "delay": ("DELAY", "span"),
    "at": ("AT", "moment"),
    "ttl": ("TTL", "span"),
    "ttr": ("TTR", "span"),
    "id": ("ID", "option"),
    "window": ("WINDOW", "span"),
    "on_duplicate": ("ONDUP", "option"),
    "reason": ("REASON", "reason"),
    "share": ("SHARE", "option"),
    "cost": ("COST", "option"),
    "headers": ("HEADERS", "headers"),
    "held": ("HELD", "switch"),
    "attempts": ("ATTEMPTS", "option"),
    "backoff": ("BACKOFF", "span"),
    "backoff_max": ("BACKOFFMAX", "span"),
    "batch": ("BATCH", "option"),
    "after": ("AFTER", "counted"),
    "only_if": ("IF", "option"),
    "from_": ("FROM", "option"),
    "order": ("ORDER", "option"),
    "group": ("GROUP", "switch"),
    "state": ("STATE", "state"),
    "zombie": ("ZOMBIE", "span"),
    "tail": ("TAIL", "switch"),
    "checkpoint": ("CHECKPOINT", "option"),
    "by": ("BY", "span"),
    "progress": ("PROGRESS", "option"),
    "receipt": ("RECEIPT", "option"),
    "count": ("COUNT", "option"),
    "grace": ("GRACE", "span"),
    "restart": ("RESTART", "switch"),
    "cancel": ("CANCEL", "switch"),
    "kill": ("KILL", "switch"),
    "redrive": ("REDRIVE", "switch"),
    "move": ("MOVE", "option"),
    "priorities": ("PRIORITIES", "two"),
    "older": ("OLDER", "span"),
    "failures": ("FAILURES", "option"),
    "header": ("HEADER", "two"),
    "dry": ("DRY", "switch"),
    "pop": ("POP", "switch"),
    "recall": ("RECALL", "switch"),
    "lease": ("LEASE", "span"),
    "deadline": ("DEADLINE", "moment"),
    "prefix": ("PREFIX", "option"),
    "for_": ("FOR", "span"),
    "weight": ("WEIGHT", "option"),
    "limit": ("LIMIT", "option"),
    "rate": ("RATE", "option"),
    "top": ("TOP", "switch"),
    "max": ("MAX", "option"),
    "every": ("EVERY", "span"),
    "cron": ("CRON", "option"),
    "zone": ("ZONE", "option"),
    "missed": ("MISSED", "option"),
    "overlap": ("OVERLAP", "option"),
}


class PutOptions(TypedDict, total=False):
    """Options of `put`."""

    #: The key: tasks of a queue with the same key form a group.
    key: Name | None
    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None
    #: How long the task waits before it can be taken.
    delay: Span | None
    #: The moment from which the task can be taken, instead of a delay.
    at: Moment | None
    #: How long the task lives unless it is taken.
    ttl: Span | None
    #: How long a lease of the task lasts unless it is renewed.
    ttr: Span | None
    #: The id, for a queue whose ids are given.
    id: Name | None
    #: How long the unique key counts after the put, even if the task is finished.
    window: Span | None
    #: What a duplicate does: keep the first task as it is (the default), be rejected, or replace
    #: it.
    on_duplicate: Literal["keep", "reject", "replace"] | None
    #: Why, for people who look at the task later; at most 1,024 bytes.
    reason: str | None
    #: On whose behalf the task runs, for fair turns and limits: its key unless it is given.
    share: Name | None
    #: What a take costs: rates and turns count it, 1 unless it is given.
    cost: int | None
    #: Short values by name that travel with the payload, such as a trace; at most 16.
    headers: Mapping[str, Name] | None
    #: The task waits until RESTART frees it, or TAKE with its ID, or CANCEL ends it.
    held: bool
    #: How often the task may fail before it is given up, instead of what its queue says.
    attempts: int | Literal["none"] | None
    #: How long the task waits after its first failure, instead of what its queue says.
    backoff: Span | Literal["none"] | None
    #: The longest that the task waits after a failure, instead of what its queue says.
    backoff_max: Span | None
    #: The batch that the task is in, which is made if there is none.
    batch: Name | None
    #: Batches that have to be done before the task can be taken; at most 16.
    after: Sequence[Name] | None
    #: Whether the task is skipped after AFTER: never (done, the default), if a task of those
    #: batches has failed (acked), or if none has (failed).
    only_if: Literal["done", "acked", "failed"] | None


def put(
    queue: Name,
    payload: bytes,
    *,
    wait: Span | None = None,
    room: Span | None = None,
    unique: Name | None = None,
    state: State | None = None,
    result: bool = False,
    **options: Unpack[PutOptions],
) -> Words:
    """Puts a task into a queue.

    The reply: the id; with WAIT the id and the outcome; with UNIQUE the id, whether it is new (1
    or 0), and with WAIT the outcome; with RESULT the result last.

    `room`: how long to wait for room in a full queue.
    `unique`: no second task is put with this key while the first is unfinished.
    `state`: the task is buried at once.
    `result`: what has come of the work is part of the answer, as its last element.
    """
    words = Words("PUT", queue, payload).wait("WAIT", wait).span("ROOM", room)
    words.option("UNIQUE", unique).state("STATE", state).switch("RESULT", result)
    return words.options(options, PutOptions, OPTIONS)


class TakeOptions(TypedDict, total=False):
    """Options of `take`."""

    #: How long a lease of the task lasts unless it is renewed.
    ttr: Span | None
    #: From which end of the priorities, MIN unless it is given.
    from_: Literal["min", "max"] | None
    #: Which task goes first among those of one priority.
    order: Literal["oldest", "newest"] | None
    #: Whole groups of tasks with one key, so that COUNT counts groups.
    group: bool
    #: This task alone, from R, W or B, past pauses, limits, rates, keys and shares.
    id: Name | None


def take(
    queues: Sequence[Name],
    *,
    count: int | None = None,
    wait: Span | None = None,
    meta: bool = False,
    done: Iterable[Done] = (),
    member: Name | None = None,
    **options: Unpack[TakeOptions],
) -> Words:
    """Takes the most urgent tasks under a lease.

    The reply: an array of tasks, empty if there are none.

    `count`: at most this many.
    `done`: tasks to acknowledge in the same step, each by its queue and receipt, and RESULT after
    them.
    """
    words = Words("TAKE").names(queues).option("COUNT", count).wait("WAIT", wait)
    words.switch("WITHMETA", meta).done("DONE", done).option("MEMBER", member)
    return words.options(options, TakeOptions, OPTIONS)


class PopOptions(TypedDict, total=False):
    """Options of `pop`."""

    #: From which end of the priorities, MIN unless it is given.
    from_: Literal["min", "max"] | None
    #: Which task goes first among those of one priority.
    order: Literal["oldest", "newest"] | None
    #: Whole groups of tasks with one key, so that COUNT counts groups.
    group: bool


def pop(
    queues: Sequence[Name],
    *,
    count: int | None = None,
    wait: Span | None = None,
    meta: bool = False,
    member: Name | None = None,
    **options: Unpack[PopOptions],
) -> Words:
    """Takes the most urgent tasks for good.

    The reply: an array of tasks, empty if there are none.

    `count`: at most this many.
    """
    words = Words("POP").names(queues).option("COUNT", count).wait("WAIT", wait)
    words.switch("WITHMETA", meta).option("MEMBER", member)
    return words.options(options, PopOptions, OPTIONS)


class PeekOptions(TypedDict, total=False):
    """Options of `peek`."""

    #: From which end of the priorities, MIN unless it is given.
    from_: Literal["min", "max"] | None
    #: Which task goes first among those of one priority.
    order: Literal["oldest", "newest"] | None
    #: Only tasks in this state.
    state: State | None


def peek(
    queue: Name,
    *,
    count: int | None = None,
    meta: bool = False,
    member: Name | None = None,
    **options: Unpack[PeekOptions],
) -> Words:
    """Shows tasks and changes nothing.

    The reply: an array of tasks, empty if there are none.

    `count`: at most this many.
    """
    words = Words("PEEK", queue).option("COUNT", count).switch("WITHMETA", meta)
    words.option("MEMBER", member)
    return words.options(options, PeekOptions, OPTIONS)


def get(queue: Name, id: Name, *, member: Name | None = None) -> Words:
    """Shows one task by its id.

    The reply: a map with all that is known, or null.
    """
    return Words("GET", queue, id).option("MEMBER", member)


class AckOptions(TypedDict, total=False):
    """Options of `ack`."""

    #: How long the finished task stays.
    zombie: Span | None
    #: What the task did cost, for rates, instead of the cost of its put.
    cost: int | None


def ack(
    queue: Name,
    *receipts: Receipt,
    id: Name | None = None,
    payload: bytes | None = None,
    result: Name | None = None,
    member: Name | None = None,
    **options: Unpack[AckOptions],
) -> Words:
    """Finishes taken tasks.

    The reply: OK; for several receipts an array of OK or error, one for each.

    `result`: what has come of the work, for who waits for the task or looks at it later.
    """
    words = Words("ACK", queue).holders(receipts, id).option("PAYLOAD", payload)
    words.option("RESULT", result).option("MEMBER", member)
    return words.options(options, AckOptions, OPTIONS)


class ReleaseOptions(TypedDict, total=False):
    """Options of `release`."""

    #: How long the task waits before it can be taken.
    delay: Span | None
    #: How long the task lives unless it is taken.
    ttl: Span | None
    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None
    #: Behind all others of its priority, instead of its old place.
    tail: bool
    #: What the task did cost, for rates, instead of the cost of its put.
    cost: int | None
    #: How far the work has come, for who takes it next; at most 65,536 bytes, and empty removes
    #: it.
    checkpoint: Name | None


def release(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[ReleaseOptions],
) -> Words:
    """Gives a taken task back to its queue.

    The reply: R, W, or X if its TTL had passed.
    """
    words = Words("RELEASE", queue).holder(receipt, id).option("PAYLOAD", payload)
    words.option("MEMBER", member)
    return words.options(options, ReleaseOptions, OPTIONS)


class BuryOptions(TypedDict, total=False):
    """Options of `bury`."""

    #: Why, for people who look at the task later; at most 1,024 bytes.
    reason: str | None
    #: What the task did cost, for rates, instead of the cost of its put.
    cost: int | None


def bury(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[BuryOptions],
) -> Words:
    """Sets a taken task aside.

    The reply: OK.
    """
    words = Words("BURY", queue).holder(receipt, id).option("PAYLOAD", payload)
    words.option("MEMBER", member)
    return words.options(options, BuryOptions, OPTIONS)


class FailOptions(BuryOptions, total=False):
    """Options of `fail`."""

    #: How long the task waits before it can be taken.
    delay: Span | None
    #: How far the work has come, for who takes it next; at most 65,536 bytes, and empty removes
    #: it.
    checkpoint: Name | None


def fail(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[FailOptions],
) -> Words:
    """Gives a taken task back because it failed: to be tried again or to be given up.

    The reply: R, W, B, or X if it became a dead letter or its TTL had passed.
    """
    words = Words("FAIL", queue).holder(receipt, id).option("PAYLOAD", payload)
    words.option("MEMBER", member)
    return words.options(options, FailOptions, OPTIONS)


class TouchOptions(TypedDict, total=False):
    """Options of `touch`."""

    #: How much the deadline moves, instead of a whole lease from now.
    by: Span | None
    #: How far the work has come, for people who look at it; at most 256 bytes, until the lease
    #: ends.
    progress: Name | None
    #: How far the work has come, for who takes it next; at most 65,536 bytes, and empty removes
    #: it.
    checkpoint: Name | None


def touch(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    member: Name | None = None,
    **options: Unpack[TouchOptions],
) -> Words:
    """Renews or moves the deadline of a lease, or moves the TTL of a ready task.

    The reply: the new deadline in Unix milliseconds, or null if there is none.
    """
    words = Words("TOUCH", queue).holder(receipt, id).option("MEMBER", member)
    return words.options(options, TouchOptions, OPTIONS)


class DigOptions(TypedDict, total=False):
    """Options of `dig`."""

    #: How long the task waits before it can be taken.
    delay: Span | None
    #: How long the task lives unless it is taken.
    ttl: Span | None
    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None


def dig(
    queue: Name,
    id: Name,
    *,
    payload: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[DigOptions],
) -> Words:
    """Brings a buried task back.

    The reply: R, W, or X if its TTL had passed.
    """
    words = Words("DIG", queue, id).option("PAYLOAD", payload).option("MEMBER", member)
    return words.options(options, DigOptions, OPTIONS)


class PlowOptions(TypedDict, total=False):
    """Options of `plow`."""

    #: How long the task waits before it can be taken.
    delay: Span | None
    #: How long the task lives unless it is taken.
    ttl: Span | None


def plow(
    queue: Name,
    *,
    count: int | None = None,
    member: Name | None = None,
    **options: Unpack[PlowOptions],
) -> Words:
    """Brings the oldest buried tasks back, all of them without COUNT.

    The reply: how many.

    `count`: at most this many.
    """
    words = Words("PLOW", queue).option("COUNT", count).option("MEMBER", member)
    return words.options(options, PlowOptions, OPTIONS)


def kick(
    queue: Name,
    count: int | None = None,
    *,
    id: Name | None = None,
    member: Name | None = None,
) -> Words:
    """DIG by id, or PLOW with a count: the words of beanstalkd.

    The reply: as DIG or PLOW.
    """
    return Words("KICK", queue).holder(count, id).option("MEMBER", member)


def kill(queue: Name, *ids: Name, member: Name | None = None) -> Words:
    """Removes tasks in any state, also those that are held.

    The reply: how many.
    """
    return Words("KILL", queue, *ids).option("MEMBER", member)


class SwitchOptions(PlowOptions):
    """Options of `switch`."""


def switch(
    queue: Name,
    id: Name,
    to: State,
    *,
    member: Name | None = None,
    **options: Unpack[SwitchOptions],
) -> Words:
    """Turns a task that is not taken into another state.

    The reply: the state.
    """
    words = Words("SWITCH", queue, id, State(to).value).option("MEMBER", member)
    return words.options(options, SwitchOptions, OPTIONS)


class SnatchOptions(SwitchOptions):
    """Options of `snatch`."""


def snatch(
    queue: Name,
    id: Name,
    *,
    member: Name | None = None,
    **options: Unpack[SnatchOptions],
) -> Words:
    """Takes a task away from its holder.

    The reply: R, W, or X if its TTL had passed.
    """
    words = Words("SNATCH", queue, id).option("MEMBER", member)
    return words.options(options, SnatchOptions, OPTIONS)


class RestartOptions(SnatchOptions):
    """Options of `restart`."""


def restart(
    queue: Name,
    id: Name,
    *,
    member: Name | None = None,
    **options: Unpack[RestartOptions],
) -> Words:
    """Brings a waiting, buried or finished task back as if it had never been taken.

    The reply: R, W, or X if its TTL had passed.
    """
    words = Words("RESTART", queue, id).option("MEMBER", member)
    return words.options(options, RestartOptions, OPTIONS)


class UpdateOptions(TypedDict, total=False):
    """Options of `update`."""

    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None
    #: How long the task lives from now unless it is taken.
    ttl: Span | Literal["none"] | None
    #: The receipt, which a taken task needs.
    receipt: Name | None
    #: Short values by name that travel with the payload, such as a trace; at most 16.
    headers: Mapping[str, Name] | None


def update(
    queue: Name,
    id: Name,
    *,
    payload: bytes | None = None,
    member: Name | None = None,
    **options: Unpack[UpdateOptions],
) -> Words:
    """Changes a task where it is.

    The reply: OK.
    """
    words = Words("UPDATE", queue, id).option("PAYLOAD", payload).option("MEMBER", member)
    return words.options(options, UpdateOptions, OPTIONS)


class MoveOptions(TypedDict, total=False):
    """Options of `move`."""

    #: At most this many.
    count: int | None
    #: Only tasks in this state.
    state: State | None


def move(
    queue: Name,
    to: Name,
    *,
    member: Name | None = None,
    **options: Unpack[MoveOptions],
) -> Words:
    """Moves tasks of one state to another queue, the oldest first.

    The reply: how many.
    """
    return Words("MOVE", queue, to).option("MEMBER", member).options(options, MoveOptions, OPTIONS)


class RedriveOptions(TypedDict, total=False):
    """Options of `redrive`."""

    #: At most this many.
    count: int | None


def redrive(queue: Name, *, member: Name | None = None, **options: Unpack[RedriveOptions]) -> Words:
    """Moves ready dead letters back to the queues that they come from.

    The reply: how many.
    """
    words = Words("REDRIVE", queue).option("MEMBER", member)
    return words.options(options, RedriveOptions, OPTIONS)


def explain(queue: Name, id: Name | None = None, *, member: Name | None = None) -> Words:
    """Tells why a task is not handed out, or which task would be next.

    The reply: a map: id, state, since, reasons.
    """
    return Words("EXPLAIN", queue).maybe(id).option("MEMBER", member)


class ScanOptions(MoveOptions, total=False):
    """Options of `scan`."""

    #: The key: tasks of a queue with the same key form a group.
    key: Name | None
    #: Only pending tasks of this batch.
    batch: Name | None


def scan(
    queue: Name,
    *,
    cursor: Name | None = None,
    meta: bool = False,
    member: Name | None = None,
    **options: Unpack[ScanOptions],
) -> Words:
    """Shows all tasks of a queue, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of tasks.
    """
    words = Words("SCAN", queue).option("CURSOR", cursor).switch("WITHMETA", meta)
    words.option("MEMBER", member)
    return words.options(options, ScanOptions, OPTIONS)


class LeasesOptions(RedriveOptions):
    """Options of `leases`."""


def leases(
    queue: Name | None = None,
    *,
    cursor: Name | None = None,
    member: Name | None = None,
    **options: Unpack[LeasesOptions],
) -> Words:
    """Shows who holds which task, in one queue or in all, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of maps: queue, member,
    id, client, name, address, since, until.
    """
    words = Words("LEASES").maybe(queue).option("CURSOR", cursor).option("MEMBER", member)
    return words.options(options, LeasesOptions, OPTIONS)


class CancelOptions(TypedDict, total=False):
    """Options of `cancel`."""

    #: Why, for people who look at the task later; at most 1,024 bytes.
    reason: str | None
    #: How long the holder of the task may go on at most, from now.
    grace: Span | None


def cancel(
    queue: Name,
    id: Name,
    *,
    member: Name | None = None,
    **options: Unpack[CancelOptions],
) -> Words:
    """Ends a task, or if it is taken, asks its holder to stop.

    The reply: X; T if its holder is asked; Z or D if it was finished.
    """
    words = Words("CANCEL", queue, id).option("MEMBER", member)
    return words.options(options, CancelOptions, OPTIONS)


class BulkOptions(ScanOptions, total=False):
    """Options of `bulk`."""

    #: Bring them back as if they had never been taken.
    restart: bool
    #: End them, or if they are taken, ask their holders to stop.
    cancel: bool
    #: Remove them, also those that are held.
    kill: bool
    #: Move ready dead letters back to the queues that they come from.
    redrive: bool
    #: Move them to this queue, in the state that they have.
    move: Name | None
    #: Give them this priority.
    priority: Priority | None
    #: Let those that are ready or delayed wait this long from now.
    delay: Span | None
    #: Only tasks of this share.
    share: Name | None
    #: Only tasks with a priority from the first to the second.
    priorities: tuple[int, int] | None
    #: Only tasks that were put at least this long ago.
    older: Span | None
    #: Only tasks that have failed at least this often.
    failures: int | None
    #: Only tasks whose reason matches: * stands for anything, and \ takes the next byte as it is.
    reason: str | None
    #: Only tasks with a header of this name whose value matches.
    header: tuple[Name, Name] | None
    #: Count the tasks, and change nothing.
    dry: bool


def bulk(
    queue: Name,
    *,
    cursor: Name | None = None,
    member: Name | None = None,
    **options: Unpack[BulkOptions],
) -> Words:
    """Changes all tasks of a queue that a filter chooses, page by page.

    The reply: the cursor of the next page (0 after the last), how many tasks it looked at, and how
    many have changed.
    """
    words = Words("BULK", queue).option("CURSOR", cursor).option("MEMBER", member)
    return words.options(options, BulkOptions, OPTIONS)


def await_(
    queue: Name,
    id: Name,
    *,
    wait: Span | None = None,
    result: bool = False,
    member: Name | None = None,
) -> Words:
    """Waits until a task is finished.

    The reply: the outcome (acked, buried, expired, killed, dead, evicted, moved, cancelled,
    skipped, timeout) and the state; with RESULT the result last.

    `result`: what has come of the work is part of the answer, as its last element.
    """
    words = Words("AWAIT", queue, id).wait("WAIT", wait).switch("RESULT", result)
    return words.option("MEMBER", member)


def start(queue: Name, *receipts: Name, member: Name | None = None) -> Words:
    """Begins the work on tasks, so that they are not called back, and their leases anew.

    The reply: OK; for several receipts an array of OK or error, one for each.
    """
    return Words("START", queue, *receipts).option("MEMBER", member)


class SubscribeOptions(TypedDict, total=False):
    """Options of `subscribe`."""

    #: How long a lease of the task lasts unless it is renewed.
    ttr: Span | None
    #: Tasks are delivered for good.
    pop: bool
    #: A task is called back for a more urgent one until it is started.
    recall: bool


def subscribe(
    queues: Sequence[Name],
    *,
    meta: bool = False,
    member: Name | None = None,
    **options: Unpack[SubscribeOptions],
) -> Words:
    """Has tasks delivered, one for each credit.

    The reply: how many subscriptions the connection has.
    """
    words = Words("SUBSCRIBE").names(queues).switch("WITHMETA", meta).option("MEMBER", member)
    return words.options(options, SubscribeOptions, OPTIONS)


def unsubscribe(queues: Sequence[Name] = (), *, member: Name | None = None) -> Words:
    """Ends subscriptions, all of them if none is named.

    The reply: how many subscriptions are left.
    """
    return Words("UNSUBSCRIBE").any_names(queues).option("MEMBER", member)


def credit(n: int) -> Words:
    """Grants that many further deliveries.

    The reply: the credit before the deliveries that it sets off.
    """
    return Words("CREDIT", n)


def ready() -> Words:
    """Grants one further delivery.

    The reply: the credit before the delivery that it sets off.
    """
    return Words("READY")


class JoinOptions(TypedDict, total=False):
    """Options of `join`."""

    #: How long the member lives without a sign of life.
    lease: Span | None


def join(topic: Name, member: Name, **options: Unpack[JoinOptions]) -> Words:
    """Gives a member a lane in a topic, and registers it if need be.

    The reply: the incarnation of the member.
    """
    return Words("JOIN", topic, member).options(options, JoinOptions, OPTIONS)


class BeatOptions(JoinOptions):
    """Options of `beat`."""


def beat(member: Name, **options: Unpack[BeatOptions]) -> Words:
    """Gives a sign of life, which begins the lease of a member anew.

    The reply: OK.
    """
    return Words("BEAT", member).options(options, BeatOptions, OPTIONS)


def leave(topic: Name | None, member: Name) -> Words:
    """Ends a lane of a member; without a topic the member and all its lanes.

    The reply: how many lanes ended.
    """
    return Words("LEAVE").maybe(topic).add(member)


class PublishOptions(TypedDict, total=False):
    """Options of `publish`."""

    #: The key: tasks of a queue with the same key form a group.
    key: Name | None
    #: On whose behalf the task runs, for fair turns and limits: its key unless it is given.
    share: Name | None
    #: What a take costs: rates and turns count it, 1 unless it is given.
    cost: int | None
    #: Short values by name that travel with the payload, such as a trace; at most 16.
    headers: Mapping[str, Name] | None
    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None
    #: The moment from which the task is not delivered to members.
    deadline: Moment | None
    #: How long the task lives unless it is taken.
    ttl: Span | None


def publish(topic: Name, payload: bytes, **options: Unpack[PublishOptions]) -> Words:
    """Puts one task into each lane of a topic.

    The reply: how many lanes.
    """
    return Words("PUBLISH", topic, payload).options(options, PublishOptions, OPTIONS)


def members(topic: Name) -> Words:
    """Tells the members of a topic.

    The reply: an array of maps: member, incarnation, lease_until, ready, taken.
    """
    return Words("MEMBERS", topic)


def queue_create(queue: Name, settings: QueueSettings | None = None) -> Words:
    """Makes a queue that exists even when it is empty.

    The reply: OK.
    """
    return Words("QUEUE", "CREATE", queue, *settings.words() if settings else ())


def queue_set(queue: Name, settings: QueueSettings, *, member: Name | None = None) -> Words:
    """Changes settings of a queue, which is created if need be.

    The reply: OK.
    """
    return Words("QUEUE", "SET", queue, *settings.words()).option("MEMBER", member)


def queue_show(queue: Name, *, member: Name | None = None) -> Words:
    """Tells the settings of a queue.

    The reply: a map.
    """
    return Words("QUEUE", "SHOW", queue).option("MEMBER", member)


class QueueListOptions(LeasesOptions, total=False):
    """Options of `queue_list`."""

    #: Only names that begin with this.
    prefix: Name | None


def queue_list(*, cursor: Name | None = None, **options: Unpack[QueueListOptions]) -> Words:
    """Tells the names of the queues, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.
    """
    words = Words("QUEUE", "LIST").option("CURSOR", cursor)
    return words.options(options, QueueListOptions, OPTIONS)


def queue_truncate(queue: Name, *, member: Name | None = None) -> Words:
    """Removes all tasks of a queue.

    The reply: how many.
    """
    return Words("QUEUE", "TRUNCATE", queue).option("MEMBER", member)


def queue_drop(queue: Name) -> Words:
    """Removes a queue with its tasks, settings and pause.

    The reply: how many tasks it had.
    """
    return Words("QUEUE", "DROP", queue)


class QueuePauseOptions(TypedDict, total=False):
    """Options of `queue_pause`."""

    #: How long the pause lasts; without it until it is ended.
    for_: Span | None


def queue_pause(
    queue: Name,
    side: Literal["in", "out"] | None = None,
    *,
    member: Name | None = None,
    **options: Unpack[QueuePauseOptions],
) -> Words:
    """Pauses a queue for puts, for takes, or for both, for good or for a while.

    The reply: OK.
    """
    words = Words("QUEUE", "PAUSE", queue).maybe(side).option("MEMBER", member)
    return words.options(options, QueuePauseOptions, OPTIONS)


def queue_resume(
    queue: Name,
    side: Literal["in", "out"] | None = None,
    *,
    member: Name | None = None,
) -> Words:
    """Ends a pause.

    The reply: OK.
    """
    return Words("QUEUE", "RESUME", queue).maybe(side).option("MEMBER", member)


class QueueShareOptions(TypedDict, total=False):
    """Options of `queue_share`."""

    #: How much the share gets of a fair queue compared with others, from 1 (the default) to 1000.
    weight: int | None
    #: How many tasks of the share may be taken at once: a number, none, or default, as for others.
    limit: Name | None
    #: How many tasks of the share are handed out in a time: n/ms, none, or default, as for others.
    rate: Name | None


def queue_share(queue: Name, share: Name, **options: Unpack[QueueShareOptions]) -> Words:
    """Changes weight, limit and rate of one share of a queue, which is created if need be.

    The reply: OK.
    """
    return Words("QUEUE", "SHARE", queue, share).options(options, QueueShareOptions, OPTIONS)


class QueueSharesOptions(LeasesOptions, total=False):
    """Options of `queue_shares`."""

    #: Those that wait longest first, at most 100 and without a cursor.
    top: bool


def queue_shares(
    queue: Name,
    *,
    cursor: Name | None = None,
    member: Name | None = None,
    **options: Unpack[QueueSharesOptions],
) -> Words:
    """Shows the shares of a queue with their rules and figures, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of maps: share, weight,
    limit, rate, ready, taken, waited_ms, oldest_ready_ms, acked, failed.
    """
    words = Words("QUEUE", "SHARES", queue).option("CURSOR", cursor).option("MEMBER", member)
    return words.options(options, QueueSharesOptions, OPTIONS)


def stats(queue: Name | None = None, *, member: Name | None = None) -> Words:
    """Tells the figures of a queue, or of all together.

    The reply: a map.
    """
    return Words("STATS").maybe(queue).option("MEMBER", member)


class LimitSetOptions(TypedDict, total=False):
    """Options of `limit_set`."""

    #: How many tasks may be taken at once: a number, or none.
    max: Name | None
    #: What the tasks that are handed out may cost in a time: n/ms, or none.
    rate: Name | None


def limit_set(limit: Name, **options: Unpack[LimitSetOptions]) -> Words:
    """Makes a limit that several queues use together, or changes it.

    The reply: OK.
    """
    return Words("LIMIT", "SET", limit).options(options, LimitSetOptions, OPTIONS)


def limit_show(limit: Name) -> Words:
    """Tells what a limit allows, and how much of that is in use.

    The reply: a map: max, rate, taken, tokens, open_at, queues, closed_ms.
    """
    return Words("LIMIT", "SHOW", limit)


class LimitListOptions(QueueListOptions):
    """Options of `limit_list`."""


def limit_list(*, cursor: Name | None = None, **options: Unpack[LimitListOptions]) -> Words:
    """Tells the names of the limits, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.
    """
    words = Words("LIMIT", "LIST").option("CURSOR", cursor)
    return words.options(options, LimitListOptions, OPTIONS)


def limit_drop(limit: Name) -> Words:
    """Removes a limit that no queue uses.

    The reply: 1, or 0 if there is none.
    """
    return Words("LIMIT", "DROP", limit)


class ExportOptions(LeasesOptions):
    """Options of `export`."""


def export(queue: Name, *, cursor: Name | None = None, **options: Unpack[ExportOptions]) -> Words:
    """Shows all that another server needs to go on with a queue, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of records as JSON.
    """
    return Words("EXPORT", queue).option("CURSOR", cursor).options(options, ExportOptions, OPTIONS)


def import_(queue: Name, record: Name, *, payload: bytes | None = None) -> Words:
    """Takes over one record of an export.

    The reply: the id of a task; OK for other records.
    """
    return Words("IMPORT", queue, record).option("PAYLOAD", payload)


class ScheduleSetOptions(TypedDict, total=False):
    """Options of `schedule_set`."""

    #: The time from one slot to the next, at least 100 ms.
    every: Span | None
    #: A moment that is a slot; the others lie whole distances from it.
    at: Moment | None
    #: Minute, hour, day of month, month and day of week, or a word such as @daily.
    cron: Name | None
    #: The IANA time zone of CRON, such as Europe/Berlin; UTC unless it is given.
    zone: Name | None
    #: The key: tasks of a queue with the same key form a group.
    key: Name | None
    #: The lower, the more urgent, 0 by default; a task with none leaves only with its group.
    priority: Priority | None
    #: How long the task lives unless it is taken.
    ttl: Span | None
    #: How long a lease of the task lasts unless it is renewed.
    ttr: Span | None
    #: What is put for slots missed while the server was down: one task (the default), all, none.
    missed: Literal["one", "all", "none"] | None
    #: Whether a slot puts a task while the last one is unfinished: allow (the default), or skip
    #: it.
    overlap: Literal["allow", "skip"] | None
    #: On whose behalf the task runs, for fair turns and limits: its key unless it is given.
    share: Name | None
    #: What a take costs: rates and turns count it, 1 unless it is given.
    cost: int | None
    #: Short values by name that travel with the payload, such as a trace; at most 16.
    headers: Mapping[str, Name] | None
    #: How often the task may fail before it is given up, instead of what its queue says.
    attempts: int | Literal["none"] | None
    #: How long the task waits after its first failure, instead of what its queue says.
    backoff: Span | Literal["none"] | None
    #: The longest that the task waits after a failure, instead of what its queue says.
    backoff_max: Span | None


def schedule_set(
    schedule: Name,
    queue: Name,
    payload: bytes,
    **options: Unpack[ScheduleSetOptions],
) -> Words:
    """Puts a task into a queue again and again, or changes when and which.

    The reply: the next slot in Unix milliseconds.
    """
    words = Words("SCHEDULE", "SET", schedule, queue, payload)
    return words.options(options, ScheduleSetOptions, OPTIONS)


def schedule_show(schedule: Name) -> Words:
    """Tells what a schedule does and what it has done.

    The reply: a map.
    """
    return Words("SCHEDULE", "SHOW", schedule)


class ScheduleListOptions(LimitListOptions):
    """Options of `schedule_list`."""


def schedule_list(*, cursor: Name | None = None, **options: Unpack[ScheduleListOptions]) -> Words:
    """Tells the names of the schedules, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.
    """
    words = Words("SCHEDULE", "LIST").option("CURSOR", cursor)
    return words.options(options, ScheduleListOptions, OPTIONS)


def schedule_pause(schedule: Name) -> Words:
    """Lets slots pass without a task.

    The reply: OK.
    """
    return Words("SCHEDULE", "PAUSE", schedule)


def schedule_resume(schedule: Name) -> Words:
    """Ends a pause of a schedule.

    The reply: OK.
    """
    return Words("SCHEDULE", "RESUME", schedule)


def schedule_drop(schedule: Name) -> Words:
    """Removes a schedule; its tasks stay.

    The reply: 1, or 0 if there is none.
    """
    return Words("SCHEDULE", "DROP", schedule)


def schedule_fire(schedule: Name) -> Words:
    """Puts a task of a schedule now, also while it is paused.

    The reply: the id.
    """
    return Words("SCHEDULE", "FIRE", schedule)


class BatchOpenOptions(TypedDict, total=False):
    """Options of `batch_open`."""

    #: How long the batch has to be done, or else it is done as failed.
    ttl: Span | None


def batch_open(batch: Name, **options: Unpack[BatchOpenOptions]) -> Words:
    """Makes a batch that has no tasks yet.

    The reply: OK.
    """
    return Words("BATCH", "OPEN", batch).options(options, BatchOpenOptions, OPTIONS)


def batch_close(batch: Name) -> Words:
    """Says that a batch has all its tasks: it is done once none is pending.

    The reply: how many are pending.
    """
    return Words("BATCH", "CLOSE", batch)


def batch_show(batch: Name) -> Words:
    """Tells how far a batch is.

    The reply: a map: name, state (open, closed, done), total, pending, buried, acked, failed,
    waiting, opened_at, done_at.
    """
    return Words("BATCH", "SHOW", batch)


class BatchListOptions(ScheduleListOptions):
    """Options of `batch_list`."""


def batch_list(*, cursor: Name | None = None, **options: Unpack[BatchListOptions]) -> Words:
    """Tells the names of the batches, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.
    """
    words = Words("BATCH", "LIST").option("CURSOR", cursor)
    return words.options(options, BatchListOptions, OPTIONS)


class BatchCancelOptions(CancelOptions):
    """Options of `batch_cancel`."""


def batch_cancel(batch: Name, **options: Unpack[BatchCancelOptions]) -> Words:
    """Closes a batch and cancels all its tasks that are pending.

    The reply: how many were pending.
    """
    return Words("BATCH", "CANCEL", batch).options(options, BatchCancelOptions, OPTIONS)


def batch_drop(batch: Name) -> Words:
    """Forgets a batch that is done.

    The reply: 1, or 0 if there is none.
    """
    return Words("BATCH", "DROP", batch)


def batch_await(batch: Name, *, wait: Span | None = None) -> Words:
    """Waits until a batch is done.

    The reply: done or timeout, and a map as from BATCH SHOW.
    """
    return Words("BATCH", "AWAIT", batch).wait("WAIT", wait)
