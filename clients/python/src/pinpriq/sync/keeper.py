"""Keeps the leases of a worker: renews them at a third of their TTR.

Made from `aio/keeper.py` by `tools/make_sync.py`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..errors import PinpriqError, Refused, Stale
from ..requests import tasks as about_tasks
from .heartbeat import Heartbeat
from .job import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Client

log = logging.getLogger("pinpriq.worker")

#: The most leases that one round trip renews.
RENEWALS_MAX = 200


class Keeper:
    """Renews the leases of all jobs that it holds, and tells which were lost."""

    def __init__(
        self, client: Client, ttr_s: float, on_lost: Callable[[Job], None]
    ) -> None:
        self._client = client
        self._on_lost = on_lost
        self._held: dict[str, Job] = {}
        self._heartbeat = Heartbeat(self._renew, ttr_s / 3)

    def hold(self, job: Job) -> None:
        """Begin to renew the lease of a job."""
        self._held[job.receipt] = job

    def let_go(self, job: Job) -> bool:
        """Stop renewing. Returns whether the lease was held until now."""
        return self._held.pop(job.receipt, None) is not None

    def holds(self, job: Job) -> bool:
        """Tell whether the lease of a job is held, as far as is known."""
        return job.receipt in self._held

    def held(self) -> list[Job]:
        """Return the jobs whose leases are renewed."""
        return list(self._held.values())

    def start(self) -> None:
        """Begin to renew."""
        self._heartbeat.start()

    def stop(self) -> None:
        """Stop renewing."""
        self._heartbeat.stop()

    def _renew(self) -> None:
        jobs = self.held()
        for start in range(0, len(jobs), RENEWALS_MAX):
            some = jobs[start : start + RENEWALS_MAX]
            try:
                replies = self._client.link.run_all(
                    [about_tasks.touch(job.queue.name, job.receipt) for job in some]
                )
            except PinpriqError as error:
                log.warning("leases were not renewed: %s", error)
                return
            for job, reply in zip(some, replies, strict=True):
                if isinstance(reply, Stale) and self.let_go(job):
                    self._on_lost(job)
                elif isinstance(reply, Refused) and not isinstance(reply, Stale):
                    log.warning("the lease of %s was not renewed: %s", job.id, reply)
