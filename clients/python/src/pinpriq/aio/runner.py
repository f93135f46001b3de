"""Runs the functions of a worker in one process."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING

from ..errors import CrossShard, NotFound, PinpriqError, Refused, Stale
from ..job import reason_of
from ..replies import State
from ..requests import queues as about_queues
from ..requests.tasks import DONE_MAX
from ..worker.events import Bury, Event, GiveBack, Retry
from ..worker.plan import WAIT_S, Plan, Source, backoffs
from .client import AsyncClient
from .heartbeat import AsyncHeartbeat
from .job import AsyncJob
from .keeper import AsyncKeeper
from .parts import AsyncCrew, AsyncStop, call

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("pinpriq.worker")


class AsyncRunner:
    """Takes tasks, runs functions for them, and settles them.

    A job that is done is acknowledged by the take of the next one, in one round trip. Jobs that
    were prefetched wait in a buffer that all runs share, with their leases renewed.
    """

    def __init__(self, client: AsyncClient, plan: Plan, stop: AsyncStop) -> None:
        self._client = client
        self._plan = plan
        self._stop = stop
        self._sources = plan.sources()
        self._buffer: deque[AsyncJob] = deque()
        self._turn = 0
        self._crew = AsyncCrew()
        self._keeper = AsyncKeeper(client, plan.ttr_s, self._lost)
        self._beats = AsyncHeartbeat(self._beat, plan.lease_s / 3)

    async def run(self, concurrency: int) -> bool:
        """Work until it is time to stop. Returns whether all that ran has ended in time."""
        await self._prepare()
        await self._keeper.start()
        await self._beats.start()
        self._crew.start(concurrency, self._work)
        await self._stop.wait()
        await self._release_buffer()
        in_time = await self._crew.join(self._plan.grace_s)
        await self._release_buffer()
        if not in_time:
            log.warning("jobs still run after %s s: they are given back", self._plan.grace_s)
            for job in self._keeper.held():
                await self._release(job)
            await self._crew.abandon()
        await self._beats.stop()
        await self._keeper.stop()
        return in_time

    async def _prepare(self) -> None:
        """Set queues up and join topics, as soon as there is a server."""
        pauses = backoffs()
        while not self._stop.is_set():
            try:
                for handler in self._plan.handlers.values():
                    if handler.settings is not None:
                        await self._client.run(
                            about_queues.set_(handler.name, handler.settings, handler.member)
                        )
                await self._join()
            except Refused:
                raise
            except PinpriqError as error:
                await self._pause(pauses, error)
            else:
                return

    async def _join(self) -> None:
        for topic, member in self._plan.members():
            await self._client.run(about_queues.join(topic, member, self._plan.lease_s))

    async def _beat(self) -> None:
        for member in {member for _, member in self._plan.members()}:
            try:
                await self._client.beat(member, lease=self._plan.lease_s)
            except NotFound:
                await self._join()

    async def _pause(self, pauses: Iterator[float], error: Exception) -> None:
        seconds = next(pauses)
        log.warning("next try in %s s: %s", round(seconds, 1), error)
        await self._stop.wait(seconds)

    async def _work(self, number: int) -> None:
        """Work on one job after the other."""
        self._turn += number
        done: AsyncJob | None = None
        pauses = backoffs()
        while True:
            stopping = self._stop.is_set()
            try:
                if stopping:
                    await self._acknowledge(done)
                    return
                job, done = await self._next(done), None
                pauses = backoffs()
            except PinpriqError as error:
                if stopping:
                    log.warning("not acknowledged, so it will come again: %s", error)
                    return
                await self._pause(pauses, error)
                continue
            if job is not None:
                done = await self._do(job)

    async def _next(self, done: AsyncJob | None) -> AsyncJob | None:
        """Acknowledge a job, and return the next one if there is one."""
        job = self._buffer.popleft() if self._buffer else None
        missing = max(0, self._plan.prefetch - len(self._buffer)) + (job is None)
        if missing:
            try:
                taken = await self._take(missing, 0.0 if job else WAIT_S, done)
            except PinpriqError:
                if job is not None:
                    self._buffer.appendleft(job)
                raise
            for each in taken:
                self._keeper.hold(each)
            self._buffer.extend(taken[job is None :])
            job = job or (taken[0] if taken else None)
        else:
            await self._acknowledge(done)
        if job is not None and self._stop.is_set():
            await self._release(job)
            return None
        return job

    async def _take(self, count: int, wait_s: float, done: AsyncJob | None) -> list[AsyncJob]:
        self._turn += 1
        source = self._sources[self._turn % len(self._sources)]
        if done is not None and (done.queue.member is None) != (source.member is None):
            # Queues and lanes may live in different shards, so it is not worth the try.
            await self._acknowledge(done)
            done = None
        finished = [] if done is None else [(done.queue.name, done.receipt)]
        if done is not None:
            # Its lease ends as soon as the server begins with the take, which may then block.
            self._keeper.let_go(done)
        try:
            taken = await self._take_from(source, count, wait_s, finished)
        except PinpriqError:
            if done is None:
                raise
            # Nothing was acknowledged or taken, or nobody knows. Both are fine after this.
            await self._acknowledge(done)
            taken = await self._take_from(source, count, wait_s, [])
        if done is not None:
            done.settled = True
        return taken

    async def _take_from(
        self, source: Source, count: int, wait_s: float, done: list[tuple[str, str]]
    ) -> list[AsyncJob]:
        try:
            return await self._client.take_many(
                source.rotated(self._turn),
                count,
                wait=wait_s / len(self._sources),
                ttr=self._plan.ttr_s,
                member=source.member,
                done=done[:DONE_MAX],
            )
        except CrossShard:
            if done or len(source.names) == 1:
                raise
            if source in self._sources:
                self._sources = [
                    part
                    for each in self._sources
                    for part in (each.parts() if each == source else [each])
                ]
            return []
        except NotFound:
            if source.member is None:
                raise
            # The member has ended, and what was in its lanes is gone.
            await self._join()
            return []

    async def _acknowledge(self, job: AsyncJob | None) -> None:
        if job is None or job.settled:
            return
        try:
            await job.ack()
        except Stale:
            # An earlier try was carried out, or the lease has ended and the task comes again.
            log.info("the lease of %s had ended before it was acknowledged", job.id)
        self._keeper.let_go(job)

    async def _do(self, job: AsyncJob) -> AsyncJob | None:
        """Run the function for a job. Returns the job if it is to be acknowledged."""
        plan = self._plan
        handler = plan.handlers[(job.queue.name, _text_or_none(job.queue.member))]
        plan.tell(Event("start", job.queue.name, job.id, job.attempts))
        started = time.monotonic()
        try:
            await call(handler.function, job if handler.with_job else job.value)
        except Exception as error:
            await self._settle(job, error, time.monotonic() - started)
            return None
        duration = time.monotonic() - started
        plan.tell(Event("end", job.queue.name, job.id, job.attempts, duration))
        if job.settled:
            self._keeper.let_go(job)
            return None
        return job if self._keeper.holds(job) else None

    async def _settle(self, job: AsyncJob, error: Exception, duration: float) -> None:
        """Say that a job failed, or do what its function asked for."""
        state: State | None = None
        try:
            if not job.settled and self._keeper.let_go(job):
                state = await self._report(job, error)
        except Stale:
            log.info("the lease of %s had ended before its failure was told", job.id)
        except PinpriqError as refused:
            log.warning(
                "the failure of %s was not told, so its lease runs out: %s", job.id, refused
            )
        self._keeper.let_go(job)
        if isinstance(error, GiveBack):
            self._plan.tell(Event("released", job.queue.name, job.id, job.attempts, duration))
            return
        self._plan.tell(
            Event("failed", job.queue.name, job.id, job.attempts, duration, error, state)
        )
        if not isinstance(error, Retry | Bury):
            log.error("the job %s of %s failed", job.id, job.queue.name, exc_info=error)

    async def _report(self, job: AsyncJob, error: Exception) -> State:
        if isinstance(error, Bury):
            await job.bury(error.reason)
            return State.BURIED
        if isinstance(error, GiveBack):
            return await job.release(delay=error.delay)
        if isinstance(error, Retry):
            return await job.fail(error.reason, delay=error.delay)
        return await job.fail(reason_of(error))

    async def _release_buffer(self) -> None:
        while self._buffer:
            await self._release(self._buffer.popleft())

    async def _release(self, job: AsyncJob) -> None:
        self._keeper.let_go(job)
        try:
            await job.release()
        except PinpriqError as error:
            log.warning("%s was not given back, so its lease runs out: %s", job.id, error)
        self._plan.tell(Event("released", job.queue.name, job.id, job.attempts))

    def _lost(self, job: AsyncJob) -> None:
        if job in self._buffer:
            self._buffer.remove(job)
        log.warning("the lease of %s of %s was lost", job.id, job.queue.name)
        self._plan.tell(Event("lost", job.queue.name, job.id, job.attempts))


def _text_or_none(member: str | bytes | None) -> str | None:
    return member.decode() if isinstance(member, bytes) else member
