"""A broker of Dramatiq. Needs the extra `dramatiq`.

import dramatiq
from pinpriq.dramatiq import PinpriqBroker

dramatiq.set_broker(PinpriqBroker("pinpriq://127.0.0.1:7251"))
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from dramatiq.broker import Broker, Consumer, MessageProxy
from dramatiq.errors import (
    BrokerConnectionError,
    BrokerError,
    QueueJoinTimeout,
    QueueNotFound,
)
from dramatiq.message import Message
from dramatiq.middleware import Middleware, SkipMessage

from . import tracing
from .errors import Aborted, Disconnected, NoQueue, PinpriqError, Stale
from .job import reason_of
from .options import own_name
from .replies import State
from .requests import tasks as about_tasks
from .requests.base import OWN, whole
from .spans import Span, span_s
from .sync.client import Client
from .sync.job import Job
from .sync.keeper import Keeper

#: What the fields of a message are, as far as a worker relies on it.
_FIELDS: dict[str, tuple[type, ...]] = {
    "queue_name": (str,),
    "actor_name": (str,),
    "args": (list, tuple),
    "kwargs": (dict,),
    "options": (dict,),
    "message_id": (str,),
    "message_timestamp": (int, float),
}

#: The queue for dead letters of a queue has this at the end of its name.
DEAD_SUFFIX = ".dead"


class PinpriqBroker(Broker):
    """Uses pinpriq as the broker of Dramatiq.

    `url` and the further options are those of `Client`. Spans are seconds. `lease` is how long a
    lease lasts, which is renewed at a third of that. A delay is one of the server, so delayed
    messages occupy no worker. A lower priority is more urgent, as for actors of Dramatiq; it is
    that of the message (`broker_priority` of its options) or of its actor. The broker for RabbitMQ
    has it the other way round: with `highest_priority_first` a higher `broker_priority` is more
    urgent, one without it has 0, and the priority of an actor counts only within a worker.

    Messages that are given up become dead letters in a queue with `.dead` at the end of its name,
    for `dead_message_ttl` seconds. `queue_prefix` is what the names of queues on the server begin
    with.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        middleware: list[Middleware] | None = None,
        lease: Span = 60.0,
        dead_message_ttl: Span = 7 * 86400.0,
        queue_prefix: str = "",
        highest_priority_first: bool = False,
        **client_options: Any,
    ) -> None:
        super().__init__(middleware)
        if tracing.INSTALLED:
            # The outermost, so that what others put is part of the trace of what runs.
            self.middleware.insert(0, _Spans())
        self.middleware.append(_Cancels())
        self.queues: dict[str, str] = {}
        self.lease_s = span_s(lease)
        self._dead_message_ttl_s = span_s(dead_message_ttl)
        self._prefix = queue_prefix
        self._highest_first = highest_priority_first
        self.actor_options.add("broker_priority")
        named = {"client_name": own_name("dramatiq"), **client_options}
        self.client = Client(url, serialiser="bytes", **named)
        self._lock = threading.Lock()
        self._keeper: Keeper | None = None

    @property
    def keeper(self) -> Keeper:
        """What renews the leases of all consumers, from the first use on."""
        with self._lock:
            if self._keeper is None:
                self._keeper = Keeper(self.client, self.lease_s, self._lost, self._cancelled)
                self._keeper.start()
            return self._keeper

    def _lost(self, job: Job) -> None:
        self.logger.warning("the lease of the message %s was lost", job.id)

    def _cancelled(self, job: Job, reason: str) -> None:
        job.note_cancelled(reason)
        self.logger.info("the message %s was cancelled: %s", job.id, reason)

    def close(self) -> None:
        """Stop renewing leases, and close the connections."""
        with self._lock:
            if self._keeper is not None:
                self._keeper.stop()
                self._keeper = None
        self.client.close()

    def server_queue(self, queue_name: str) -> str:
        """Return the name of a queue on the server."""
        # The braces keep a queue and its dead letters in one shard.
        return f"{self._prefix}{{{queue_name}}}"

    def dead_queue(self, queue_name: str) -> str:
        """Return the name of the queue for dead letters on the server."""
        return self.server_queue(queue_name) + DEAD_SUFFIX

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue. That asks the server nothing yet."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = self.server_queue(queue_name)
            self.emit_after("declare_queue", queue_name)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        """Return the messages of a queue, waiting for at most `timeout` milliseconds for each."""
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        return _Consumer(self, queue_name, prefetch, timeout)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Put a message into its queue, where it waits for `delay` milliseconds first.

        It has a unique key of its own, so that it is there once even if a reply is lost.
        """
        queue_name = message.queue_name
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        self.emit_before("enqueue", message, delay)
        try:
            self.client.queue(self.queues[queue_name]).put(
                message.encode(),
                priority=self.priority_of(message),
                delay=None if delay is None else delay / 1000,
            )
        except Disconnected as error:
            raise BrokerConnectionError(str(error)) from error
        except PinpriqError as error:
            raise BrokerError(f"the message was not put: {error}") from error
        self.emit_after("enqueue", message, delay)
        return message

    def priority_of(self, message: Message[Any] | MessageProxy) -> int:
        """Return the priority of a message on the server, where a lower one is more urgent.

        Raises `ValueError` if it is not a whole number.
        """
        given = message.options.get("broker_priority")
        actor = self.actors.get(message.actor_name)
        if given is None and actor is not None:
            given = actor.options.get("broker_priority")
        if self._highest_first:
            return -whole(given or 0)
        if given is None:
            return 0 if actor is None else actor.priority
        return whole(given)

    def get_declared_queues(self) -> set[str]:
        """Return the names of the queues that were declared."""
        return set(self.queues)

    def flush(self, queue_name: str) -> None:
        """Remove all messages of a queue, and its dead letters."""
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        for name in (self.queues[queue_name], self.dead_queue(queue_name)):
            try:
                self.client.queue(name).truncate()
            except NoQueue:
                continue

    def flush_all(self) -> None:
        """Remove all messages of all declared queues."""
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until a queue has no messages, at most for `timeout` milliseconds."""
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        until = None if timeout is None else time.monotonic() + timeout / 1000
        queue = self.client.queue(self.queues[queue_name])
        while True:
            counts = queue.stats().counts
            if not sum(counts[state] for state in (State.READY, State.TAKEN, State.WAITING)):
                return
            if until is not None and time.monotonic() >= until:
                raise QueueJoinTimeout(queue_name)
            time.sleep(0.05)

    def dead_letters(self, queue_name: str) -> list[Message[Any]]:
        """Return the dead letters of a queue, the most urgent ones first."""
        tasks = self.client.queue(self.dead_queue(queue_name)).tasks()
        return [Message.decode(task.payload) for task in tasks]

    def redrive(self, queue_name: str) -> int:
        """Move the dead letters of a queue back into it. Returns how many, at most 1,000."""
        dead = self.client.queue(self.dead_queue(queue_name))
        count = dead.move(self.server_queue(queue_name))
        tracing.redriven(dead.name, count)
        return count

    def bury(self, queue_name: str, job: Job) -> None:
        """Make a message a dead letter, in one step with the end of its lease."""
        with self.client.transaction() as steps:
            # It is the same task, so it stays in its trace.
            steps.add(
                about_tasks.put(
                    self.dead_queue(queue_name),
                    job.payload,
                    priority=job.task.priority,
                    ttl=self._dead_message_ttl_s,
                    headers=job.task.headers,
                    unique=OWN,
                    own_window=self.client.options.window_s,
                )
            )
            steps.ack(job)


