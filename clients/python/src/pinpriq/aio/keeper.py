"""Keeps the leases of a worker: renews them at a third of their TTR, and tells how far jobs are."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

from ..errors import Busy, Cancelled, PinpriqError, Refused, Stale
from ..job import Told
from ..requests import tasks as about_tasks
from .heartbeat import AsyncHeartbeat
from .job import AsyncJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import AsyncClient

log = logging.getLogger("pinpriq.worker")

#: The most leases that one round trip renews.
RENEWALS_MAX = 200
#: How often at most a job tells how far it has come, in seconds.
TELL_S = 1.0


class AsyncKeeper:
    """Renews the leases of all jobs that it holds, and tells which were lost or cancelled."""

    def __init__(
        self,
        client: AsyncClient,
        ttr_s: float,
        on_lost: Callable[[AsyncJob], None],
        on_cancelled: Callable[[AsyncJob, str], None],
    ) -> None:
        self._client = client
        self._on_lost, self._on_cancelled = on_lost, on_cancelled
        self._held: dict[str, AsyncJob] = {}
        # So many beats, of a second at most, until all leases are renewed.
        self._beats = max(1, math.ceil(ttr_s / 3 / TELL_S))
        self._beat = 0
        self._heartbeat = AsyncHeartbeat(self._renew, ttr_s / 3 / self._beats)

    def hold(self, job: AsyncJob) -> None:
        """Begin to renew the lease of a job."""
        self._held[job.receipt] = job

    def let_go(self, job: AsyncJob) -> bool:
        """Stop renewing. Returns whether the lease was held until now."""
        return self._held.pop(job.receipt, None) is not None

    def holds(self, job: AsyncJob) -> bool:
        """Tell whether the lease of a job is held, as far as is known."""
        return job.receipt in self._held

    def of(self, receipt: str) -> AsyncJob | None:
        """Return the job with this lease, if it is held."""
        return self._held.get(receipt)

    def held(self) -> list[AsyncJob]:
        """Return the jobs whose leases are held."""
        return list(self._held.values())

    async def start(self) -> None:
        """Begin to renew."""
        await self._heartbeat.start()

    async def stop(self) -> None:
        """Stop renewing."""
        await self._heartbeat.stop()

    async def _renew(self) -> None:
        self._beat = (self._beat + 1) % self._beats
        is_due = self._beat == 0
        # The lease of a task that was cancelled is renewed no more.
        jobs = [job for job in self.held() if job.cancel_reason is None]
        jobs = [job for job in jobs if is_due or job.has_untold()]
        for start in range(0, len(jobs), RENEWALS_MAX):
            if not await self._renew_some(jobs[start : start + RENEWALS_MAX]):
                return

    async def _renew_some(self, jobs: list[AsyncJob]) -> bool:
        """Renew these leases in one round trip. Returns whether there was an answer."""
        told = [job.take_untold() for job in jobs]
        replies = await self._touch(jobs, told)
        if replies is None:
            for job, each in zip(jobs, told, strict=True):
                job.keep_untold(each)
            return False
        without_room: list[AsyncJob] = []
        for job, each, reply in zip(jobs, told, replies, strict=True):
            if isinstance(reply, Busy) and each != Told():
                # Nothing was renewed. What was told is tried again with the next renewal.
                log.warning("no room for how far %s has come: %s", job.id, reply)
                job.keep_untold(each)
                without_room.append(job)
            else:
                self._note(job, reply)
        if without_room:
            replies = await self._touch(without_room, [Told()] * len(without_room))
            for job, reply in zip(without_room, replies or (), strict=False):
                self._note(job, reply)
        return True

    async def _touch(self, jobs: list[AsyncJob], told: list[Told]) -> list[Any] | None:
        """Renew leases, and tell this of their jobs. Returns the replies, if they came."""
        requests = [
            about_tasks.touch(
                job.queue.name, job.receipt, progress=each.progress, checkpoint=each.checkpoint
            )
            for job, each in zip(jobs, told, strict=True)
        ]
        try:
            return await self._client.link.run_all(requests)
        except PinpriqError as error:
            log.warning("leases were not renewed: %s", error)
            return None

    def _note(self, job: AsyncJob, reply: object) -> None:
        """Take note of what the server says to a renewal."""
        if isinstance(reply, Stale) and self.let_go(job):
            self._on_lost(job)
        elif isinstance(reply, Cancelled) and self.holds(job):
            self._on_cancelled(job, reply.reason)
        elif isinstance(reply, Refused) and not isinstance(reply, Stale | Cancelled):
            log.warning("the lease of %s was not renewed: %s", job.id, reply)
