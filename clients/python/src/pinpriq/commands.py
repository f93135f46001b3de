"""The words of every command, with their types.

Printed from the server's table of commands by `cargo test -p pinpriq-proto printed`. The methods of
queues use these functions. `Queue.command` and `Client.command` send any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict

from .replies import State
from .requests.base import Name, Priority, Receipt, Words
from .settings import QueueSettings
from .spans import Moment, Span


class PutOptions(TypedDict, total=False):
    """Options that `put` explains."""

    key: Name | None
    priority: Priority | None
    delay: Span | None
    at: Moment | None
    ttl: Span | None
    ttr: Span | None
    id: Name | None
    window: Span | None
    on_duplicate: Literal["keep", "reject", "replace"] | None
    reason: str | None


def put(
    queue: Name,
    payload: bytes,
    *,
    key: Name | None = None,
    priority: Priority | None = None,
    delay: Span | None = None,
    at: Moment | None = None,
    ttl: Span | None = None,
    ttr: Span | None = None,
    id: Name | None = None,
    wait: Span | None = None,
    room: Span | None = None,
    unique: Name | None = None,
    window: Span | None = None,
    on_duplicate: Literal["keep", "reject", "replace"] | None = None,
    state: State | None = None,
    reason: str | None = None,
) -> Words:
    """Puts a task into a queue.

    The reply: the id; with WAIT the id and the outcome; with UNIQUE the id, whether it is new (1
    or 0), and with WAIT the outcome.

    `key`: the key: tasks of a queue with the same key form a group.
    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `delay`: how long the task waits before it can be taken.
    `at`: the moment from which the task can be taken, instead of a delay.
    `ttl`: how long the task lives unless it is taken.
    `ttr`: how long a lease of the task lasts unless it is renewed.
    `id`: the id, for a queue whose ids are given.
    `wait`: how long to wait; -1 is without end.
    `room`: how long to wait for room in a full queue.
    `unique`: no second task is put with this key while the first is unfinished.
    `window`: how long the unique key counts after the put, even if the task is finished.
    `on_duplicate`: what a duplicate does: keep the first task as it is (the default), be rejected,
    or replace it.
    `state`: the task is buried at once.
    `reason`: why, for people who look at the task later; at most 1,024 bytes.
    """
    words = Words("PUT")
    words.add(queue)
    words.add(payload)
    words.option("KEY", key)
    words.priority("PRIORITY", priority)
    words.span("DELAY", delay)
    words.moment("AT", at)
    words.span("TTL", ttl)
    words.span("TTR", ttr)
    words.option("ID", id)
    words.wait("WAIT", wait)
    words.span("ROOM", room)
    words.option("UNIQUE", unique)
    words.span("WINDOW", window)
    words.option("ONDUP", on_duplicate)
    words.state("STATE", state)
    words.reason("REASON", reason)
    return words


class TakeOptions(TypedDict, total=False):
    """Options that `take` explains."""

    ttr: Span | None
    from_: Literal["min", "max"] | None
    order: Literal["oldest", "newest"] | None
    group: bool


def take(
    queues: Sequence[Name],
    *,
    count: int | None = None,
    wait: Span | None = None,
    ttr: Span | None = None,
    from_: Literal["min", "max"] | None = None,
    order: Literal["oldest", "newest"] | None = None,
    group: bool = False,
    meta: bool = False,
    done: Iterable[tuple[Name, Receipt]] = (),
    member: Name | None = None,
) -> Words:
    """Takes the most urgent tasks under a lease.

    The reply: an array of tasks, empty if there are none.

    `count`: at most this many.
    `wait`: how long to wait; -1 is without end.
    `ttr`: how long a lease of the task lasts unless it is renewed.
    `from_`: from which end of the priorities, MIN unless it is given.
    `order`: which task goes first among those of one priority.
    `group`: whole groups of tasks with one key, so that COUNT counts groups.
    `meta`: all that is known of each task.
    `done`: tasks to acknowledge in the same step, each by its queue and receipt.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("TAKE")
    words.names(queues)
    words.option("COUNT", count)
    words.wait("WAIT", wait)
    words.span("TTR", ttr)
    words.option("FROM", from_)
    words.option("ORDER", order)
    words.switch("GROUP", group)
    words.switch("WITHMETA", meta)
    words.pairs("DONE", done)
    words.option("MEMBER", member)
    return words


