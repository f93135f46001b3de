"""A channel: puts messages as tasks, and takes tasks as messages."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timezone
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from kombu.utils.json import dumps, loads

from ..errors import NoQueue
from ..replies import State, Task
from ..requests import tasks as about_tasks
from ..spans import moment_ms
from .bindings import DIRECT_AGE_S, SHARED_AGE_S, TEMPORARY_S, Binding
from .taker import Taker

log = logging.getLogger("pinpriq.kombu")

#: The most messages that one take returns for a consumer without a prefetch count.
COUNT_MAX = 100

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
        self._from_backlog = 0
        self._no_ack: set[str] = set()
        self._temporary: dict[str, float] = {}
        self._bound: set[tuple[str, Binding]] = set()
        connection.cycle.add(self)

    def basic_publish(self, message: Any, exchange: str, routing_key: str, **kwargs: Any) -> Any:
        """Publish a message. Kombu may try so again, with the same properties."""
        message["properties"].setdefault(KEY_PROPERTY, uuid4().hex)
        return super().basic_publish(message, exchange, routing_key, **kwargs)

    def _put(self, queue: str, message: Any, **_: Any) -> None:
        self._put_task(queue, message, self._temporary.get(queue))

    def _put_fanout(self, exchange: str, message: Any, routing_key: str, **_: Any) -> None:
        for binding in self.bindings.table(exchange, SHARED_AGE_S):
            self._put_task(binding.queue, message, binding.ttl_s)

    def _put_task(self, queue: str, message: Any, ttl_s: float | None) -> None:
        properties = message["properties"]
        key = properties.get(KEY_PROPERTY) or uuid4().hex
        sent = {name: value for name, value in properties.items() if name != KEY_PROPERTY}
        delay_s = _delay_s(message.get("headers") or {})
        expiration = properties.get("expiration")
        if expiration is not None:
            ttl_s = max(0.001, int(expiration) / 1000)
        if ttl_s is not None and delay_s is not None and ttl_s <= delay_s:
            # The server refuses it, and Celery itself revokes the task when it comes.
            ttl_s = None
        self.client.run(
            about_tasks.put(
                self.queue_prefix + queue,
                dumps({**message, "properties": sent}).encode(),
                key=None,
                priority=self._pinpriq_priority(message),
                delay=delay_s,
                at=None,
                ttl=ttl_s,
                ttr=None,
                id=None,
                room=None,
                unique=key,
                window=self.client.options.window_s,
                on_duplicate=None,
                buried=False,
                reason=None,
                own_window=self.client.options.window_s,
                wait_ms=None,
            )
        )

    def _pinpriq_priority(self, message: Any) -> int:
        """Return the priority on the server, where a lower number is more urgent."""
        try:
            priority = int(message["properties"]["priority"])
        except (KeyError, TypeError, ValueError):
            priority = self.default_priority
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
        expires_ms = (arguments or {}).get("x-expires")
        if auto_delete or exclusive or expires_ms is not None:
            self._temporary[queue] = max(TEMPORARY_S, (expires_ms or 0) / 1000)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = Binding(
            routing_key or "",
            pattern,
            queue,
            self._temporary.get(queue),
            self.state.exchanges[exchange]["type"],
        )
        self.bindings.add(exchange, binding)
        if binding.ttl_s is not None:
            self._bound.add((exchange, binding))
            self.keeper.refresh(
                f"{exchange}\0{queue}\0{routing_key}", lambda: self.bindings.add(exchange, binding)
            )

    def get_table(self, exchange: str) -> list[tuple[str, str | None, str]]:
        """Return the bindings of an exchange, as its type wants them."""
        age_s = DIRECT_AGE_S if self._is_direct(exchange) else SHARED_AGE_S
        return [
            (binding.routing_key, binding.pattern, binding.queue)
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

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: str, *_: Any, **__: Any
    ) -> None:
        self._unbind(exchange, Binding(routing_key or "", pattern, queue))
        try:
            self._server_queue(queue).drop()
        except NoQueue:
            log.debug("the queue %s is gone already", queue)

    def _unbind(self, exchange: str, binding: Binding) -> None:
        self.keeper.refresh(f"{exchange}\0{binding.queue}\0{binding.routing_key}", None)
        self.bindings.remove(exchange, binding)
        self._bound = {each for each in self._bound if each[1].queue != binding.queue}

    def _size(self, queue: str) -> int:
        return int(self._server_queue(queue).stats().counts[State.READY])

    def _purge(self, queue: str) -> int:
        """Remove the messages that nobody has taken. Returns how many."""
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
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)

    def basic_cancel(self, consumer_tag: str) -> None:
        """Deliver the messages of a queue no longer.

        A take that is under way is waited for, so that no message is held by nobody.
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
            if self._is_wanted(task):
                delivered += 1
                self._deliver_task(task)
            else:
                self._give_back(task)
        return delivered

    def deliver_backlog(self) -> None:
        """Deliver what came while a consumer was cancelled."""
        if self._backlog:
            self._from_backlog += self.deliver([])

    def delivered_from_backlog(self) -> int:
        """Return how many messages came from the backlog since this was last asked."""
        count, self._from_backlog = self._from_backlog, 0
        return count

    def _is_wanted(self, task: Task) -> bool:
        return self._name(task) in self._active_queues

    def _name(self, task: Task) -> str:
        return task.queue.removeprefix(self.queue_prefix)

    def _deliver_task(self, task: Task) -> None:
        queue = self._name(task)
        message = self._message(task)
        if queue in self._no_ack:
            assert task.receipt is not None
            self.keeper.ack(task.queue, task.receipt)
        self.connection._deliver(message, queue)

    def _message(self, task: Task) -> Any:
        """Return the message of a task, with a delivery tag that stands for its lease."""
        assert task.receipt is not None
        message = loads(task.payload.decode())
        tag = uuid4().hex
        properties = message["properties"]
        properties["delivery_tag"] = tag
        if task.attempts > 1:
            properties.setdefault("delivery_info", {})["redelivered"] = True
            message["redelivered"] = True
        if self._name(task) not in self._no_ack:
            self._receipts[tag] = (task.queue, task.receipt)
            self.keeper.hold(task.queue, task.receipt)
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
        [*jobs] = self._server_queue(queue).take_many(1, ttr=self.connection.ttr_s)
        if not jobs:
            raise Empty
        return self._message(jobs[0].task)

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
                    lambda exchange=exchange, binding=binding: self._delete(
                        binding.queue, exchange, binding.routing_key, binding.pattern or ""
                    )
                )
            else:
                self.keeper.refresh(f"{exchange}\0{binding.queue}\0{binding.routing_key}", None)


def _delay_s(headers: Any) -> float | None:
    """Return for how long a Celery task must not run yet, in seconds, or None."""
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
    left_ms = moment_ms(moment) - moment_ms(datetime.now(timezone.utc))
    return left_ms / 1000 if left_ms > 0 else None
