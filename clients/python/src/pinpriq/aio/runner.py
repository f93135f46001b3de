"""Runs the functions of a worker in one process."""

from __future__ import annotations

import logging
import time
import weakref
from typing import TYPE_CHECKING

from .. import tracing
from ..errors import CrossShard, NotFound, PinpriqError, Refused, Stale
from ..job import RESULT_BYTES_MAX, reason_of
from ..replies import State
from ..requests.base import Done
from ..requests.tasks import DONE_MAX
from ..spans import span_s
from ..values import text_or_none
from ..worker.events import Bury, GiveBack, Retry
from ..worker.plan import WAIT_S, Plan, Source, backoffs
from ..worker.policy import FAILURES_MAX, Policy
from .client import AsyncClient
from .heartbeat import AsyncHeartbeat
from .job import AsyncJob
from .keeper import AsyncKeeper
from .parts import AsyncCall, AsyncCrew, AsyncStop
from .prefetch import RESULT_HERE_MAX, AsyncPrefetch
from .queue import AsyncQueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

log = logging.getLogger("pinpriq.worker")


class AsyncRunner:
    """Takes tasks, runs functions for them, and settles them.

    A job that is done is acknowledged by the take of the next one, in one round trip. Where jobs
    are taken ahead, `AsyncPrefetch` does both.
    """

    def __init__(self, client: AsyncClient, plan: Plan, stop: AsyncStop) -> None:
        self._client = client
        self._plan = plan
        self._stop = stop
        self._sources = plan.sources()
        self._prefetch: AsyncPrefetch | None = None
        self._calls: dict[str, AsyncCall] = {}
        # Receipts of jobs that run although they were called back.
        self._called_back: set[str] = set()
        # Jobs of which was told that they are cancelled.
        self._cancelled: weakref.WeakSet[AsyncJob] = weakref.WeakSet()
        # What is done, and is not to be given back while its acknowledgement is under way.
        self._done: set[AsyncJob] = set()
        self._turn = 0
        self._crew = AsyncCrew()
        self._readers = AsyncCrew()
        self._keeper = AsyncKeeper(client, plan.ttr_s, self._lost, self._ask_to_end)
        self._beats = AsyncHeartbeat(self._beat, plan.lease_s / 3)

    async def run(self, concurrency: int) -> bool:
        """Work until it is time to stop. Returns whether all that ran has ended in time."""
        options = self._client.options
        log.info(
            "serving %s of %s, as %s, %s at once",
            self._plan.described(),
            options.places,
            options.redis.get("client_name"),
            concurrency,
        )
        in_time = False
        try:
            await self._prepare()
            await self._keeper.start()
            await self._beats.start()
            if self._plan.prefetch > 0:
                self._prefetch = AsyncPrefetch(
                    self._client,
                    self._plan,
                    concurrency,
                    started=self._keeper.hold,
                    acked=self._forget,
                    stale=self._break_off,
                    cancelled=self._cancel,
                )
                self._readers.start(1, self._prefetch.run)
            self._crew.start(concurrency, self._work)
            await self._stop.wait()
            log.info("stopping: jobs that run have %s s", self._plan.grace_s)
            await self._give_back_unstarted()
            in_time = await self._crew.join(self._plan.grace_s)
        finally:
            # Also when this is broken off, which is no reason to go on in the background.
            self._stop.set()
            await self._give_back_unstarted()
            if not in_time:
                await self._abandon()
            if self._prefetch is not None and not await self._readers.join(WAIT_S):
                await self._readers.abandon()
            await self._beats.stop()
            await self._keeper.stop()
        log.info("stopped")
        return in_time

    async def _abandon(self) -> None:
        jobs = [job for job in self._keeper.held() if job not in self._done]
        if jobs:
            log.warning("jobs still run after %s s: they are given back", self._plan.grace_s)
        for job in jobs:
            await self._release(job)
        await self._crew.abandon()

    async def _prepare(self) -> None:
        """Set queues up and join topics, as soon as there is a server."""
        pauses = backoffs()
        while not self._stop.is_set():
            try:
                for handler in self._plan.handlers.values():
                    if handler.settings is not None:
                        lane = AsyncQueue(self._client, handler.name, member=handler.member)
                        await lane.configure(handler.settings)
                await self._join()
            except Refused:
                raise
            except PinpriqError as error:
                await self._pause(pauses, error)
            else:
                return

    async def _join(self) -> None:
        for topic, member in self._plan.members():
            await self._client.topic(topic).member(member, lease=self._plan.lease_s).join()

    async def _beat(self) -> None:
        for member in {member for _, member in self._plan.members()}:
            try:
                await self._client.beat(member, lease=self._plan.lease_s)
            except NotFound:
                await self._join()
                if self._prefetch is not None:
                    await self._prefetch.subscribe()

    async def _pause(self, pauses: Iterator[float], error: Exception) -> None:
        seconds = next(pauses)
        log.warning("next try in %s s: %s", round(seconds, 1), error)
        await self._stop.wait(seconds)

    async def _work(self, number: int) -> None:
        """Work on one job after the other."""
        self._turn += number
        done: AsyncJob | None = None
        last: AsyncJob | None = None
        pauses = backoffs()
        attempt = self._attempt_traced if tracing.is_on() else self._attempt
        while True:
            stopping = self._stop.is_set()
            try:
                if stopping:
                    await self._acknowledge(done)
                    return
                if self._prefetch is None:
                    job, done = await self._next(done), None
                else:
                    if done is not None and len(done.returned or b"") > RESULT_HERE_MAX:
                        await self._acknowledge(done)
                    job = await self._prefetch.next(done, last)
                    last = None
                    await self._acknowledge(done)
                    done = None
                pauses = backoffs()
            except PinpriqError as error:
                if stopping:
                    log.warning("not acknowledged, so it will come again: %s", error)
                    return
                await self._pause(pauses, error)
                continue
            except Exception as error:
                # One reply that cannot be read must not end all the work that follows.
                log.exception("a job could not be taken")
                if stopping:
                    return
                await self._pause(pauses, error)
                continue
            if job is not None:
                done, last = await attempt(job), job

    async def _next(self, done: AsyncJob | None) -> AsyncJob | None:
        """Acknowledge a job, and return the next one if there is one."""
        taken = await self._take(1, WAIT_S, done)
        for each in taken:
            self._keeper.hold(each)
        job = taken[0] if taken else None
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
        finished: list[Done] = []
        if done is not None:
            finished.append((done.queue.name, done.receipt, done.returned))
            # Its lease ends as soon as the server begins with the take, which may then block.
            self._keeper.let_go(done)
            self._done.discard(done)
        try:
            taken = await self._take_from(source, count, wait_s, finished)
        except PinpriqError:
            if done is None:
                raise
            # Nothing was acknowledged or taken, or that is unknown. Both are fine after this.
            await self._acknowledge(done)
            taken = await self._take_from(source, count, wait_s, [])
        if done is not None:
            done.settled = True
        return taken

    async def _take_from(
        self, source: Source, count: int, wait_s: float, done: list[Done]
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
            await job.ack_returned()
        except Stale:
            # An earlier try was carried out, or the lease has ended and the task comes again.
            log.info("the lease of %s had ended before it was acknowledged", job.id)
        self._keeper.let_go(job)
        self._done.discard(job)

    async def _attempt_traced(self, job: AsyncJob) -> AsyncJob | None:
        with tracing.Attempt.at(job.task) as span:
            return await self._attempt(job, span)

    async def _attempt(self, job: AsyncJob, span: tracing.Attempt | None = None) -> AsyncJob | None:
        """Run the function for a job. Returns the job if it is to be acknowledged."""
        plan = self._plan
        handler = plan.handlers[(job.queue.name, text_or_none(job.queue.member))]
        if job.task.failures >= FAILURES_MAX and await self._is_given_up(job, span):
            return None
        if job.cancel_reason is not None:
            await self._end_cancelled(job, None, span)
            return None
        plan.tell("start", job)
        started = time.monotonic()
        call = AsyncCall(handler.function, lambda: job if handler.with_job else job.value)
        self._calls[job.receipt] = call
        try:
            error = await call.run()
        finally:
            del self._calls[job.receipt]
        duration = time.monotonic() - started
        if job.receipt in self._called_back:
            # It runs, or has run, elsewhere.
            self._called_back.discard(job.receipt)
            return None
        if error is not None:
            if job.cancel_reason is None:
                await self._settle(job, error, duration, span)
            else:
                await self._end_cancelled(job, duration, span)
            return None
        self._done.add(job)
        plan.tell("end", job, duration_s=duration)
        if job.settled:
            self._keeper.let_go(job)
        elif call.result is not None:
            job.returned = self._dumped(job, call.result)
        if self._keeper.holds(job):
            return job
        self._done.discard(job)
        return None

    def _dumped(self, job: AsyncJob, result: Any) -> bytes | None:
        """Return what a function has returned as bytes, or None if these cannot be sent."""
        try:
            dumped = job.queue.serialiser.dump(result)
            if len(dumped) <= RESULT_BYTES_MAX:
                return dumped
            why = f"it has {len(dumped)} bytes"
        except Exception as error:
            why = reason_of(error)
        log.warning("the result of the job %s of %s is not sent: %s", job.id, job.queue.name, why)
        return None

    async def _policy(self, job: AsyncJob) -> Policy:
        """Ask what the queue of a job says about failures. One without settings says nothing."""
        try:
            return Policy.of(await job.queue.show(), job.task)
        except Refused:
            return Policy.of(None, job.task)

    async def _is_given_up(self, job: AsyncJob, span: tracing.Attempt | None) -> bool:
        """Bury a job that has failed too often, because its workers died. Returns whether it is."""
        failures = job.task.failures
        try:
            if not (await self._policy(job)).gives_up(failures):
                return False
            why = f"failed {failures} times, while {FAILURES_MAX} are allowed: not run again"
            last = job.task.reason
            await job.bury(why if last is None else f"{why}; the last time: {last}")
        except PinpriqError as error:
            log.warning("the job %s of %s is left to its lease: %s", job.id, job.queue.name, error)
        else:
            log.error("the job %s of %s: %s: buried", job.id, job.queue.name, why)
            if span is not None:
                span.failed(None, why, State.BURIED)
            self._plan.tell("failed", job, state=State.BURIED)
        self._keeper.let_go(job)
        return True

    async def _settle(
        self, job: AsyncJob, error: BaseException, duration: float, span: tracing.Attempt | None
    ) -> None:
        """Say that a job failed, or do what its function asked for."""
        wished = isinstance(error, Retry | Bury)
        reason = error.reason if isinstance(error, Retry | Bury) else reason_of(error)
        state: State | None = None
        then = "it was settled already"
        try:
            if job.settled or self._keeper.let_go(job):
                if not job.settled:
                    state, then = await self._report(job, error, reason)
            else:
                then = "its lease had ended, so it comes back by itself"
        except Stale:
            then = "its lease had ended, so it comes back by itself"
        except Exception as refused:
            then = f"that was not told, so it comes back when its lease has ended: {refused}"
        self._keeper.let_go(job)
        if isinstance(error, GiveBack):
            self._plan.tell("released", job, duration_s=duration)
            return
        if span is not None:
            span.failed(error, reason, state)
        self._plan.tell("failed", job, duration_s=duration, error=error, state=state)
        log.log(
            logging.WARNING if wished else logging.ERROR,
            "the job %s of %s failed at attempt %s: %s: %s",
            job.id,
            job.queue.name,
            job.attempts,
            reason,
            then,
            exc_info=None if wished else error,
        )

    async def _report(self, job: AsyncJob, error: BaseException, reason: str) -> tuple[State, str]:
        """Tell the server how a job ended. Returns its state, and what comes next."""
        if isinstance(error, Bury):
            await job.bury(reason)
            return State.BURIED, "buried"
        if isinstance(error, GiveBack):
            return await job.release(delay=error.delay), "given back"
        delay = error.delay if isinstance(error, Retry) else None
        failures = job.task.failures + 1
        try:
            policy = await self._policy(job)
        except PinpriqError:
            # Where the settings cannot be known, the queue decides.
            state = await job.fail(reason, delay=delay)
            return state, f"its state is {state.name} now"
        if policy.gives_up(failures):
            await job.bury(reason)
            return State.BURIED, "buried"
        if delay is None:
            delay = policy.delay_s(failures)
        state = await job.fail(reason, delay=delay)
        shown_s = None if delay is None else span_s(delay)
        return state, policy.next_step(state, failures, shown_s)

    async def _end_cancelled(
        self, job: AsyncJob, duration: float | None, span: tracing.Attempt | None
    ) -> None:
        """Let a task go that was cancelled. That is no failure, and it does not come back."""
        # Its function may have heard of it first, by a touch.
        self._ask_to_end(job, job.cancel_reason or "")
        self._keeper.let_go(job)
        try:
            if not job.settled:
                await job.release()
        except Stale:
            log.debug("the lease of %s had ended before it was let go", job.id)
        except PinpriqError as error:
            log.warning("%s was not let go, so its lease runs out: %s", job.id, error)
        if span is not None:
            span.cancelled()
        if duration is not None:
            self._plan.tell("released", job, duration_s=duration)

    async def _give_back_unstarted(self) -> None:
        if self._prefetch is not None:
            for job in await self._prefetch.stop():
                self._plan.tell("released", job)

    def _forget(self, job: AsyncJob) -> None:
        """Note that the acknowledgement of a job is under way."""
        self._keeper.let_go(job)
        self._done.discard(job)

    def _cancel(self, receipt: str, reason: str) -> None:
        """Ask a job to end, unless it is done."""
        job = self._keeper.of(receipt)
        if job is not None:
            self._ask_to_end(job, reason)

    def _ask_to_end(self, job: AsyncJob, reason: str) -> None:
        """Ask a job to end whose task was cancelled, once and unless it is done."""
        job.note_cancelled(reason)
        if job in self._cancelled or job in self._done:
            return
        self._cancelled.add(job)
        log.info("the job %s of %s was cancelled: %s", job.id, job.queue.name, reason)
        self._plan.tell("cancelled", job)
        call = self._calls.get(job.receipt)
        if call is not None:
            call.ask_to_end()

    def _break_off(self, job: AsyncJob) -> None:
        """Break off a job that was called back before it was started."""
        if not self._keeper.let_go(job):
            return
        call = self._calls.get(job.receipt)
        if call is not None:
            self._called_back.add(job.receipt)
            call.cancel()
        log.warning("the job %s of %s was called back", job.id, job.queue.name)
        self._plan.tell("lost", job)

    async def _release(self, job: AsyncJob) -> None:
        self._keeper.let_go(job)
        try:
            await job.release()
        except PinpriqError as error:
            log.warning("%s was not given back, so its lease runs out: %s", job.id, error)
        self._plan.tell("released", job)

    def _lost(self, job: AsyncJob) -> None:
        log.warning("the lease of %s of %s was lost", job.id, job.queue.name)
        self._plan.tell("lost", job)
