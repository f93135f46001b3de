"""A task under a lease, to be worked on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .. import commands
from ..errors import RESULT_REFUSED, Busy, Cancelled, PinpriqError, Stale
from ..job import Cancellable, Telling, Told, reason_of
from ..replies import State
from ..requests import tasks as about_tasks
from ..spans import Span
from ..task import Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .queue import AsyncQueue

log = logging.getLogger("pinpriq.worker")


class AsyncJob(Cancellable, Telling):
    """A task that was taken. As a context manager it acknowledges itself, or fails.

    Leaving the block normally acknowledges. An exception fails the job with its type and message
    as the reason, and goes on. `KeyboardInterrupt`, the end of the program and the end of an
    asyncio task are no failures: they give the job back.
    """

    def __init__(self, queue: AsyncQueue, task: Task) -> None:
        self.queue = queue
        #: All that the server told when the task was taken.
        self.task = task
        #: Whether it was acknowledged, released, buried or failed here.
        self.settled = False
        #: What its function has returned, as bytes. Only a worker sets and sends it.
        self.returned: bytes | None = None

    @property
    def id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def receipt(self) -> str:
        """The text that proves the lease."""
        assert self.task.receipt is not None
        return self.task.receipt

    @property
    def payload(self) -> bytes:
        """The bytes of the task."""
        return self.task.payload

    @property
    def value(self) -> Any:
        """The payload as the serialiser of the queue reads it. Raises `SerialisationError`."""
        return self.queue.serialiser.load(self.task.payload)

    @property
    def attempts(self) -> int:
        """How often the task was taken, this time included."""
        return self.task.attempts

    @property
    def last_checkpoint(self) -> bytes | None:
        """How far the last attempt came, if it has told that."""
        return self.task.checkpoint

    async def ack(
        self, result: Any = None, *, payload: Any = None, **options: Unpack[commands.AckOptions]
    ) -> None:
        """Finish the task. A `result` is what came of the work, for who waits for the task.

        A task that is kept keeps it too, and a `payload` replaces the one of that. `zombie` keeps
        the task for so many seconds, `cost` says what the task did cost. Refused with `Stale` if
        the lease has ended, and with `TooLarge` and `Busy` as a put is.
        """
        await self.queue.ack(self.receipt, payload=payload, result=result, **options)
        self.settled = True

    async def ack_returned(self) -> None:
        """Finish the task with what its function has returned, as a worker does.

        If that is refused, the task is finished without it, since its work is done.
        """
        try:
            await self._ack(self.returned)
        except RESULT_REFUSED as refused:
            if self.returned is None:
                raise
            log.warning(
                "the job %s of %s is acknowledged without its result: %s",
                self.id,
                self.queue.name,
                refused,
            )
            self.returned = None
            await self._ack(None)

    async def _ack(self, result: bytes | None) -> None:
        queue = self.queue
        await queue.client.run(
            about_tasks.ack(queue.name, [self.receipt], result=result, member=queue.member)
        )
        self.settled = True

    async def release(self, **options: Unpack[commands.ReleaseOptions]) -> State:
        """Give the task back, at once or after a delay in seconds. That is no failure.

        `tail` sends it behind its equals. Refused with `Stale` if the lease has ended.
        """
        return await self._end(self.queue.release, dict(options))

    async def bury(self, reason: str | None = None, *, cost: int | None = None) -> None:
        """Set the task aside until somebody digs it up. Refused with `Stale`."""
        if self.has_untold():
            # A burial takes no checkpoint along.
            with suppress(PinpriqError):
                await self.touch()
        await self.queue.bury(self.receipt, reason=reason, cost=cost)
        self.settled = True

    async def fail(
        self, reason: str | None = None, *, delay: Span | None = None, cost: int | None = None
    ) -> State:
        """Say that the task could not be done; the settings of the queue decide what follows.

        `delay`, in seconds, counts instead of the back-off of the queue. Refused with `Stale`.
        """
        options = {"reason": reason, "delay": delay, "cost": cost}
        return await self._end(self.queue.fail, options)

    async def touch(self, *, by: Span | None = None) -> datetime | None:
        """Renew the lease, or move its deadline by so many seconds. Returns the deadline.

        What the job tells of how far it has come goes along, if there is room for it. Refused with
        `Stale` if the lease has ended, and with `Cancelled`.
        """
        told = self.take_untold()
        try:
            return await self._renew(by, told)
        except Cancelled as refused:
            self.note_cancelled(refused.reason)
            raise

    async def _renew(self, by: Span | None, told: Told) -> datetime | None:
        progress, checkpoint = told.progress, told.checkpoint
        try:
            return await self.queue.touch(
                self.receipt, by=by, progress=progress, checkpoint=checkpoint
            )
        except PinpriqError as error:
            self.keep_untold(told)
            if told == Told() or not isinstance(error, Busy):
                raise
        return await self.queue.touch(self.receipt, by=by)

    async def _end(self, ask: Callable[..., Any], options: dict[str, Any]) -> State:
        """End the lease, with a checkpoint that the server does not know, if there is room."""
        told = self.take_untold()
        notes = told.checkpoint is not None and options.get("checkpoint") is None
        if notes:
            options["checkpoint"] = told.checkpoint
        try:
            state: State = await ask(self.receipt, **options)
        except PinpriqError as error:
            self.keep_untold(told)
            if not notes or not isinstance(error, Busy):
                raise
            options["checkpoint"] = None
            state = await ask(self.receipt, **options)
        self.settled = True
        return state

    async def __aenter__(self) -> AsyncJob:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.settled:
            return
        if error is None:
            await self.ack()
            return
        # The lease may have ended too. The exception itself says more than that.
        with suppress(Stale):
            if isinstance(error, Exception):
                await self.fail(reason_of(error))
            else:
                await self.release()
