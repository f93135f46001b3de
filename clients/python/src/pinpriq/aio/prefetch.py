"""Takes jobs ahead, each of which the server may call back until it is started."""

from __future__ import annotations

import heapq
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .. import commands, parsing
from ..attempts import BROKEN, NotConnected
from ..errors import (
    Cancelled,
    Disconnected,
    NotFound,
    PinpriqError,
    Refused,
    Stale,
    is_refusal,
    refusal_from,
)
from ..requests import tasks as about_tasks
from ..requests.base import Repeat, Word, Words
from ..values import text, text_or_none
from ..worker.plan import FAIR_PREFETCH_MAX, WAIT_S, Plan, backoffs
from .job import AsyncJob
from .parts import AsyncMonitor
from .pools import next_message, send_all
from .queue import AsyncQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..task import Task
    from .client import AsyncClient

#: The words of a request, the first of them, and the jobs that it is about.
_Request = tuple[list[Word], str, list[AsyncJob]]

log = logging.getLogger("pinpriq.worker")

#: How long one look at the connection takes at most, in seconds.
READ_S = 1.0

#: The first words of what comes without having been asked for.
PUSHES = (b"task", b"recall", b"cancel")

#: Credit is granted a few at a time: this part of the prefetch.
CREDIT_PARTS = 4

#: The largest result that is sent over the connection for deliveries. Nobody reads while somebody
#: writes there, so a write must never have to wait until the server can send.
RESULT_HERE_MAX = 16_384


