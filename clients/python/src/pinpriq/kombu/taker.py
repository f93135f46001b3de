"""One blocking take of a channel, on a connection of its own that an event loop can watch."""

from __future__ import annotations

import logging
import time
from typing import Any

from ..attempts import BROKEN, NotConnected
from ..errors import CrossShard, Refused, is_refusal, refusal_from
from ..requests import tasks as about_tasks
from ..sync.client import Client
from ..task import Task

log = logging.getLogger("pinpriq.kombu")

#: How long a take blocks, in seconds. A consumer that closes waits for at most that.
WAIT_S = 1.0

#: How much longer a reply may take before its connection counts as broken, in seconds.
SILENCE_S = 10.0

#: The first and the longest pause between two tries to connect, in seconds.
PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 2.0


class Taker:
    """Sends a take, and reads its reply when it has come."""

    def __init__(self, client: Client, ttr_s: float, confirm: bool) -> None:
        self._client = client
        self._ttr_s = ttr_s
        self._confirm = confirm
        self._connection: Any = None
        self._sent_at: float | None = None
        self._next_try = 0.0
        self._pause_s = PAUSE_FIRST_S
        self._turn = 0
        #: The queues of the take that is under way.
        self.names: tuple[str, ...] = ()
        #: Set when the queues live in different shards, and must be taken from one by one.
        self.must_split = False

    @property
    def waits(self) -> bool:
        """Whether a take is under way."""
        return self._sent_at is not None

    @property
    def sock(self) -> Any:
        """The socket to watch, or None while there is no connection."""
        return getattr(self._connection, "_sock", None)

    def send(self, names: tuple[str, ...], count: int) -> None:
        """Send a take, unless one is under way or it is too early to try to connect again."""
        now = time.monotonic()
        if self._sent_at is not None:
            if now - self._sent_at > WAIT_S + SILENCE_S:
                self._broken("the server is silent")
            return
        if now < self._next_try:
            return
        self._turn += 1
        at = self._turn % len(names)
        request = about_tasks.take(
            names[at:] + names[:at], count=count, wait_ms=int(WAIT_S * 1000), ttr=self._ttr_s
        )
        try:
            if self._connection is None:
                self._connection = self._client.link.connection()
            self._connection.send_command(*request.words)
        except (NotConnected, *BROKEN) as error:
            self._broken(str(error))
            return
        self.names = names
        self._sent_at = now

    def read(self) -> list[Task]:
        """Return the tasks of the reply. There are none if the connection broke."""
        if self._sent_at is None:
            self._broken("the server has closed the connection")
            return []
        try:
            reply = self._connection.read_response()
        except Exception as error:
            if is_refusal(error):
                self._sent_at = None
                return self._refused(refusal_from(error))
            if isinstance(error, BROKEN):
                self._broken(str(error))
                return []
            raise
        self._sent_at = None
        self._pause_s = PAUSE_FIRST_S
        tasks = about_tasks.take(self.names).parse(reply)
        return self._confirmed(tasks) if self._confirm else tasks

    def _confirmed(self, tasks: list[Task]) -> list[Task]:
        """Return the tasks whose leases are on disk.

        The server may forget a lease if it is killed within milliseconds of the take. A worker
        on such a task may not be the only one. A renewal is on disk when its reply comes.
        """
        requests = [about_tasks.touch(task.queue, task.receipt) for task in tasks]
        confirmed = []
        try:
            packed = self._connection.pack_commands([request.words for request in requests])
            self._connection.send_packed_command(packed)
            for task in tasks:
                try:
                    self._connection.read_response()
                except Exception as error:
                    if not is_refusal(error):
                        raise
                    log.info("a lease had ended at once: %s", error)
                else:
                    confirmed.append(task)
        except BROKEN as error:
            # The others are not worked on, so they come again when their leases have ended.
            self._broken(str(error))
        return confirmed

    def finish(self) -> list[Task]:
        """Wait for the reply that is under way, and return its tasks."""
        return self.read() if self.waits else []

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            if self.waits:
                self._connection.disconnect()
            self._client.link.give_back(self._connection)
            self._connection = None
            self._sent_at = None

    def _refused(self, refused: Refused) -> list[Task]:
        if isinstance(refused, CrossShard) and len(self.names) > 1:
            self.must_split = True
        else:
            log.error("nothing was taken from %s: %s", ", ".join(self.names), refused)
            self._wait_before_next()
        return []

    def _broken(self, why: str) -> None:
        log.warning("no connection to the server, next try in %s s: %s", self._pause_s, why)
        if self._connection is not None:
            self._connection.disconnect()
            self._client.link.give_back(self._connection)
            self._connection = None
        self._sent_at = None
        self._wait_before_next()

    def _wait_before_next(self) -> None:
        self._next_try = time.monotonic() + self._pause_s
        self._pause_s = min(PAUSE_MAX_S, 2 * self._pause_s)