class PopOptions(TypedDict, total=False):
    """Options that `pop` explains."""

    from_: Literal["min", "max"] | None
    order: Literal["oldest", "newest"] | None
    group: bool


def pop(
    queues: Sequence[Name],
    *,
    count: int | None = None,
    wait: Span | None = None,
    from_: Literal["min", "max"] | None = None,
    order: Literal["oldest", "newest"] | None = None,
    group: bool = False,
    meta: bool = False,
    member: Name | None = None,
) -> Words:
    """Takes the most urgent tasks for good.

    The reply: an array of tasks, empty if there are none.

    `count`: at most this many.
    `wait`: how long to wait; -1 is without end.
    `from_`: from which end of the priorities, MIN unless it is given.
    `order`: which task goes first among those of one priority.
    `group`: whole groups of tasks with one key, so that COUNT counts groups.
    `meta`: all that is known of each task.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("POP")
    words.names(queues)
    words.option("COUNT", count)
    words.wait("WAIT", wait)
    words.option("FROM", from_)
    words.option("ORDER", order)
    words.switch("GROUP", group)
    words.switch("WITHMETA", meta)
    words.option("MEMBER", member)
    return words


class PeekOptions(TypedDict, total=False):
    """Options that `peek` explains."""

    from_: Literal["min", "max"] | None
    order: Literal["oldest", "newest"] | None
    state: State | None


def peek(
    queue: Name,
    *,
    from_: Literal["min", "max"] | None = None,
    order: Literal["oldest", "newest"] | None = None,
    state: State | None = None,
    count: int | None = None,
    meta: bool = False,
    member: Name | None = None,
) -> Words:
    """Shows tasks and changes nothing.

    The reply: an array of tasks, empty if there are none.

    `from_`: from which end of the priorities, MIN unless it is given.
    `order`: which task goes first among those of one priority.
    `state`: only tasks in this state.
    `count`: at most this many.
    `meta`: all that is known of each task.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("PEEK")
    words.add(queue)
    words.option("FROM", from_)
    words.option("ORDER", order)
    words.state("STATE", state)
    words.option("COUNT", count)
    words.switch("WITHMETA", meta)
    words.option("MEMBER", member)
    return words


def get(
    queue: Name,
    id: Name,
    *,
    member: Name | None = None,
) -> Words:
    """Shows one task by its id.

    The reply: a map with all that is known, or null.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("GET")
    words.add(queue)
    words.add(id)
    words.option("MEMBER", member)
    return words


class AckOptions(TypedDict, total=False):
    """Options that `ack` explains."""

    zombie: Span | None


def ack(
    queue: Name,
    *receipts: Receipt,
    id: Name | None = None,
    payload: bytes | None = None,
    zombie: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Finishes taken tasks.

    The reply: OK; for several receipts an array of OK or error, one for each.

    `payload`: another payload.
    `zombie`: how long the finished task stays.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("ACK")
    words.add(queue)
    words.holders(receipts, id)
    words.option("PAYLOAD", payload)
    words.span("ZOMBIE", zombie)
    words.option("MEMBER", member)
    return words


class ReleaseOptions(TypedDict, total=False):
    """Options that `release` explains."""

    delay: Span | None
    ttl: Span | None
    priority: Priority | None
    tail: bool


def release(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    delay: Span | None = None,
    ttl: Span | None = None,
    priority: Priority | None = None,
    payload: bytes | None = None,
    tail: bool = False,
    member: Name | None = None,
) -> Words:
    """Gives a taken task back to its queue.

    The reply: R, W, or X if its TTL had passed.

    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `payload`: another payload.
    `tail`: behind all others of its priority, instead of its old place.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("RELEASE")
    words.add(queue)
    words.holder(receipt, id)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.priority("PRIORITY", priority)
    words.option("PAYLOAD", payload)
    words.switch("TAIL", tail)
    words.option("MEMBER", member)
    return words


class BuryOptions(TypedDict, total=False):
    """Options that `bury` explains."""

    reason: str | None


