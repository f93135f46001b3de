"""A channel: puts messages as tasks, and takes tasks as messages."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import partial
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.utils.json import dumps, loads

from .. import tracing
from ..errors import NoQueue
from ..job import reason_of
from ..replies import State
from ..requests import tasks as about_tasks
from ..settings import QueueSettings
from ..task import Task
from . import tasks as celery_tasks
from .bindings import ANONYMOUS, DIRECT_AGE_S, SHARED_AGE_S, TEMPORARY_S, Binding
from .taker import Taker

log = logging.getLogger("pinpriq.kombu")

#: The most messages that one take returns for a consumer without a prefetch count.
COUNT_MAX = 100

#: The time to live of messages of a temporary queue that says nothing about it, in seconds.
TEMPORARY_MESSAGE_S = 3600.0

#: The arguments of queues that make a difference here, and two that every queue fulfils.
ARGUMENTS = {"x-expires", "x-message-ttl", "x-max-priority", "x-queue-type"}

#: The moments between which an ETA is on the server.
EARLIEST = datetime.fromtimestamp(0, timezone.utc)
LATEST = datetime.max.replace(tzinfo=timezone.utc)

#: Where the unique key of a message is kept between the tries to publish it.
KEY_PROPERTY = "pinpriq_key"


class QoS(virtual.QoS):
    """Settles the leases of the messages of a channel."""

    def ack(self, delivery_tag: str) -> None:
        """Acknowledge a message."""
        self.channel.settle(delivery_tag, released=False)
        super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give a message back, or drop it."""
        self.channel.settle(delivery_tag, released=requeue)
        super().ack(delivery_tag)

    def restore_unacked(self) -> list[Any]:
        """Give all messages back that are not acknowledged."""
        self._flush()
        for delivery_tag in list(self._delivered):
            self.channel.settle(delivery_tag, released=True)
        self._delivered.clear()
        return []

    def room(self) -> int:
        """Return how many further messages the consumers may have."""
        self._flush()
        if not self.prefetch_count:
            return COUNT_MAX
        return max(0, min(COUNT_MAX, int(self.prefetch_count) - len(self._delivered)))


