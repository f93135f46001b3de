"""The bindings of exchanges to queues, which all processes share.

Each exchange has a queue on the server, `kombu.bindings.` and its name after the prefix of the
application, with a task for each binding. These tasks have no priority, so they are never taken.
The table of the exchange without a name has the temporary queues.

Any of these queues may vanish: somebody drops it, or a server that keeps nothing starts again. A
mark in each new table tells the others that it is new. Then each process writes its own bindings
again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import time
from dataclasses import astuple, dataclass
from typing import Any
from uuid import uuid4

from ..errors import BadArgument, Exists, NoQueue, NotFound, WrongState
from ..requests import tasks as about_tasks
from ..requests.base import NO_PRIORITY
from ..settings import QueueSettings
from ..sync.client import Client
from ..sync.queue import Queue

log = logging.getLogger("pinpriq.kombu")

PREFIX = "kombu.bindings."

#: The exchange without a name, which leads to each queue by its name.
ANONYMOUS = ""

#: The id of the mark of a table.
MARK = "mark"

#: For how long a table is believed, in seconds: that of an exchange for one queue, and for many.
DIRECT_AGE_S = 10.0
SHARED_AGE_S = 1.0

#: For how long a queue is believed to be none of the temporary ones, in seconds, and of how many
#: queues that is remembered.
LASTING_AGE_S = 10.0
LASTING_MAX = 10_000

#: The shortest life of the binding of a temporary queue whose owner is gone, in seconds.
TEMPORARY_S = 60.0

_KINDS = ("direct", "topic", "fanout")


@dataclass(frozen=True)
class Binding:
    """A queue that is bound to an exchange of this kind.

    `ttl_s` is that of the binding of a temporary queue, else None. `message_ttl_s` is that of the
    messages of the queue, and only the table of temporary queues has it.
    """

    routing_key: str
    pattern: str | None
    queue: str
    ttl_s: float | None = None
    kind: str = "direct"
    message_ttl_s: float | None = None


class Bindings:
    """Reads and writes the bindings of exchanges. Any thread may use it."""

    def __init__(self, client: Client, prefix: str = "") -> None:
        self._client = client
        self._prefix = prefix + PREFIX
        self._locks: dict[int, threading.RLock] = {}
        self._tables: dict[str, tuple[float, list[Binding]]] = {}
        # What this process has bound, by exchange and id, and the marks of those tables.
        self._own: dict[str, dict[str, Binding]] = {}
        self._marks: dict[str, str] = {}
        self._lasting: dict[str, float] = {}

    def add(self, exchange: str, binding: Binding) -> None:
        """Bind a queue, or give the binding of a temporary queue its whole life again."""
        with self._lock:
            self._own.setdefault(exchange, {})[_id(binding)] = binding
            self._write(exchange, binding)
            if exchange not in self._marks:
                self._marks[exchange] = self._mark(exchange)
            self._tables.pop(exchange, None)

    def owns(self, exchange: str, binding: Binding) -> bool:
        """Tell whether this process has bound a queue, and that has not ended."""
        return _id(binding) in self._own.get(exchange, {})

    def own(self, exchange: str) -> list[Binding]:
        """Return what this process has bound to an exchange."""
        with self._lock:
            return list(self._own.get(exchange, {}).values())

    def exchanges_of(self, queue: str) -> list[str]:
        """Return the exchanges to which this process has bound a queue."""
        with self._lock:
            return [
                exchange
                for exchange, bindings in self._own.items()
                if any(binding.queue == queue for binding in bindings.values())
            ]

    def remove(self, exchange: str, binding: Binding) -> None:
        """End a binding."""
        with self._lock:
            self._own.get(exchange, {}).pop(_id(binding), None)
            self._tables.pop(exchange, None)
            self._queue(exchange).kill(_id(binding))

    def remove_queue(self, queue: str) -> None:
        """End all bindings of a queue, of all processes."""
        for name in list(self._client.queue_names(self._prefix)):
            exchange = name.removeprefix(self._prefix)
            for binding in self.table(exchange, 0.0):
                if binding.queue == queue:
                    self.remove(exchange, binding)

    def drop(self, exchange: str) -> None:
        """End all bindings of an exchange."""
        with self._lock:
            for known in (self._own, self._marks, self._tables):
                known.pop(exchange, None)
            try:
                self._queue(exchange).drop()
            except NoQueue:
                log.debug("the exchange %s had no bindings", exchange)

    def table(self, exchange: str, age_s: float) -> list[Binding]:
        """Return the bindings of an exchange, which may be as old as that."""
        with self._lock:
            read_at, table = self._tables.get(exchange, (None, []))
            now = time.monotonic()
            if read_at is None or now - read_at >= age_s:
                table = self._read(exchange)
                self._tables[exchange] = (now, table)
            return table

    def forget(self, exchange: str) -> bool:
        """Believe the table of an exchange no longer. Returns whether it was believed."""
        return self._tables.pop(exchange, None) is not None

    def note_lasting(self, queue: str) -> None:
        """Note that a queue is none of the temporary ones."""
        self._lasting[queue] = float("inf")

    def message_ttl_s(self, queue: str) -> float | None:
        """Return the time to live of the messages of a queue, which a temporary one has."""
        with self._lock:
            now = time.monotonic()
            if self._lasting.get(queue, 0.0) > now:
                return None
            for age_s in (SHARED_AGE_S, 0.0):
                for binding in self.table(ANONYMOUS, age_s):
                    if binding.queue == queue:
                        return binding.message_ttl_s
            # A queue that is declared later has another name, except one that was given.
            if len(self._lasting) >= LASTING_MAX:
                self._lasting.clear()
            self._lasting[queue] = now + LASTING_AGE_S
            return None

    @property
    def _lock(self) -> threading.RLock:
        """The lock of this process. One that was forked may have that of the other one locked."""
        return self._locks.setdefault(os.getpid(), threading.RLock())

    def _queue(self, exchange: str) -> Queue:
        return self._client.queue(self._prefix + exchange, serialiser="bytes")

    def _write(self, exchange: str, binding: Binding) -> None:
        """Write a binding, and make its table if that is missing."""
        id_, text = _id(binding), json.dumps(astuple(binding))
        if self._put(exchange, id_, text, binding.ttl_s) or binding.ttl_s is None:
            return
        try:
            self._queue(exchange).update(id_, ttl=binding.ttl_s)
        except (NotFound, NoQueue):
            self._put(exchange, id_, text, binding.ttl_s)

    def _put(self, exchange: str, id_: str, text: str, ttl_s: float | None) -> bool:
        """Put a task of a table. Returns whether it is new."""
        queue = self._queue(exchange)
        for _ in range(2):
            try:
                # Not by a put of the queue, which would be part of a trace of the application.
                self._client.run(
                    about_tasks.put(
                        queue.name,
                        text.encode(),
                        id=id_,
                        priority=NO_PRIORITY,
                        ttl=ttl_s,
                        unique=None,
                        own_window=0,
                    )
                )
            except Exists:
                return False
            except BadArgument:
                # There is no such table, so the server makes ids itself.
                self._make(queue)
            else:
                return True
        raise WrongState("WRONGSTATE", f"{queue.name} is for bindings, and is made by others")

    @staticmethod
    def _make(queue: Queue) -> None:
        try:
            queue.configure(QueueSettings(ids="given"))
        except WrongState as error:
            raise WrongState(
                error.kind, f"{queue.name} is for bindings: {error.message}"
            ) from error

    def _mark(self, exchange: str) -> str:
        """Return the mark of a table, which it gets if it has none."""
        mark = uuid4().hex
        if self._put(exchange, MARK, mark, None):
            return mark
        task = self._queue(exchange).get(MARK)
        return mark if task is None else task.payload.decode("utf-8", "replace")

    def _read(self, exchange: str) -> list[Binding]:
        """Read a table. If it is a new one, what is bound here is written again."""
        mark, table = self._read_once(exchange)
        own = self._own.get(exchange)
        if not own:
            return table
        if mark is None or mark != self._marks.get(exchange):
            log.info("the bindings of %s were lost: those of this process are made again", exchange)
            for binding in own.values():
                self._write(exchange, binding)
            self._marks[exchange] = self._mark(exchange)
            return self._read_once(exchange)[1]
        # In the same table, what is missing was ended, or its time was over.
        found = {_id(binding) for binding in table}
        for id_ in [
            each for each, binding in own.items() if each not in found and binding.ttl_s is None
        ]:
            del own[id_]
        return table

    def _read_once(self, exchange: str) -> tuple[str | None, list[Binding]]:
        mark, table = None, []
        for task in self._queue(exchange).tasks():
            if task.id == MARK:
                mark = task.payload.decode("utf-8", "replace")
                continue
            binding = _binding(task.payload)
            if binding is None:
                log.warning("%s of %s is no binding", task.id, self._prefix + exchange)
            else:
                table.append(binding)
        return mark, table


def _binding(payload: bytes) -> Binding | None:
    """Return the binding of a task, or None for one that is not a binding."""
    try:
        fields: list[Any] = json.loads(payload)
        binding = Binding(*fields)
        re.compile(binding.pattern or "")
    except (ValueError, TypeError, RecursionError, re.error):
        return None
    texts = isinstance(binding.routing_key, str) and isinstance(binding.queue, str)
    spans = all(
        each is None or isinstance(each, float | int)
        for each in (binding.ttl_s, binding.message_ttl_s)
    )
    return binding if texts and spans and binding.kind in _KINDS else None


def _id(binding: Binding) -> str:
    text = "\0".join((binding.routing_key, binding.queue))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