def bury(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    payload: bytes | None = None,
    reason: str | None = None,
    member: Name | None = None,
) -> Words:
    """Sets a taken task aside.

    The reply: OK.

    `payload`: another payload.
    `reason`: why, for people who look at the task later; at most 1,024 bytes.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("BURY")
    words.add(queue)
    words.holder(receipt, id)
    words.option("PAYLOAD", payload)
    words.reason("REASON", reason)
    words.option("MEMBER", member)
    return words


class FailOptions(TypedDict, total=False):
    """Options that `fail` explains."""

    reason: str | None
    delay: Span | None


def fail(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    reason: str | None = None,
    delay: Span | None = None,
    payload: bytes | None = None,
    member: Name | None = None,
) -> Words:
    """Gives a taken task back because it failed: to be tried again or to be given up.

    The reply: R, W, B, or X if it became a dead letter or its TTL had passed.

    `reason`: why, for people who look at the task later; at most 1,024 bytes.
    `delay`: how long the task waits before it can be taken.
    `payload`: another payload.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("FAIL")
    words.add(queue)
    words.holder(receipt, id)
    words.reason("REASON", reason)
    words.span("DELAY", delay)
    words.option("PAYLOAD", payload)
    words.option("MEMBER", member)
    return words


class TouchOptions(TypedDict, total=False):
    """Options that `touch` explains."""

    by: Span | None