class Channel(virtual.Channel):
    """A channel of a transport."""

    QoS = QoS
    supports_fanout = True
    from_transport_options = (
        *virtual.Channel.from_transport_options,
        "confirm_leases",
        "lowest_priority_first",
        "queue_prefix",
    )

    #: Whether a message is delivered only when its lease is on disk.
    confirm_leases = True
    #: Whether priority 0 is the most urgent one, as with the Redis transport.
    lowest_priority_first = False
    #: What the names of queues on the server begin with.
    queue_prefix = ""

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self.client = connection.pinpriq
        self.keeper = connection.keeper
        self.bindings = connection.bindings
        self.takers: list[Taker] = []
        self._split = False
        self._receipts: dict[str, tuple[str, str]] = {}
        self._backlog: deque[Task] = deque()
        self._no_ack: set[str] = set()
        self._bound: set[tuple[str, Binding]] = set()
        connection.cycle.add(self)

    def basic_publish(self, message: Any, exchange: str, routing_key: str, **kwargs: Any) -> Any:
        """Publish a message. Kombu may try so again, with the same properties."""
        message["properties"].setdefault(KEY_PROPERTY, uuid4().hex)
        return super().basic_publish(message, exchange, routing_key, **kwargs)

    def _put(self, queue: str, message: Any, **_: Any) -> None:
        self._put_task(queue, message)

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **_: Any) -> None:
        for queue in {each.queue for each in self.bindings.table(exchange, SHARED_AGE_S)}:
            self._put_task(queue, message)

    def _put_task(self, queue: str, message: Any) -> None:
        properties = message["properties"]
        key = properties.get(KEY_PROPERTY) or uuid4().hex
        own = (KEY_PROPERTY, celery_tasks.ORIGIN_PROPERTY)
        sent = {name: value for name, value in properties.items() if name not in own}
        headers = message.get("headers") or {}
        eta = _eta(headers)
        # Celery keeps headers when it tries a task again, and options not.
        terms = {**properties, **headers}
        # A temporary queue outlives its owner, so its messages end by themselves.
        ttl_s = self.bindings.message_ttl_s(queue)
        expiration = properties.get("expiration")
        if expiration is not None:
            own_s = max(0.001, int(expiration) / 1000)
            ttl_s = own_s if ttl_s is None else min(own_s, ttl_s)
        if ttl_s is not None and eta is not None and ttl_s <= eta.timestamp() - time.time():
            # The server refuses it, and Celery itself revokes the task when it comes.
            ttl_s = None
        name = self.queue_prefix + queue
        put = partial(
            about_tasks.put,
            name,
            dumps({**message, "properties": sent}).encode(),
            priority=self._pinpriq_priority(message),
            at=eta,
            ttl=ttl_s,
            share=terms.get("share"),
            cost=terms.get("cost"),
            unique=key,
            window=self.client.options.window_s,
            own_window=self.client.options.window_s,
        )
        trace = tracing.trace_in(headers)
        if trace or not celery_tasks.has_own_span(headers):
            self.client.run(put(headers=trace))
            return
        with tracing.Sending("put", name, self.client.link.url, None) as sending:
            sending.note_id(self.client.run(put(headers=sending.headers)).id)

    def _pinpriq_priority(self, message: Any) -> int:
        """Return the priority on the server, where a lower number is more urgent.

        Raises `ValueError` for a number that is not whole.
        """
        given = message["properties"].get("priority")
        try:
            priority = int(given)
        except (TypeError, ValueError):
            priority = self.default_priority
        else:
            if priority != float(given):
                raise ValueError(f"a priority is a whole number, not {given!r}")
        return priority if self.lowest_priority_first else -priority

    def prepare_queue_arguments(self, arguments: Any, **kwargs: Any) -> Any:
        """Return the arguments of a queue, in which kombu says how long it lives."""
        return to_rabbitmq_queue_arguments(arguments, **kwargs)

    def _new_queue(
        self,
        queue: str,
        auto_delete: bool = False,
        exclusive: bool = False,
        arguments: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        given = {name: value for name, value in (arguments or {}).items() if value is not None}
        if unknown := sorted(set(given) - ARGUMENTS):
            raise ValueError(f"the queue {queue} has arguments that pinpriq has not: {unknown}")
        expires_s, message_ttl_s = (
            given[name] / 1000 if name in given else None for name in ("x-expires", "x-message-ttl")
        )
        if auto_delete or exclusive or expires_s is not None:
            life_s = max(TEMPORARY_S, expires_s or 0)
            if message_ttl_s is None:
                message_ttl_s = TEMPORARY_MESSAGE_S if expires_s is None else life_s
            binding = Binding(queue, None, queue, life_s, "direct", message_ttl_s)
            self._bind(ANONYMOUS, binding)
            return
        self.bindings.note_lasting(queue)
        if message_ttl_s is not None:
            self._server_queue(queue).configure(QueueSettings(ttl=message_ttl_s))

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        """Bind a queue to an exchange."""
        exchange = exchange or "amq.direct"
        if not self.bindings.owns(exchange, Binding(routing_key or "", None, queue)):
            # Another process may have ended a binding that was made here.
            self.state.binding_delete(queue, exchange, routing_key)
        super().queue_bind(queue, exchange, routing_key, arguments, **kwargs)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        life_s = next(
            (each.ttl_s for each in self.bindings.own(ANONYMOUS) if each.queue == queue), None
        )
        kind = self.state.exchanges[exchange]["type"]
        self._bind(exchange, Binding(routing_key or "", pattern, queue, life_s, kind))

    def _bind(self, exchange: str, binding: Binding) -> None:
        self.bindings.add(exchange, binding)
        if binding.ttl_s is not None:
            self._bound.add((exchange, binding))
            self.keeper.refresh(
                _name_of(exchange, binding), lambda: self.bindings.add(exchange, binding)
            )

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        """End a binding of a queue."""
        exchange = exchange or "amq.direct"
        self.state.binding_delete(queue, exchange, routing_key)
        self._unbind(exchange, Binding(routing_key or "", None, queue))

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any
    ) -> None:
        """Remove a queue with its messages and bindings, also those that others have made."""
        if if_empty and self._size(queue):
            return
        exchanges = self.bindings.exchanges_of(queue)
        for exchange in exchanges:
            for binding in self.bindings.own(exchange):
                if binding.queue == queue:
                    self._unbind(exchange, binding)
        if not exchanges:
            self.bindings.remove_queue(queue)
        self.state.queue_bindings_delete(queue)
        self._drop(queue)

    def exchange_delete(self, exchange: str, if_unused: bool = False, nowait: bool = False) -> None:
        """Remove an exchange with its bindings. The queues stay."""
        if if_unused and self.bindings.table(exchange, 0.0):
            return
        for binding in self.bindings.own(exchange):
            self._forget(exchange, binding)
            self.state.binding_delete(binding.queue, exchange, binding.routing_key)
        self.bindings.drop(exchange)
        self.state.exchanges.pop(exchange, None)

    def get_table(self, exchange: str) -> list[tuple[str, str | None, str]]:
        """Return the bindings of an exchange, as its type wants them."""
        age_s = DIRECT_AGE_S if self._is_direct(exchange) else SHARED_AGE_S
        prepare = self.typeof(exchange).prepare_bind
        return [
            (
                binding.routing_key,
                # The process that bound it may have taken the exchange for one of another type.
                binding.pattern or prepare(binding.queue, exchange, binding.routing_key, None)[1],
                binding.queue,
            )
            for binding in self.bindings.table(exchange, age_s)
        ]

    def _is_direct(self, exchange: str) -> bool:
        """Tell whether an exchange was declared here, and leads to the queue of one key."""
        declared = self.state.exchanges.get(exchange)
        return declared is not None and declared["type"] == "direct"

    def typeof(self, exchange: str, default: str = "direct") -> Any:
        """Return the type of an exchange, also of one that only others have declared."""
        if exchange not in self.state.exchanges:
            for binding in self.bindings.table(exchange, SHARED_AGE_S):
                return self.exchange_types[binding.kind]
        return super().typeof(exchange, default)

    def _lookup(self, exchange: str, routing_key: str, default: Any = None) -> Any:
        found = super()._lookup(exchange, routing_key, default)
        if not found and self._is_direct(exchange) and self.bindings.forget(exchange):
            # Another process may have bound a queue meanwhile.
            found = super()._lookup(exchange, routing_key, default)
        return found

    def _drop(self, queue: str) -> None:
        """Remove a queue on the server."""
        self.keeper.await_released(self.queue_prefix + queue)
        try:
            self._server_queue(queue).drop()
        except NoQueue:
            log.debug("the queue %s is gone already", queue)

    def _unbind(self, exchange: str, binding: Binding) -> None:
        self._forget(exchange, binding)
        self.bindings.remove(exchange, binding)

    def _forget(self, exchange: str, binding: Binding) -> None:
        """Renew a binding no longer."""
        name = _name_of(exchange, binding)
        self.keeper.refresh(name, None)
        self._bound = {each for each in self._bound if _name_of(*each) != name}

    def _size(self, queue: str) -> int:
        self.keeper.await_released(self.queue_prefix + queue)
        return int(self._server_queue(queue).stats().counts[State.READY])

    def _purge(self, queue: str) -> int:
        """Remove the messages that are not taken. Returns how many."""
        self.keeper.await_released(self.queue_prefix + queue)
        server_queue = self._server_queue(queue)
        purged = 0
        for state in (State.READY, State.WAITING):
            while tasks := server_queue.scan(count=1000, state=state).items:
                purged += server_queue.kill(*(task.id for task in tasks))
        return purged

    def _server_queue(self, queue: str) -> Any:
        return self.client.queue(self.queue_prefix + queue, serialiser="bytes")

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any
    ) -> None:
        """Begin to deliver the messages of a queue."""
        if no_ack:
            self._no_ack.add(queue)
        for exchange in self.bindings.exchanges_of(queue):
            # Who only consumes looks at the table by itself, to make what was lost again.
            self.keeper.refresh(
                f"table {exchange}", lambda exchange=exchange: self.bindings.table(exchange, 0.0)
            )
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)

    def basic_cancel(self, consumer_tag: str) -> None:
        """Deliver the messages of a queue no longer.

        A take that is under way is waited for, so that each held message has a holder.
        """
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is not None and queue not in self._no_ack:
            for taker in self.takers:
                if self.queue_prefix + queue in taker.names:
                    self._backlog.extend(taker.finish())
            for task in [task for task in self._backlog if not self._is_wanted(task)]:
                self._backlog.remove(task)
                self._give_back(task)

    def start_takes(self) -> Iterable[Taker]:
        """Send takes for all queues that are consumed, if there is room. Returns all takers."""
        names = [self.queue_prefix + queue for queue in self._active_queues]
        if any(taker.must_split for taker in self.takers):
            self._split = True
        wanted = len(names) if self._split else min(1, len(names))
        while len(self.takers) < wanted:
            self.takers.append(Taker(self.client, self.connection.ttr_s, self.confirm_leases))
        room = self.qos.room() - len(self._backlog)
        if names and room > 0:
            if self._split:
                for taker, name in zip(self.takers, names, strict=False):
                    taker.send((name,), max(1, room // len(names)))
            else:
                self.takers[0].send(tuple(names), room)
        return self.takers

    def deliver(self, tasks: list[Task]) -> int:
        """Deliver tasks as messages. Returns how many."""
        self._backlog.extend(tasks)
        delivered = 0
        while self._backlog:
            task = self._backlog.popleft()
            if not self._is_wanted(task):
                self._give_back(task)
                continue
            message = self._message_or_bury(task)
            if message is not None:
                delivered += 1
                self._deliver_message(task, message)
        return delivered

    def _is_wanted(self, task: Task) -> bool:
        return self._name(task) in self._active_queues

    def _name(self, task: Task) -> str:
        return task.queue.removeprefix(self.queue_prefix)

    def _deliver_message(self, task: Task, message: Any) -> None:
        queue = self._name(task)
        if queue in self._no_ack:
            assert task.receipt is not None
            self.keeper.ack(task.queue, task.receipt)
        self.connection._deliver(message, queue)

    def _message_or_bury(self, task: Task) -> Any:
        """Return the message of a task, with a delivery tag that stands for its lease.

        A task that is no message is buried with the reason, and then this returns None.
        """
        assert task.receipt is not None
        tag = uuid4().hex
        try:
            message = _message_of(task, tag)
            # All that a consumer reads at first is read here, where an error ends nothing.
            self.Message(message, channel=self)
        except Exception as error:
            why = f"the payload is not a message: {reason_of(error)}"
            log.error("%s of %s is buried: %s", task.id, task.queue, why)
            self.keeper.bury(task.queue, task.receipt, why)
            return None
        if self._name(task) not in self._no_ack:
            self._receipts[tag] = (task.queue, task.receipt)
            self.keeper.hold(task.queue, task.receipt, message["headers"].get("id"))
        return message

    def _give_back(self, task: Task) -> None:
        assert task.receipt is not None
        self.keeper.release(task.queue, task.receipt)

    def settle(self, delivery_tag: str, *, released: bool) -> None:
        """Acknowledge a message or give it back."""
        place = self._receipts.pop(delivery_tag, None)
        if place is None:
            return
        if released:
            self.keeper.release(*place)
        else:
            self.keeper.ack(*place)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        # What was given back on this channel is there again.
        self.keeper.await_released(self.queue_prefix + queue)
        while True:
            [*jobs] = self._server_queue(queue).take_many(1, ttr=self.connection.ttr_s)
            if not jobs:
                raise Empty
            message = self._message_or_bury(jobs[0].task)
            if message is not None:
                return message

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return one message, or None."""
        message = super().basic_get(queue, no_ack, **kwargs)
        if message is not None and no_ack:
            self.settle(message.delivery_tag, released=False)
        return message

    def close(self) -> None:
        """Give back what is not acknowledged, and end temporary queues."""
        if self.closed:
            return
        connection = self.connection
        consumed = set(self._active_queues)
        super().close()
        connection.cycle.discard(self)
        for taker in self.takers:
            taker.close()
        self.takers.clear()
        for exchange, binding in list(self._bound):
            if binding.queue in consumed:
                connection.quietly(
                    lambda exchange=exchange, binding=binding: self._unbind(exchange, binding)
                )
            else:
                self.keeper.refresh(_name_of(exchange, binding), None)
            if exchange == ANONYMOUS and binding.queue in consumed:
                connection.quietly(lambda queue=binding.queue: self._server_queue(queue).drop())


def _name_of(exchange: str, binding: Binding) -> str:
    """Return a name for the renewals of a binding."""
    return f"{exchange}\0{binding.queue}\0{binding.routing_key}"


def _message_of(task: Task, tag: str) -> Any:
    """Return what a task says, as a message of kombu. Raises something if it is none."""
    message = loads(task.payload.decode())
    properties = message["properties"]
    info = properties.setdefault("delivery_info", {})
    message.setdefault("headers", {})
    for part in (message, properties, info, message["headers"]):
        if not isinstance(part, dict):
            raise TypeError(f"{type(part).__name__} in place of fields with names")
    if not isinstance(message["body"], str | bytes):
        raise TypeError(f"the body is {type(message['body']).__name__}, and not text")
    for name in ("content-type", "content-encoding"):
        if not isinstance(message.get(name), str | None):
            raise TypeError(f"the {name} is no text")
    properties["delivery_tag"] = tag
    celery_tasks.tell_origin(properties, task)
    if task.attempts > 1:
        info["redelivered"] = True
        message["redelivered"] = True
    return message


def _eta(headers: Any) -> datetime | None:
    """Return until when a Celery task must not run yet, or None."""
    eta = headers.get("eta")
    if not isinstance(eta, str):
        return None
    try:
        moment = datetime.fromisoformat(eta.replace("Z", "+00:00"))
    except ValueError:
        # The worker reads it again, and knows more forms.
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    # Zones west of Greenwich have moments that the server has no number for.
    return min(max(moment, EARLIEST), LATEST)
