"""Settles and renews the leases of a transport in a thread of its own.

The event loop of a Celery worker never waits for the server that way. What could not be told is
told again when the server is back, since a receipt stays good.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from .. import commands, parsing
from ..errors import Cancelled, Disconnected, Refused, Stale
from ..requests import tasks as about_tasks
from ..requests.base import Repeat, Request
from ..sync.client import Client
from . import tasks as celery_tasks

log = logging.getLogger("pinpriq.kombu")

#: The most requests of one round trip.
BATCH_MAX = 200

#: The pause after a round trip that failed, in seconds.
PAUSE_S = 0.2

#: How often bindings of temporary queues are renewed, in seconds.
REFRESH_S = 10.0

#: How long to try to settle leases when the transport closes, in seconds.
FLUSH_S = 10.0


class Keeper:
    """Acknowledges, releases and renews leases in the background."""

    def __init__(self, client: Client, ttr_s: float) -> None:
        self._client = client
        self._ttr_s = ttr_s
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._requests: deque[tuple[str, Request[Any]]] = deque()
        # How many releases of each queue the server has not confirmed.
        self._releasing: Counter[str] = Counter()
        self._busy = False
        # The queue and the Celery task of each lease.
        self._held: dict[str, tuple[str, Any]] = {}
        self._refreshers: dict[str, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def hold(self, queue: str, receipt: str, task_id: Any) -> None:
        """Begin to renew a lease. `task_id` is that of its Celery task, or None."""
        with self._changed:
            self._held[receipt] = (queue, task_id)
            self._start()

    def ack(self, queue: str, receipt: str) -> None:
        """Acknowledge a task as soon as possible."""
        self._settle(queue, receipt, about_tasks.ack(queue, [receipt]))

    def release(self, queue: str, receipt: str) -> None:
        """Give a task back as soon as possible."""
        with self._changed:
            self._releasing[queue] += 1
            words = commands.release(queue, receipt)
            self._settle(queue, receipt, words.request(parsing.state, Repeat.SAFE))

    def bury(self, queue: str, receipt: str, reason: str) -> None:
        """Set a task aside as soon as possible."""
        words = commands.bury(queue, receipt, reason=reason)
        self._settle(queue, receipt, words.request(parsing.nothing, Repeat.SAFE))

    def await_released(self, queue: str, seconds: float = FLUSH_S) -> None:
        """Wait until all tasks are back in a queue that were to be released."""
        if os.getpid() == self._pid and queue in self._releasing:
            with self._changed:
                self._changed.wait_for(lambda: queue not in self._releasing, seconds)

    def refresh(self, name: str, how: Callable[[], None] | None) -> None:
        """Call `how` again and again, or stop that if it is None."""
        with self._changed:
            if how is None:
                self._refreshers.pop(name, None)
            else:
                self._refreshers[name] = how
                self._start()

    def flush(self, seconds: float = FLUSH_S) -> bool:
        """Wait until all leases are settled that were to be. Returns whether they are."""
        if os.getpid() != self._pid:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: not (self._requests or self._busy), seconds)

    def close(self) -> None:
        """Settle what is left, and end the thread."""
        in_time = self.flush()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if not in_time:
            log.warning("leases were not settled, so they run out by themselves")

    def _settle(self, queue: str, receipt: str, request: Request[Any]) -> None:
        # A process that was forked from this one has its connections, but not its leases.
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._held.pop(receipt, None)
            self._requests.append((queue, request))
            self._start()
            self._changed.notify_all()

    def _start(self) -> None:
        if self._thread is None and os.getpid() == self._pid:
            self._thread = threading.Thread(target=self._run, name="pinpriq-keeper", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        renew_at = time.monotonic() + self._ttr_s / 3
        refresh_at = time.monotonic() + REFRESH_S
        while True:
            with self._changed:
                due = min(renew_at, refresh_at)
                self._changed.wait_for(
                    lambda: self._requests or self._closed, max(0.0, due - time.monotonic())
                )
                if self._closed:
                    return
                waiting = len(self._requests)
                batch = [self._requests.popleft() for _ in range(min(BATCH_MAX, waiting))]
                self._busy = bool(batch)
            if batch:
                self._send(batch)
            now = time.monotonic()
            if now >= renew_at:
                self._renew()
                renew_at = now + self._ttr_s / 3
            if now >= refresh_at:
                self._refresh()
                refresh_at = now + REFRESH_S

    def _send(self, batch: list[tuple[str, Request[Any]]]) -> None:
        """Send requests in one round trip. They are sent again if there is no reply."""
        replies: list[Any] = []
        try:
            replies = self._client.link.run_all([request for _, request in batch])
        except Exception as error:
            # Without this thread leases would no longer be settled or renewed.
            log.warning("leases are settled later: %s", error)
            with self._changed:
                self._requests.extendleft(reversed(batch))
                self._changed.wait_for(lambda: self._closed, PAUSE_S)
        for reply in replies:
            if isinstance(reply, Stale):
                # An earlier try was carried out, or the lease has ended.
                log.info("a lease had ended before it was settled: %s", reply)
            elif isinstance(reply, Refused):
                log.error("a lease was not settled, so it runs out: %s", reply)
        with self._changed:
            for (queue, request), _ in zip(batch, replies, strict=False):
                if request.words[0] == b"RELEASE":
                    self._releasing -= Counter([queue])
            self._busy = False
            self._changed.notify_all()

    def _renew(self) -> None:
        with self._changed:
            held = list(self._held.items())
        for start in range(0, len(held), BATCH_MAX):
            some = held[start : start + BATCH_MAX]
            try:
                replies = self._client.link.run_all(
                    [about_tasks.touch(queue, receipt) for receipt, (queue, _) in some]
                )
            except Exception as error:
                log.warning("leases are renewed later: %s", error)
                return
            for (receipt, (queue, task_id)), reply in zip(some, replies, strict=True):
                if isinstance(reply, Stale | Cancelled):
                    with self._changed:
                        ended = self._held.pop(receipt, None) is not None
                    if ended and isinstance(reply, Cancelled):
                        log.info("a message of %s was cancelled: %s", queue, reply.reason)
                        celery_tasks.revoke(task_id)
                    elif ended:
                        log.warning("a lease of %s was lost: %s", queue, reply)

    def _refresh(self) -> None:
        with self._changed:
            refreshers = list(self._refreshers.values())
        for refresh in refreshers:
            try:
                refresh()
            except (Disconnected, Refused) as error:
                log.warning("a binding is renewed later: %s", error)
            except Exception:
                # Without this thread, leases would end while their messages are worked on.
                log.exception("a binding is renewed later")