class _Message(MessageProxy):
    """A message with the lease that it came under, and the consumer that it occupies."""

    def __init__(self, consumer: _Consumer, job: Job, message: Message[Any]) -> None:
        super().__init__(message)
        self.consumer = consumer
        self.job = job
        self.attempt: tracing.Attempt | None = None


class _Cancels(Middleware):
    """Has a message that was cancelled not begin, and not tried again if it fails."""

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if isinstance(message, _Message) and message.job.cancel_reason is not None:
            message.fail()
            raise SkipMessage("the message was cancelled")

    def after_process_message(
        self,
        broker: Broker,
        message: MessageProxy,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        if isinstance(message, _Message) and message.job.cancel_reason is not None:
            # The middleware for retries is called later, and leaves these exceptions alone.
            message.options["throws"] = BaseException


class _Spans(Middleware):
    """Has each attempt at a message run in a span, if the application traces.

    All hooks run in the thread that works on the message.
    """

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if tracing.is_on() and isinstance(message, _Message):
            message.attempt = tracing.Attempt.at(message.job.task)

    def after_ack(self, broker: Broker, message: MessageProxy) -> None:
        self._end(message, None)

    def after_nack(self, broker: Broker, message: MessageProxy) -> None:
        self._end(message, State.GONE)

    def after_worker_shutdown(self, broker: Broker, worker: Any) -> None:
        # The processes of Dramatiq end without the exit functions of Python.
        tracing.flush()

    @staticmethod
    def _end(message: MessageProxy, state: State | None) -> None:
        if isinstance(message, _Message) and message.attempt is not None:
            failed = message._exception is not None or state is not None
            if failed and message.job.cancel_reason is not None:
                message.attempt.cancelled()
            elif failed:
                message.attempt.failed(message._exception, state=state)
            message.attempt.end()


class _Consumer(Consumer):
    """The messages of one queue.

    Dramatiq settles messages from the threads of its workers while another one consumes.
    """

    def __init__(
        self, broker: PinpriqBroker, queue_name: str, prefetch: int, timeout_ms: int
    ) -> None:
        self._broker = broker
        self._queue_name = queue_name
        self._queue = broker.client.queue(broker.queues[queue_name])
        self._timeout_s = timeout_ms / 1000
        self._room = threading.Semaphore(max(1, prefetch))
        self._keeper = broker.keeper

    def ack(self, message: MessageProxy) -> None:
        """Acknowledge a message."""
        self._settle(message, lambda job: job.ack())

    def nack(self, message: MessageProxy) -> None:
        """Make a message a dead letter, unless it was cancelled."""
        self._settle(message, self._give_up)

    def _give_up(self, job: Job) -> None:
        if job.cancel_reason is None:
            self._broker.bury(self._queue_name, job)
        else:
            job.release()

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give messages back that were not worked on."""
        for message in messages:
            self._settle(message, lambda job: job.release())

    def __next__(self) -> MessageProxy | None:
        """Return the next message, or None if there was none in time."""
        if not self._room.acquire(timeout=self._timeout_s):
            return None
        job: Job | None = None
        try:
            job = self._queue.take(wait=min(self._timeout_s, 1.0), ttr=self._broker.lease_s)
        except Disconnected as error:
            raise BrokerConnectionError(str(error)) from error
        finally:
            if job is None:
                self._room.release()
        if job is None:
            return None
        try:
            message = _Message(self, job, _message_of(job.payload))
        except Exception as error:
            why = f"the payload is not a message: {reason_of(error)}"
            self._room.release()
            self._broker.logger.error("%s is buried: %s", job.id, why)
            try:
                job.bury(why)
            except PinpriqError as refused:
                self._broker.logger.warning("it comes again when its lease ends: %s", refused)
            return None
        self._keeper.hold(job)
        return message

    def _settle(self, message: MessageProxy, how: Any) -> None:
        assert isinstance(message, _Message)
        try:
            how(message.job)
        except (Stale, Aborted) as error:
            if isinstance(error, Aborted) and not isinstance(error.cause, Stale):
                raise BrokerError(f"the message was not settled: {error}") from error
            # An earlier try was carried out, or the lease has ended and the message comes again.
            self._broker.logger.info("a lease had ended before %s was settled", message)
        except Disconnected as error:
            raise BrokerConnectionError(str(error)) from error
        self._keeper.let_go(message.job)
        message.consumer.free_room()

    def free_room(self) -> None:
        """Make room for one further message."""
        self._room.release()


def _message_of(payload: bytes) -> Message[Any]:
    """Return the message of a payload. Raises something if a worker could not read it."""
    message: Message[Any] = Message.decode(payload)
    for name, kinds in _FIELDS.items():
        if not isinstance(getattr(message, name), kinds):
            raise TypeError(f"{name} is {type(getattr(message, name)).__name__}")
    return message
