"""Schedules: tasks that the server puts again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..replies import ScheduleShown
from ..requests import queues as about_queues
from ..requests.base import Name, Priority
from ..serialisers import Serialiser, serialiser_named
from ..spans import Moment, Span

if TYPE_CHECKING:
    from .client import AsyncClient


class AsyncSchedules:
    """The schedules of a server."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def set(
        self,
        name: Name,
        queue: Name,
        value: Any,
        *,
        every: Span | None = None,
        at: Moment | None = None,
        cron: str | None = None,
        zone: str | None = None,
        key: Name | None = None,
        priority: Priority | None = None,
        ttl: Span | None = None,
        ttr: Span | None = None,
        missed: Literal["one", "all", "none"] | None = None,
        overlap: Literal["allow", "skip"] | None = None,
        serialiser: str | Serialiser | None = None,
    ) -> datetime | None:
        """Put a task into `queue` again and again, or change when and which.

        Give `every`, in seconds, with `at` as one of its moments; or `cron` with a `zone` such as
        `Europe/Berlin`. `missed` says what is made up after the server was down, `overlap` whether
        to skip while the last task is unfinished. Returns the next slot.
        """
        chosen = self._client.serialiser if serialiser is None else serialiser_named(serialiser)
        return await self._client.run(
            about_queues.schedule_set(
                name,
                queue,
                chosen.dump(value),
                every=every,
                at=at,
                cron=cron,
                zone=zone,
                key=key,
                priority=priority,
                ttl=ttl,
                ttr=ttr,
                missed=missed,
                overlap=overlap,
            )
        )

    async def show(self, name: Name) -> ScheduleShown:
        """Tell what a schedule does and has done. Refused with `NotFound`."""
        return await self._client.run(about_queues.schedule_show(name))

    async def names(self, prefix: Name | None = None) -> AsyncIterator[str]:
        """Go through the names of the schedules."""
        cursor = "0"
        while True:
            page = await self._client.run(about_queues.list_("SCHEDULE", prefix, 1000, cursor))
            for name in page.items:
                yield name
            cursor = page.cursor
            if cursor == "0":
                return

    async def pause(self, name: Name) -> None:
        """Let slots pass without a task."""
        await self._client.run(about_queues.schedule_pause(name, "PAUSE"))

    async def resume(self, name: Name) -> None:
        """End a pause."""
        await self._client.run(about_queues.schedule_pause(name, "RESUME"))

    async def drop(self, name: Name) -> bool:
        """Remove a schedule; its tasks stay. Returns whether it was there."""
        return await self._client.run(about_queues.schedule_drop(name))

    async def fire(self, name: Name) -> str:
        """Put a task of a schedule now, also while it is paused. Returns its id."""
        return await self._client.run(about_queues.schedule_fire(name))
