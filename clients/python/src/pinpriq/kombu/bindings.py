"""The bindings of exchanges to queues, which all processes share.

Each exchange has a queue on the server, `kombu.bindings.` and its name, with a task for each
binding. These tasks have no priority, so nobody takes them.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any

from ..errors import Exists, NotFound, WrongState
from ..requests.base import NO_PRIORITY
from ..settings import QueueSettings
from ..sync.client import Client

PREFIX = "kombu.bindings."

#: For how long a table is believed, in seconds: that of an exchange for one queue, and for many.
DIRECT_AGE_S = 10.0
SHARED_AGE_S = 1.0

#: The shortest life of the binding of a temporary queue whose owner is gone, in seconds.
TEMPORARY_S = 60.0


@dataclass(frozen=True)
class Binding:
    """A queue that is bound to an exchange of this kind.

    `ttl_s` is that of a temporary queue, else None.
    """

    routing_key: str
    pattern: str | None
    queue: str
    ttl_s: float | None = None
    kind: str = "direct"


class Bindings:
    """Reads and writes the bindings of exchanges."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prepared: set[str] = set()
        self._tables: dict[str, tuple[float, list[Binding]]] = {}

    def add(self, exchange: str, binding: Binding) -> None:
        """Bind a queue, or give the binding of a temporary queue its whole life again."""
        queue = self._client.queue(PREFIX + exchange, serialiser="bytes")
        if exchange not in self._prepared:
            try:
                queue.configure(QueueSettings(ids="given"))
            except WrongState as error:
                raise WrongState(
                    error.kind, f"{queue.name} is for bindings: {error.message}"
                ) from error
            self._prepared.add(exchange)
        text = json.dumps(
            [
                binding.routing_key,
                binding.pattern,
                binding.queue,
                binding.ttl_s,
                binding.kind,
            ]
        )
        id_ = _id(binding)
        try:
            queue.put(text, id=id_, priority=NO_PRIORITY, ttl=binding.ttl_s, unique=None)
        except Exists:
            if binding.ttl_s is not None:
                try:
                    queue.update(id_, ttl=binding.ttl_s)
                except NotFound:
                    queue.put(text, id=id_, priority=NO_PRIORITY, ttl=binding.ttl_s, unique=None)
        self._tables.pop(exchange, None)

    def remove(self, exchange: str, binding: Binding) -> None:
        """End a binding."""
        self._client.queue(PREFIX + exchange).kill(_id(binding))
        self._tables.pop(exchange, None)

    def table(self, exchange: str, age_s: float) -> list[Binding]:
        """Return the bindings of an exchange, which may be as old as that."""
        read_at, table = self._tables.get(exchange, (None, []))
        now = time.monotonic()
        if read_at is None or now - read_at > age_s:
            tasks = self._client.queue(PREFIX + exchange, serialiser="bytes").tasks()
            table = [_binding(task.payload) for task in tasks]
            self._tables[exchange] = (now, table)
        return table

    def forget(self, exchange: str) -> bool:
        """Believe the table of an exchange no longer. Returns whether it was believed."""
        return self._tables.pop(exchange, None) is not None


def _binding(payload: bytes) -> Binding:
    fields: list[Any] = json.loads(payload)
    return Binding(*fields)


def _id(binding: Binding) -> str:
    text = "\0".join((binding.routing_key, binding.queue))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