class AsyncPrefetch:
    """One connection to which the server pushes jobs, for all runs of a worker.

    A job that has arrived waits *unstarted*: its lease is not renewed, and the server may call it
    back for a more urgent one. `next` starts the most urgent one, in the same write as the
    acknowledgement of the job before, without waiting for the reply. Jobs for runs that wait are
    started together. `stale` is called if the reply says that a job was not ours any more, and
    `cancelled` with the receipt and the reason if the task of one that was started is cancelled.
    """

    def __init__(
        self,
        client: AsyncClient,
        plan: Plan,
        concurrency: int,
        *,
        started: Callable[[AsyncJob], None],
        acked: Callable[[AsyncJob], None],
        stale: Callable[[AsyncJob], None],
        cancelled: Callable[[str, str], None],
    ) -> None:
        self._client = client
        self._plan = plan
        self._concurrency = concurrency
        self._started, self._acked, self._stale = started, acked, stale
        self._cancelled = cancelled
        self._monitor = AsyncMonitor()
        self._connection: Any = None
        self._stopping = False
        # What has arrived: its rank, the order of arrival, when it came, and the job.
        self._arrived: list[tuple[float, int, float, AsyncJob]] = []
        self._arrivals = 0
        # How many runs wait for a job, and what one of them has started for the others.
        self._waiting = 0
        self._begun: deque[AsyncJob] = deque()
        # What a reply that is under way is about, oldest first: the word, and the jobs if any.
        self._owed: deque[tuple[str, list[AsyncJob]]] = deque()
        # What runs, by receipt, and whether its place is free already: it was called back.
        self._running: dict[str, bool] = {}
        # How many places are free for which no credit was granted, and how many to grant at a time.
        self._free = 0
        self._lump = 1
        self._ageing: dict[tuple[str, str | None], float] = {}

    async def run(self, _: int) -> None:
        """Have jobs delivered until `stop` is called. Connect again if the connection breaks."""
        pauses = backoffs()
        while not self._stopping:
            try:
                await self._connect()
                pauses = backoffs()
                await self._read()
            except (PinpriqError, NotConnected, *BROKEN) as error:
                if not self._stopping:
                    seconds = next(pauses)
                    log.warning("next try in %s s: %s", round(seconds, 1), error)
                    await self._disconnect()
                    await self._pause(seconds)
            finally:
                await self._disconnect()

    async def next(self, done: AsyncJob | None, last: AsyncJob | None) -> AsyncJob | None:
        """Acknowledge a job, and start the most urgent one that has arrived.

        `last` is the job that this run has ended with, done or not. Returns None if none came for a
        while, or if it is time to stop. What could not be acknowledged is left unsettled. Who
        calls this acknowledges a job with a result above `RESULT_HERE_MAX` before.
        """
        until = time.monotonic() + WAIT_S
        async with self._monitor:
            if last is not None and self._running.pop(last.receipt, True) is False:
                self._free += 1
            jobs = self._first(1)
            is_sent = await self._send(done, jobs)
            while is_sent and not jobs and not self._stopping:
                left = until - time.monotonic()
                if left <= 0:
                    break
                await self._wait(left)
                if self._begun:
                    return self._begun.popleft()
                jobs = self._first(1 + self._waiting)
                is_sent = await self._send(None, jobs)
            if is_sent:
                # Each of the others that wait looks for one before it gives up.
                self._begun.extend(jobs[1:])
                return jobs[0] if jobs else None
        for job in jobs:
            # Whether it was started cannot be known.
            for step in about_tasks.undone([job.task], job.queue.member):
                await self._client.link.carry_out_one_of(step)
        await self._pause(READ_S / 10)
        return None

    async def _wait(self, seconds: float) -> None:
        """Wait for a change, at most for so many seconds."""
        self._waiting += 1
        try:
            await self._monitor.wait_for_change(seconds)
        finally:
            self._waiting -= 1

    async def stop(self) -> list[AsyncJob]:
        """Have everything called back that was not started. Returns what had arrived of it."""
        async with self._monitor:
            if self._stopping:
                return []
            self._stopping = True
            jobs = [job for *_, job in sorted(self._arrived)]
            self._arrived.clear()
            if self._connection is not None:
                await self._write([(commands.unsubscribe().words, "UNSUBSCRIBE", [])])
            self._monitor.tell_change()
        return jobs

    async def subscribe(self) -> None:
        """Subscribe again, because a member has joined again."""
        async with self._monitor:
            if self._connection is not None and not self._stopping:
                await self._write(self._subscriptions())

    async def _connect(self) -> None:
        prefetch = await self._look_at_queues()
        connection = await self._client.link.connection()
        async with self._monitor:
            self._connection = connection
            # What was called back holds a place like any other, as the new connection counts.
            self._running = dict.fromkeys(self._running, False)
            self._lump = max(1, prefetch // CREDIT_PARTS)
            self._free = self._concurrency + prefetch - len(self._running)
            if not await self._write([*self._subscriptions(), *self._credit()]):
                raise Disconnected("the connection broke while it was new")
            if self._stopping:
                await self._write([(commands.unsubscribe().words, "UNSUBSCRIBE", [])])

    async def _look_at_queues(self) -> int:
        """Learn in what order jobs of each queue come. Returns how many to take ahead."""
        prefetch = self._plan.prefetch
        for place, handler in self._plan.handlers.items():
            lane = AsyncQueue(self._client, handler.name, member=handler.member)
            try:
                shown = await lane.show()
            except Refused:
                continue
            if shown.ranking == "fair":
                # Deliveries are charged when they are made.
                prefetch = min(prefetch, FAIR_PREFETCH_MAX)
            self._ageing.pop(place, None)
            if shown.ranking == "ageing" and shown.ageing is not None:
                self._ageing[place] = shown.ageing
        return prefetch

    def _subscriptions(self) -> list[_Request]:
        subscriptions: list[_Request] = []
        for source in self._plan.sources():
            words = commands.subscribe(
                source.names, ttr=self._plan.ttr_s, recall=True, meta=True, member=source.member
            )
            subscriptions.append((words.words, "SUBSCRIBE", []))
        # A connection can be told of cancels once it is subscribed.
        subscriptions.append((Words("CLIENT", "CANCELS", "ON").words, "CLIENT", []))
        return subscriptions

    def _credit(self) -> list[_Request]:
        if self._free < self._lump and self._arrived:
            return []
        credit, self._free = self._free, 0
        return [(commands.credit(credit).words, "CREDIT", [])] if credit > 0 else []

    def _first(self, count: int) -> list[AsyncJob]:
        """Remove and return the most urgent jobs that have arrived."""
        jobs: list[AsyncJob] = []
        while self._arrived and len(jobs) < count and not self._stopping:
            _, _, arrived_at, job = heapq.heappop(self._arrived)
            if time.monotonic() - arrived_at < self._plan.ttr_s:
                jobs.append(job)
            else:
                # Its lease has ended, which used up the credit.
                self._free += 1
        return jobs

    async def _send(self, done: AsyncJob | None, jobs: list[AsyncJob]) -> bool:
        """Acknowledge a job, start others, and grant what is free. Returns whether it was sent."""
        if self._connection is None:
            return False
        requests: list[_Request] = []
        if done is not None and not done.settled:
            words = commands.ack(done.queue.name, done.receipt, result=done.returned)
            requests.append((words.words, "ACK", [done]))
        requests.extend(self._credit())
        # A receipt tells which lane of a topic it is about.
        for name in dict.fromkeys(job.queue.name for job in jobs):
            some = [job for job in jobs if job.queue.name == name]
            words = commands.start(name, *(job.receipt for job in some))
            requests.append((words.words, "START", some))
        if not requests:
            return True
        if not await self._write(requests):
            return False
        if done is not None and not done.settled:
            done.settled = True
            self._acked(done)
        for job in jobs:
            self._running[job.receipt] = False
            self._started(job)
        return True

    async def _write(self, requests: list[_Request]) -> bool:
        try:
            await send_all(self._connection, [words for words, _, _ in requests])
        except BROKEN as error:
            log.debug("the connection for deliveries broke: %s", error)
            return False
        self._owed.extend((word, jobs) for _, word, jobs in requests)
        return True

    async def _read(self) -> None:
        """Take what arrives, until there is nothing more to come or the connection breaks."""
        heard_at = time.monotonic()
        slice_s = self._client.options.slice_s
        while True:
            try:
                message = await next_message(self._connection, READ_S, self._monitor)
            except Exception as error:
                if not is_refusal(error):
                    raise
                message = error
            if message is not None:
                heard_at = time.monotonic()
                await self._hear(message)
            elif time.monotonic() - heard_at >= slice_s:
                if self._owed:
                    raise Disconnected("the server has fallen silent")
                # It asks for a sign of life, and changes nothing.
                await self.subscribe()
                heard_at = time.monotonic()
            if self._stopping and not self._owed:
                return

    async def _hear(self, message: Any) -> None:
        """Take a delivery, a call back, a cancel, or a reply."""
        if isinstance(message, list) and message[0] in PUSHES:
            await self._hear_push(text(message[0]), message)
            return
        async with self._monitor:
            word, jobs = self._owed.popleft() if self._owed else ("", [])
        if word == "START":
            replies = message if isinstance(message, list) else [message] * len(jobs)
            for job, reply in zip(jobs, replies, strict=True):
                if isinstance(reply, Exception):
                    self._note_refused(job, refusal_from(reply))
            return
        if not isinstance(message, Exception):
            return
        error = refusal_from(message)
        if word == "ACK":
            for job in jobs:
                # Also says what has become of its lease.
                await self._acknowledge(job)
        elif word in ("CLIENT", "RELEASE"):
            # The server is older than cancels, or the lease has ended, which is as good.
            log.debug("%s was refused: %s", word, error)
        elif isinstance(error, NotFound):
            # The member has ended. Its heartbeat joins and subscribes again.
            log.warning("no deliveries for now: %s", error)
        else:
            raise error

    def _note_refused(self, job: AsyncJob, error: Refused) -> None:
        """Take the refusal of a start."""
        if isinstance(error, Cancelled):
            self._cancelled(job.receipt, error.reason)
        elif isinstance(error, (Stale, NotFound)):
            self._stale(job)
        else:
            # It is not known to be lost. The next renewal of its lease starts it too.
            log.warning("the job %s of %s was not started: %s", job.id, job.queue.name, error)

    async def _hear_push(self, word: str, message: list[Any]) -> None:
        """Keep a delivery. Or drop one that waits and is called back or cancelled."""
        job: AsyncJob | None = None
        async with self._monitor:
            if word == "task":
                self._keep(parsing.task(message[1], None))
            else:
                receipt = text(message[3])
                job = self._drop(receipt)
                if job is not None and word == "cancel":
                    self._free += 1
                    words = commands.release(job.queue.name, receipt)
                    await self._write([(words.words, "RELEASE", []), *self._credit()])
                elif receipt in self._running and word == "recall":
                    # Its START is too late. What comes in its place has its credit.
                    self._running[receipt] = True
            self._monitor.tell_change()
        if job is not None:
            self._plan.tell("recalled" if word == "recall" else "cancelled", job)
        elif word == "cancel":
            self._cancelled(receipt, text(message[4]))

    def _drop(self, receipt: str) -> AsyncJob | None:
        """Remove a job that has arrived, and return it."""
        for at, (*_, job) in enumerate(self._arrived):
            if job.receipt == receipt:
                del self._arrived[at]
                heapq.heapify(self._arrived)
                return job
        return None

    def _keep(self, task: Task) -> None:
        """Keep a delivery until it is started."""
        if self._stopping:
            return
        job = AsyncJob(AsyncQueue(self._client, task.queue, member=task.member), task)
        self._arrivals += 1
        now = time.monotonic()
        heapq.heappush(self._arrived, (self._rank(job), self._arrivals, now, job))

    def _rank(self, job: AsyncJob) -> float:
        """Return a number that is smaller for a job that its queue hands out sooner."""
        priority = job.task.priority or 0
        ageing_s = self._ageing.get((job.queue.name, text_or_none(job.queue.member)))
        if ageing_s is None or job.task.put_at is None:
            return priority
        return job.task.put_at.timestamp() + priority * ageing_s

    async def _disconnect(self) -> None:
        """End the connection. What was not started is not ours any more."""
        async with self._monitor:
            connection, self._connection = self._connection, None
            self._arrived.clear()
            owed = list(self._owed)
            self._owed.clear()
            self._monitor.tell_change()
        if connection is None:
            return
        await connection.disconnect()
        await self._client.link.give_back(connection)
        for word, jobs in owed:
            for job in jobs:
                if word == "ACK":
                    await self._acknowledge(job)
                else:
                    await self._start_again(job)

    async def _acknowledge(self, job: AsyncJob) -> None:
        try:
            await job.ack_returned()
        except Stale:
            # An earlier try was carried out, or the lease has ended and the task comes again.
            log.info("the lease of %s had ended before it was acknowledged", job.id)
        except PinpriqError as error:
            log.warning("not acknowledged, so it will come again: %s", error)

    async def _start_again(self, job: AsyncJob) -> None:
        """Start a job whose START may be lost. It went back with the connection then."""
        words = commands.start(job.queue.name, job.receipt)
        try:
            await self._client.run(words.request(parsing.nothing, Repeat.SAFE))
        except Cancelled as error:
            self._cancelled(job.receipt, error.reason)
        except Stale:
            if not job.settled:
                self._stale(job)
        except PinpriqError as error:
            log.warning("the job %s of %s is left to its lease: %s", job.id, job.queue.name, error)

    async def _pause(self, seconds: float) -> None:
        async with self._monitor:
            if not self._stopping:
                await self._monitor.wait_for_change(seconds)
