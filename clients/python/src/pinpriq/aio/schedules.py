"""Schedules: tasks that the server puts again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .. import commands, parsing
from ..replies import ScheduleShown
from ..requests.base import Name, Repeat
from ..serialisers import Serialiser
from ..values import text
from .administration import PAGE_MAX

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
        serialiser: str | Serialiser | None = None,
        **options: Unpack[commands.ScheduleSetOptions],
    ) -> datetime | None:
        """Put a task into `queue` again and again, or change when and which.

        Give `every`, in seconds, with `at` as one of its moments; or `cron` with a `zone` such as
        `Europe/Berlin`. `missed` says what is made up after the server was down, `overlap` whether
        to skip while the last task is unfinished. Returns the next slot.
        """
        payload = self._client.serialiser_for(serialiser).dump(value)
        words = commands.schedule_set(name, queue, payload, **options)
        return await self._client.run(words.request(parsing.deadline, Repeat.SAFE))

    async def show(self, name: Name) -> ScheduleShown:
        """Tell what a schedule does and has done. Refused with `NotFound`."""
        return await self._client.run(
            commands.schedule_show(name).request(parsing.schedule, Repeat.SAFE)
        )

    def names(self, prefix: Name | None = None) -> AsyncIterator[str]:
        """Go through the names of the schedules."""
        return self._client.pages(commands.schedule_list(prefix=prefix, count=PAGE_MAX), text)

    async def pause(self, name: Name) -> None:
        """Let slots pass without a task."""
        await self._client.run(commands.schedule_pause(name).request(parsing.nothing, Repeat.SAFE))

    async def resume(self, name: Name) -> None:
        """End a pause."""
        await self._client.run(commands.schedule_resume(name).request(parsing.nothing, Repeat.SAFE))

    async def drop(self, name: Name) -> bool:
        """Remove a schedule; its tasks stay. Returns whether it was there."""
        return await self._client.run(commands.schedule_drop(name).request(parsing.flag))

    async def fire(self, name: Name) -> str:
        """Put a task of a schedule now, also while it is paused. Returns its id."""
        return await self._client.run(commands.schedule_fire(name).request(text))