def touch(
    queue: Name,
    receipt: Receipt | None = None,
    *,
    id: Name | None = None,
    by: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Renews or moves the deadline of a lease, or moves the TTL of a ready task.

    The reply: the new deadline in Unix milliseconds, or null if there is none.

    `by`: how much the deadline moves, instead of a whole lease from now.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("TOUCH")
    words.add(queue)
    words.holder(receipt, id)
    words.span("BY", by)
    words.option("MEMBER", member)
    return words


class DigOptions(TypedDict, total=False):
    """Options that `dig` explains."""

    delay: Span | None
    ttl: Span | None
    priority: Priority | None


def dig(
    queue: Name,
    id: Name,
    *,
    delay: Span | None = None,
    ttl: Span | None = None,
    priority: Priority | None = None,
    payload: bytes | None = None,
    member: Name | None = None,
) -> Words:
    """Brings a buried task back.

    The reply: R, W, or X if its TTL had passed.

    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `payload`: another payload.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("DIG")
    words.add(queue)
    words.add(id)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.priority("PRIORITY", priority)
    words.option("PAYLOAD", payload)
    words.option("MEMBER", member)
    return words


class PlowOptions(TypedDict, total=False):
    """Options that `plow` explains."""

    delay: Span | None
    ttl: Span | None


def plow(
    queue: Name,
    *,
    count: int | None = None,
    delay: Span | None = None,
    ttl: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Brings the oldest buried tasks back, all of them without COUNT.

    The reply: how many.

    `count`: at most this many.
    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("PLOW")
    words.add(queue)
    words.option("COUNT", count)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.option("MEMBER", member)
    return words


def kick(
    queue: Name,
    count: int | None = None,
    *,
    id: Name | None = None,
    member: Name | None = None,
) -> Words:
    """DIG by id, or PLOW with a count: the words of beanstalkd.

    The reply: as DIG or PLOW.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("KICK")
    words.add(queue)
    words.holder(count, id)
    words.option("MEMBER", member)
    return words


def kill(
    queue: Name,
    *ids: Name,
    member: Name | None = None,
) -> Words:
    """Removes tasks in any state, also those that are held.

    The reply: how many.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("KILL")
    words.add(queue)
    words.add(*ids)
    words.option("MEMBER", member)
    return words


class SwitchOptions(TypedDict, total=False):
    """Options that `switch` explains."""

    delay: Span | None
    ttl: Span | None


def switch(
    queue: Name,
    id: Name,
    to: State,
    *,
    delay: Span | None = None,
    ttl: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Turns a task that is not taken into another state.

    The reply: the state.

    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("SWITCH")
    words.add(queue)
    words.add(id)
    words.add(State(to).value)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.option("MEMBER", member)
    return words


class SnatchOptions(TypedDict, total=False):
    """Options that `snatch` explains."""

    delay: Span | None
    ttl: Span | None


def snatch(
    queue: Name,
    id: Name,
    *,
    delay: Span | None = None,
    ttl: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Takes a task away from its holder.

    The reply: R, W, or X if its TTL had passed.

    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("SNATCH")
    words.add(queue)
    words.add(id)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.option("MEMBER", member)
    return words


class RestartOptions(TypedDict, total=False):
    """Options that `restart` explains."""

    delay: Span | None
    ttl: Span | None


def restart(
    queue: Name,
    id: Name,
    *,
    delay: Span | None = None,
    ttl: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Brings a waiting, buried or finished task back as if it had never been taken.

    The reply: R, W, or X if its TTL had passed.

    `delay`: how long the task waits before it can be taken.
    `ttl`: how long the task lives unless it is taken.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("RESTART")
    words.add(queue)
    words.add(id)
    words.span("DELAY", delay)
    words.span("TTL", ttl)
    words.option("MEMBER", member)
    return words


class UpdateOptions(TypedDict, total=False):
    """Options that `update` explains."""

    priority: Priority | None
    ttl: Span | Literal["none"] | None
    receipt: Name | None


def update(
    queue: Name,
    id: Name,
    *,
    priority: Priority | None = None,
    payload: bytes | None = None,
    ttl: Span | Literal["none"] | None = None,
    receipt: Name | None = None,
    member: Name | None = None,
) -> Words:
    """Changes a task where it is.

    The reply: OK.

    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `payload`: another payload.
    `ttl`: how long the task lives from now unless it is taken.
    `receipt`: the receipt, which a taken task needs.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("UPDATE")
    words.add(queue)
    words.add(id)
    words.priority("PRIORITY", priority)
    words.option("PAYLOAD", payload)
    words.span("TTL", ttl)
    words.option("RECEIPT", receipt)
    words.option("MEMBER", member)
    return words


class MoveOptions(TypedDict, total=False):
    """Options that `move` explains."""

    count: int | None
    state: State | None


def move(
    queue: Name,
    to: Name,
    *,
    count: int | None = None,
    state: State | None = None,
    member: Name | None = None,
) -> Words:
    """Moves tasks of one state to another queue, the oldest first.

    The reply: how many.

    `count`: at most this many.
    `state`: only tasks in this state.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("MOVE")
    words.add(queue)
    words.add(to)
    words.option("COUNT", count)
    words.state("STATE", state)
    words.option("MEMBER", member)
    return words


class RedriveOptions(TypedDict, total=False):
    """Options that `redrive` explains."""

    count: int | None


def redrive(
    queue: Name,
    *,
    count: int | None = None,
    member: Name | None = None,
) -> Words:
    """Moves ready dead letters back to the queues that they come from.

    The reply: how many.

    `count`: at most this many.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("REDRIVE")
    words.add(queue)
    words.option("COUNT", count)
    words.option("MEMBER", member)
    return words


def explain(
    queue: Name,
    id: Name | None = None,
    *,
    member: Name | None = None,
) -> Words:
    """Tells why a task is not handed out, or which task would be next.

    The reply: a map: id, state, since, reasons.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("EXPLAIN")
    words.add(queue)
    words.maybe(id)
    words.option("MEMBER", member)
    return words


class ScanOptions(TypedDict, total=False):
    """Options that `scan` explains."""

    count: int | None
    state: State | None
    key: Name | None


def scan(
    queue: Name,
    *,
    cursor: Name | None = None,
    count: int | None = None,
    state: State | None = None,
    key: Name | None = None,
    meta: bool = False,
    member: Name | None = None,
) -> Words:
    """Shows all tasks of a queue, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of tasks.

    `cursor`: where the page begins: 0, or the cursor that came with the page before.
    `count`: at most this many.
    `state`: only tasks in this state.
    `key`: the key: tasks of a queue with the same key form a group.
    `meta`: all that is known of each task.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("SCAN")
    words.add(queue)
    words.option("CURSOR", cursor)
    words.option("COUNT", count)
    words.state("STATE", state)
    words.option("KEY", key)
    words.switch("WITHMETA", meta)
    words.option("MEMBER", member)
    return words


class LeasesOptions(TypedDict, total=False):
    """Options that `leases` explains."""

    count: int | None


def leases(
    queue: Name | None = None,
    *,
    count: int | None = None,
    cursor: Name | None = None,
    member: Name | None = None,
) -> Words:
    """Shows who holds which task, in one queue or in all, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of maps: queue, member,
    id, client, name, address, since, until.

    `count`: at most this many.
    `cursor`: where the page begins: 0, or the cursor that came with the page before.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("LEASES")
    words.maybe(queue)
    words.option("COUNT", count)
    words.option("CURSOR", cursor)
    words.option("MEMBER", member)
    return words


def await_(
    queue: Name,
    id: Name,
    *,
    wait: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Waits until a task is finished.

    The reply: the outcome (acked, buried, expired, killed, dead, evicted, moved, timeout) and the
    state.

    `wait`: how long to wait; -1 is without end.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("AWAIT")
    words.add(queue)
    words.add(id)
    words.wait("WAIT", wait)
    words.option("MEMBER", member)
    return words


class SubscribeOptions(TypedDict, total=False):
    """Options that `subscribe` explains."""

    ttr: Span | None
    pop: bool


def subscribe(
    queues: Sequence[Name],
    *,
    ttr: Span | None = None,
    pop: bool = False,
    member: Name | None = None,
) -> Words:
    """Has tasks delivered, one for each credit.

    The reply: how many subscriptions the connection has.

    `ttr`: how long a lease of the task lasts unless it is renewed.
    `pop`: tasks are delivered for good.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("SUBSCRIBE")
    words.names(queues)
    words.span("TTR", ttr)
    words.switch("POP", pop)
    words.option("MEMBER", member)
    return words


def unsubscribe(
    queues: Sequence[Name] = (),
    *,
    member: Name | None = None,
) -> Words:
    """Ends subscriptions, all of them if none is named.

    The reply: how many subscriptions are left.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("UNSUBSCRIBE")
    words.any_names(queues)
    words.option("MEMBER", member)
    return words


def credit(
    n: int,
) -> Words:
    """Grants that many further deliveries.

    The reply: the credit before the deliveries that it sets off.
    """
    words = Words("CREDIT")
    words.add(n)
    return words


def ready() -> Words:
    """Grants one further delivery.

    The reply: the credit before the delivery that it sets off.
    """
    return Words("READY")


class JoinOptions(TypedDict, total=False):
    """Options that `join` explains."""

    lease: Span | None


def join(
    topic: Name,
    member: Name,
    *,
    lease: Span | None = None,
) -> Words:
    """Gives a member a lane in a topic, and registers it if need be.

    The reply: the incarnation of the member.

    `lease`: how long the member lives without a sign of life.
    """
    words = Words("JOIN")
    words.add(topic)
    words.add(member)
    words.span("LEASE", lease)
    return words


class BeatOptions(TypedDict, total=False):
    """Options that `beat` explains."""

    lease: Span | None


def beat(
    member: Name,
    *,
    lease: Span | None = None,
) -> Words:
    """Gives a sign of life, which begins the lease of a member anew.

    The reply: OK.

    `lease`: how long the member lives without a sign of life.
    """
    words = Words("BEAT")
    words.add(member)
    words.span("LEASE", lease)
    return words


def leave(
    topic: Name | None,
    member: Name,
) -> Words:
    """Ends a lane of a member; without a topic the member and all its lanes.

    The reply: how many lanes ended.
    """
    words = Words("LEAVE")
    words.maybe(topic)
    words.add(member)
    return words


class PublishOptions(TypedDict, total=False):
    """Options that `publish` explains."""

    key: Name | None
    priority: Priority | None
    deadline: Moment | None
    ttl: Span | None


def publish(
    topic: Name,
    payload: bytes,
    *,
    key: Name | None = None,
    priority: Priority | None = None,
    deadline: Moment | None = None,
    ttl: Span | None = None,
) -> Words:
    """Puts one task into each lane of a topic.

    The reply: how many lanes.

    `key`: the key: tasks of a queue with the same key form a group.
    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `deadline`: the moment from which the task is not delivered to members.
    `ttl`: how long the task lives unless it is taken.
    """
    words = Words("PUBLISH")
    words.add(topic)
    words.add(payload)
    words.option("KEY", key)
    words.priority("PRIORITY", priority)
    words.moment("DEADLINE", deadline)
    words.span("TTL", ttl)
    return words


def members(
    topic: Name,
) -> Words:
    """Tells the members of a topic.

    The reply: an array of maps: member, incarnation, lease_until, ready, taken.
    """
    words = Words("MEMBERS")
    words.add(topic)
    return words


def queue_create(
    queue: Name,
    settings: QueueSettings | None = None,
) -> Words:
    """Makes a queue that exists even when it is empty.

    The reply: OK.
    """
    words = Words("QUEUE", "CREATE")
    words.add(queue)
    words.add(*settings.words() if settings else ())
    return words


def queue_set(
    queue: Name,
    settings: QueueSettings,
    *,
    member: Name | None = None,
) -> Words:
    """Changes settings of a queue, which is created if need be.

    The reply: OK.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("QUEUE", "SET")
    words.add(queue)
    words.add(*settings.words())
    words.option("MEMBER", member)
    return words


def queue_show(
    queue: Name,
    *,
    member: Name | None = None,
) -> Words:
    """Tells the settings of a queue.

    The reply: a map.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("QUEUE", "SHOW")
    words.add(queue)
    words.option("MEMBER", member)
    return words


class QueueListOptions(TypedDict, total=False):
    """Options that `queue_list` explains."""

    prefix: Name | None
    count: int | None


def queue_list(
    *,
    prefix: Name | None = None,
    count: int | None = None,
    cursor: Name | None = None,
) -> Words:
    """Tells the names of the queues, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.

    `prefix`: only names that begin with this.
    `count`: at most this many.
    `cursor`: where the page begins: 0, or the cursor that came with the page before.
    """
    words = Words("QUEUE", "LIST")
    words.option("PREFIX", prefix)
    words.option("COUNT", count)
    words.option("CURSOR", cursor)
    return words


def queue_truncate(
    queue: Name,
    *,
    member: Name | None = None,
) -> Words:
    """Removes all tasks of a queue.

    The reply: how many.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("QUEUE", "TRUNCATE")
    words.add(queue)
    words.option("MEMBER", member)
    return words


def queue_drop(
    queue: Name,
) -> Words:
    """Removes a queue with its tasks, settings and pause.

    The reply: how many tasks it had.
    """
    words = Words("QUEUE", "DROP")
    words.add(queue)
    return words


class QueuePauseOptions(TypedDict, total=False):
    """Options that `queue_pause` explains."""

    for_: Span | None


def queue_pause(
    queue: Name,
    side: Literal["in", "out"] | None = None,
    *,
    for_: Span | None = None,
    member: Name | None = None,
) -> Words:
    """Pauses a queue for puts, for takes, or for both, for good or for a while.

    The reply: OK.

    `for_`: how long the pause lasts; without it until it is ended.
    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("QUEUE", "PAUSE")
    words.add(queue)
    words.maybe(side)
    words.span("FOR", for_)
    words.option("MEMBER", member)
    return words


def queue_resume(
    queue: Name,
    side: Literal["in", "out"] | None = None,
    *,
    member: Name | None = None,
) -> Words:
    """Ends a pause.

    The reply: OK.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("QUEUE", "RESUME")
    words.add(queue)
    words.maybe(side)
    words.option("MEMBER", member)
    return words


def stats(
    queue: Name | None = None,
    *,
    member: Name | None = None,
) -> Words:
    """Tells the figures of a queue, or of all together.

    The reply: a map.

    `member`: the member whose lane is meant; the queue is the topic then.
    """
    words = Words("STATS")
    words.maybe(queue)
    words.option("MEMBER", member)
    return words


class ExportOptions(TypedDict, total=False):
    """Options that `export` explains."""

    count: int | None


def export(
    queue: Name,
    *,
    cursor: Name | None = None,
    count: int | None = None,
) -> Words:
    """Shows all that another server needs to go on with a queue, page by page.

    The reply: the cursor of the next page (0 after the last) and an array of records as JSON.

    `cursor`: where the page begins: 0, or the cursor that came with the page before.
    `count`: at most this many.
    """
    words = Words("EXPORT")
    words.add(queue)
    words.option("CURSOR", cursor)
    words.option("COUNT", count)
    return words


def import_(
    queue: Name,
    record: Name,
    *,
    payload: bytes | None = None,
) -> Words:
    """Takes over one record of an export.

    The reply: the id of a task; OK for other records.

    `payload`: another payload.
    """
    words = Words("IMPORT")
    words.add(queue)
    words.add(record)
    words.option("PAYLOAD", payload)
    return words


class ScheduleSetOptions(TypedDict, total=False):
    """Options that `schedule_set` explains."""

    every: Span | None
    at: Moment | None
    cron: Name | None
    zone: Name | None
    key: Name | None
    priority: Priority | None
    ttl: Span | None
    ttr: Span | None
    missed: Literal["one", "all", "none"] | None
    overlap: Literal["allow", "skip"] | None


def schedule_set(
    schedule: Name,
    queue: Name,
    payload: bytes,
    *,
    every: Span | None = None,
    at: Moment | None = None,
    cron: Name | None = None,
    zone: Name | None = None,
    key: Name | None = None,
    priority: Priority | None = None,
    ttl: Span | None = None,
    ttr: Span | None = None,
    missed: Literal["one", "all", "none"] | None = None,
    overlap: Literal["allow", "skip"] | None = None,
) -> Words:
    """Puts a task into a queue again and again, or changes when and which.

    The reply: the next slot in Unix milliseconds.

    `every`: the time from one slot to the next, at least 100 ms.
    `at`: a moment that is a slot; the others lie whole distances from it.
    `cron`: minute, hour, day of month, month and day of week, or a word such as @daily.
    `zone`: the IANA time zone of CRON, such as Europe/Berlin; UTC unless it is given.
    `key`: the key: tasks of a queue with the same key form a group.
    `priority`: the lower, the more urgent, 0 by default; a task with none leaves only with its
    group.
    `ttl`: how long the task lives unless it is taken.
    `ttr`: how long a lease of the task lasts unless it is renewed.
    `missed`: what is put for slots missed while the server was down: one task (the default), all,
    none.
    `overlap`: whether a slot puts a task while the last one is unfinished: allow (the default), or
    skip it.
    """
    words = Words("SCHEDULE", "SET")
    words.add(schedule)
    words.add(queue)
    words.add(payload)
    words.span("EVERY", every)
    words.moment("AT", at)
    words.option("CRON", cron)
    words.option("ZONE", zone)
    words.option("KEY", key)
    words.priority("PRIORITY", priority)
    words.span("TTL", ttl)
    words.span("TTR", ttr)
    words.option("MISSED", missed)
    words.option("OVERLAP", overlap)
    return words


def schedule_show(
    schedule: Name,
) -> Words:
    """Tells what a schedule does and what it has done.

    The reply: a map.
    """
    words = Words("SCHEDULE", "SHOW")
    words.add(schedule)
    return words


class ScheduleListOptions(TypedDict, total=False):
    """Options that `schedule_list` explains."""

    prefix: Name | None
    count: int | None


def schedule_list(
    *,
    prefix: Name | None = None,
    count: int | None = None,
    cursor: Name | None = None,
) -> Words:
    """Tells the names of the schedules, page by page.

    The reply: the cursor of the next page (0 after the last) and the names in order.

    `prefix`: only names that begin with this.
    `count`: at most this many.
    `cursor`: where the page begins: 0, or the cursor that came with the page before.
    """
    words = Words("SCHEDULE", "LIST")
    words.option("PREFIX", prefix)
    words.option("COUNT", count)
    words.option("CURSOR", cursor)
    return words


def schedule_pause(
    schedule: Name,
) -> Words:
    """Lets slots pass without a task.

    The reply: OK.
    """
    words = Words("SCHEDULE", "PAUSE")
    words.add(schedule)
    return words


def schedule_resume(
    schedule: Name,
) -> Words:
    """Ends a pause of a schedule.

    The reply: OK.
    """
    words = Words("SCHEDULE", "RESUME")
    words.add(schedule)
    return words


def schedule_drop(
    schedule: Name,
) -> Words:
    """Removes a schedule; its tasks stay.

    The reply: 1, or 0 if there is none.
    """
    words = Words("SCHEDULE", "DROP")
    words.add(schedule)
    return words


def schedule_fire(
    schedule: Name,
) -> Words:
    """Puts a task of a schedule now, also while it is paused.

    The reply: the id.
    """
    words = Words("SCHEDULE", "FIRE")
    words.add(schedule)
    return words
