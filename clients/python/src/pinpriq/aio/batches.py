"""Batches: tasks that are followed together, and what is done when none of them is left."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .. import commands, parsing
from ..attempts import Deadline
from ..errors import Exists, PinpriqError
from ..job import reason_of
from ..replies import BatchShown, Put
from ..requests.base import OWN, Name, OwnKey, Repeat, several
from ..serialisers import Serialiser
from ..spans import Span
from ..values import text
from .queue import AsyncQueue

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient

log = logging.getLogger("pinpriq")


class AsyncBatch:
    """A batch of tasks. As a context manager it opens, and closes when its block ends.

    It is done as soon as it is closed and none of its tasks is left. Then the tasks that wait for
    it can be taken, such as those of `then`. An exception in the block closes it too, and cancels
    its tasks.

    Without a name it gets a random one. On a server with several shards, give a name with the part
    in braces of its queues, such as `{films}-4711` for the queues `films` and `{films}-done`:
    others are refused with `CrossShard`.
    """

    def __init__(
        self,
        client: AsyncClient,
        name: Name | None = None,
        *,
        ttl: Span | None = None,
        serialiser: str | Serialiser | None = None,
    ) -> None:
        self.client = client
        # Nobody else has a random name, so it is safe to open it again.
        self._has_own_name = name is None
        self.name = uuid4().hex if name is None else text(name)
        self.ttl = ttl
        self.serialiser = client.serialiser_for(serialiser)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def put(
        self,
        queue: Name | AsyncQueue,
        value: Any,
        *,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        **options: Unpack[commands.PutOptions],
    ) -> Put:
        """Put a task of this batch, with the options of `put` of a queue.

        The first task makes the batch, if it is not open yet. A closed one takes more as long as it
        is not done, so a task of it may add others. A duplicate is in no batch. Refused with
        `WrongState` if the batch is done.
        """
        options["batch"] = self.name
        return await self._queue(queue).put(value, room=room, unique=unique, **options)

    async def then(
        self,
        queue: Name | AsyncQueue,
        value: Any,
        *,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        **options: Unpack[commands.PutOptions],
    ) -> Put:
        """Put a task that waits until this batch is done. It gets no results of the others.

        With `only_if="acked"` it is skipped if one of them has failed, and with `"failed"` if none
        has. A `delay` counts from the end of the batch. `after` names further batches to wait for.
        Refused with `NotFound` if the batch is not there.
        """
        options["after"] = [self.name, *several(options.get("after") or ())]
        return await self._queue(queue).put(value, room=room, unique=unique, **options)

    async def open(self) -> None:
        """Make it before its first task. Refused with `Exists`, also if it is done already.

        After its `ttl` it is done as failed, unless it was done before.
        """
        words = commands.batch_open(self.name, ttl=self.ttl)
        repeat = Repeat.SAFE if self._has_own_name else Repeat.NEVER
        try:
            await self.client.run(words.request(parsing.nothing, repeat))
        except Exists as refused:
            if not (self._has_own_name and refused.repeated):
                raise

    async def close(self) -> int:
        """Say that it has all its tasks. Returns how many are pending. Closing again returns 0."""
        words = commands.batch_close(self.name)
        return await self.client.run(words.request(parsing.number, Repeat.SAFE))

    async def show(self) -> BatchShown:
        """Tell how far it is. Refused with `NotFound`."""
        words = commands.batch_show(self.name)
        return await self.client.run(words.request(parsing.batch, Repeat.SAFE))

    async def cancel(self, **options: Unpack[commands.BatchCancelOptions]) -> int:
        """Close it and cancel its pending tasks. Returns how many they are.

        Holders of its tasks are asked to stop, for `grace` seconds at most.
        """
        words = commands.batch_cancel(self.name, **options)
        return await self.client.run(words.request(parsing.number, Repeat.SAFE))

    async def drop(self) -> bool:
        """Forget it, which the server does by itself after a while. Returns whether it was there.

        Refused with `WrongState` if it is not done.
        """
        return await self.client.run(commands.batch_drop(self.name).request(parsing.flag))

    async def wait(self, wait: Span | None = None) -> tuple[bool, BatchShown]:
        """Wait until it is done, at most for `wait` seconds; None is without limit.

        Returns whether it is done, and how far it is. Refused with `NotFound`.
        """
        deadline = Deadline(wait, self.client.options.slice_s)
        while True:
            words = commands.batch_await(self.name).option("WAIT", deadline.next_ms() or None)
            request = words.request(parsing.batch_awaited, Repeat.SAFE)
            is_done, shown = await self.client.run(request)
            if is_done or deadline.passed():
                return is_done, shown

    def _queue(self, queue: Name | AsyncQueue) -> AsyncQueue:
        if isinstance(queue, AsyncQueue):
            return queue
        return AsyncQueue(self.client, queue, serialiser=self.serialiser)

    async def __aenter__(self) -> AsyncBatch:
        await self.open()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self.cancel(reason=reason_of(error))
        except PinpriqError as refused:
            # The exception itself says more than that.
            log.warning("the batch %s was not cancelled: %s", self.name, refused)
