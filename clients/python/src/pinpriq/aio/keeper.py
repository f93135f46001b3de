"""Keeps the leases of a worker: renews them at a third of their TTR."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..errors import Cancelled, PinpriqError, Refused, Stale
from ..requests import tasks as about_tasks
from .heartbeat import AsyncHeartbeat
from .job import AsyncJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import AsyncClient

log = logging.getLogger("pinpriq.worker")

#: The most leases that one round trip renews.
RENEWALS_MAX = 200


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
        self._heartbeat = AsyncHeartbeat(self._renew, ttr_s / 3)

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
        # The lease of a task that was cancelled is renewed no more.
        jobs = [job for job in self.held() if job.cancel_reason is None]
        for start in range(0, len(jobs), RENEWALS_MAX):
            some = jobs[start : start + RENEWALS_MAX]
            try:
                replies = await self._client.link.run_all(
                    [about_tasks.touch(job.queue.name, job.receipt) for job in some]
                )
            except PinpriqError as error:
                log.warning("leases were not renewed: %s", error)
                return
            for job, reply in zip(some, replies, strict=True):
                if isinstance(reply, Stale) and self.let_go(job):
                    self._on_lost(job)
                elif isinstance(reply, Cancelled) and self.holds(job):
                    self._on_cancelled(job, reply.reason)
                elif isinstance(reply, Refused) and not isinstance(reply, Stale | Cancelled):
                    log.warning("the lease of %s was not renewed: %s", job.id, reply)
