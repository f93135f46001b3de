"""A queue, or the lane of a member in a topic, with every command that it has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

from .. import commands, parsing, tracing
from ..attempts import Deadline
from ..errors import Exists, Full, NotFound, Refused
from ..replies import Awaited, Outcome, Put, State
from ..requests import tasks as about_tasks
from ..requests.base import OWN, Name, OwnKey, Receipt, Repeat
from ..spans import Span
from ..task import Task
from ..values import text
from .administration import AsyncAdministration
from .job import AsyncJob

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: How long a lane's task is leased between the two steps of a pop, in seconds.
POP_LEASE_S = 30.0


class AsyncQueue(AsyncAdministration):
    """A queue of a server. It need not exist: the first put creates it.

    With `member` it is the lane of that member in the topic `name`. Spans are seconds or
    `timedelta`s, moments Unix seconds or aware `datetime`s. A lower priority is more urgent.
    """

    async def put(
        self,
        value: Any,
        *,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        buried: bool = False,
        **options: Unpack[commands.PutOptions],
    ) -> Put:
        """Put a task. `pinpriq.commands.put` explains the options.

        Without `unique` it gets a unique key of its own with the window of the client, so that it
        is safe to send again when a reply was lost. Give your own key to meet duplicates, or None
        for a put without key, which is never sent again. `room` is how long to wait for room in a
        full queue. `buried` sets the task aside at once, with `reason`.

        Refused with `Exists`, `Full`, `Paused`, `Busy`, `TooLarge`, `IdRequired`, `Taken`.
        """
        put = self._put_traced if tracing.is_on() else self._put
        return await put(value, None, room=room, unique=unique, buried=buried, **options)

    async def put_and_wait(
        self,
        value: Any,
        wait: Span | None,
        *,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        **options: Unpack[commands.PutOptions],
    ) -> Put:
        """Put a task, and wait until it is finished, at most for `wait` seconds.

        `outcome` of what it returns tells how it ended, `TIMEOUT` if it has not, and None if that
        is no longer known. `result` is what came of the work. None as `wait` is without limit.
        """
        deadline = Deadline(wait, self.client.options.slice_s)
        put = self._put_traced if tracing.is_on() else self._put
        done = await put(
            value, deadline.next_ms(), room=room, unique=unique, buried=False, **options
        )
        if done.outcome is Outcome.TIMEOUT:
            if deadline.passed():
                return done
        elif done.outcome is not None:
            return done
        # It has not ended yet. Or it had ended before this put, and may be kept.
        try:
            awaited = await self._await(done.id, deadline)
        except NotFound:
            return replace(done, outcome=None)
        return replace(done, outcome=awaited.outcome, result_bytes=awaited.result_bytes)

    async def _put_traced(self, value: Any, wait_ms: int | None, **options: Any) -> Put:
        headers = options.get("headers")
        with tracing.Sending("put", self.name, self.client.link.url, headers) as sending:
            done = await self._put(value, wait_ms, **{**options, "headers": sending.headers})
            sending.note_id(done.id)
            return done

    async def _put(
        self,
        value: Any,
        wait_ms: int | None,
        *,
        room: Span | None,
        unique: Name | OwnKey | None,
        buried: bool,
        **options: Unpack[commands.PutOptions],
    ) -> Put:
        waiting = None if room is None else Deadline(room, self.client.options.slice_s)
        # One request for all attempts, so that they share the unique key.
        request = about_tasks.put(
            self.name,
            self.serialiser.dump(value),
            unique=unique,
            own_window=self.client.options.window_s,
            buried=buried,
            wait_ms=wait_ms,
            serialiser=self.serialiser,
            **options,
        )
        given_id = options.get("id")
        while True:
            attempt = request
            if waiting is not None:
                attempt = request.with_words(b"ROOM", str(waiting.next_ms()).encode())
            try:
                return await self.client.run(attempt)
            except Full:
                if waiting is None or waiting.passed():
                    raise
            except Exists as refused:
                if not refused.repeated or given_id is None:
                    raise
                return Put(text(given_id), True, serialiser=self.serialiser)

    async def take(
        self,
        *,
        wait: Span | None = 0,
        **options: Unpack[commands.TakeOptions],
    ) -> AsyncJob | None:
        """Take the most urgent task under a lease of `ttr` seconds, or return None.

        `wait` is how many seconds to block while there is none; None is without limit. Without
        any TTR, from here, the task or the queue, the lease ends with its connection.
        """
        jobs = await self.take_many(1, wait=wait, **options)
        return jobs[0] if jobs else None

    async def take_many(
        self,
        count: int,
        *,
        wait: Span | None = 0,
        done: Iterable[AsyncJob | tuple[AsyncJob, Any]] = (),
        **options: Unpack[commands.TakeOptions],
    ) -> list[AsyncJob]:
        """Take up to `count` tasks, or with `group` that many groups of tasks with one key.

        It does not wait for all of them. `done` are jobs to acknowledge in the same step, at most
        100, or pairs of a job and what came of the work. If one of them cannot be acknowledged,
        nothing is acknowledged or taken.
        """
        finished = [each if isinstance(each, tuple) else (each, None) for each in done]
        jobs = await self.client.take_many(
            [self.name],
            count,
            wait=wait,
            member=self.member,
            done=[
                (job.queue.name, job.receipt, job.queue._dumped(result)) for job, result in finished
            ],
            serialiser=self.serialiser,
            **options,
        )
        for job, _ in finished:
            job.settled = True
        return jobs

    async def jobs(self, *, ttr: Span, wait: Span | None = None) -> AsyncIterator[AsyncJob]:
        """Go through tasks as they come, under leases of `ttr` seconds.

        It ends when there was none for `wait` seconds, or never if that is None.
        """
        while True:
            job = await self.take(wait=wait, ttr=ttr)
            if job is None:
                return
            yield job

    async def pop(
        self, *, wait: Span | None = 0, **options: Unpack[commands.PopOptions]
    ) -> Task | None:
        """Take the most urgent task for good, or return None.

        If its reply is lost, so is it. If the call is cancelled, it is put back.
        """
        tasks = await self.pop_many(1, wait=wait, **options)
        return tasks[0] if tasks else None

    async def pop_many(
        self,
        count: int,
        *,
        wait: Span | None = 0,
        **options: Unpack[commands.PopOptions],
    ) -> list[Task]:
        """Take up to `count` tasks, or groups, for good. It is never sent again.

        What has been taken when the call is cancelled is put back, as a new task.
        """
        if self.member is not None:
            return await self._pop_from_lane(count, wait, **options)
        deadline = Deadline(wait, self.client.options.slice_s)
        while True:
            tasks = await self.client.run(
                about_tasks.pop(
                    [self.name],
                    count=count,
                    wait_ms=deadline.next_ms(),
                    member=self.member,
                    **options,
                )
            )
            if tasks or deadline.passed():
                return [self._with_value(task) for task in tasks]

    async def _pop_from_lane(
        self, count: int, wait: Span | None, **options: Unpack[commands.PopOptions]
    ) -> list[Task]:
        """Take and acknowledge, since nothing can be put back into the lane of one member."""
        jobs = await self.take_many(count, wait=wait, ttr=POP_LEASE_S, **options)
        for job in jobs:
            await self.client.link.run_soon(
                about_tasks.ack(self.name, [job.receipt], member=self.member)
            )
        return [self._with_value(replace(job.task, receipt=None)) for job in jobs]

    def _with_value(self, task: Task) -> Task:
        return replace(task, value=self.serialiser.load(task.payload))

    async def peek(self, count: int = 1, **options: Unpack[commands.PeekOptions]) -> list[Task]:
        """Show what a take would choose, or the tasks of one state. Nothing changes."""
        words = commands.peek(self.name, count=count, meta=True, **options)
        return await self._run(words, parsing.tasks(self.serialiser), Repeat.SAFE)

    async def get(self, id: Name) -> Task | None:
        """Show one task in any state, or None."""
        return await self._run(
            commands.get(self.name, id),
            lambda reply: None if reply is None else self._task(reply),
            Repeat.SAFE,
        )

    @overload
    async def ack(
        self,
        receipt: Receipt,
        /,
        *,
        payload: Any = ...,
        result: Any = ...,
        **options: Unpack[commands.AckOptions],
    ) -> None: ...

    @overload
    async def ack(
        self, receipt: Receipt, second: Receipt, /, *more: Receipt
    ) -> list[Refused | None]: ...

    @overload
    async def ack(
        self,
        *,
        id: Name,
        payload: Any = ...,
        result: Any = ...,
        **options: Unpack[commands.AckOptions],
    ) -> None: ...

    async def ack(
        self,
        *receipts: Receipt,
        id: Name | None = None,
        payload: Any = None,
        result: Any = None,
        **options: Unpack[commands.AckOptions],
    ) -> list[Refused | None] | None:
        """Finish taken tasks. A `payload` replaces that of a task that is kept.

        A `result` is what came of the work on a single one, for who waits for the task and, if it
        is kept, for who looks at it later. Refused with `TooLarge` and `Busy` as a payload is.
        For several receipts it returns None or a refusal for each. For one, a refusal is raised:
        `Stale` if the lease has ended. `id` is for the connection that took the task.
        """
        done = await self.client.run(
            about_tasks.ack(
                self.name,
                receipts,
                id=id,
                payload=self._dumped(payload),
                result=self._dumped(result),
                member=self.member,
                **options,
            )
        )
        return done if len(receipts) > 1 else None

    async def release(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        value: Any = None,
        **options: Unpack[commands.ReleaseOptions],
    ) -> State:
        """Give a taken task back, at once or after `delay`. `GONE` says that its TTL had passed."""
        payload = self._dumped(value)
        words = commands.release(self.name, receipt, id=id, payload=payload, **options)
        return await self._run(words, parsing.state, about_tasks.repeat_of(receipt))

    async def bury(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        value: Any = None,
        **options: Unpack[commands.BuryOptions],
    ) -> None:
        """Set a taken task aside. A reason is cut to 1,024 bytes."""
        payload = self._dumped(value)
        words = commands.bury(self.name, receipt, id=id, payload=payload, **options)
        await self._run(words, parsing.nothing, about_tasks.repeat_of(receipt))

    async def fail(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        value: Any = None,
        **options: Unpack[commands.FailOptions],
    ) -> State:
        """Say that a taken task failed. A reason is cut to 1,024 bytes. Returns what it is now."""
        payload = self._dumped(value)
        words = commands.fail(self.name, receipt, id=id, payload=payload, **options)
        return await self._run(words, parsing.state, about_tasks.repeat_of(receipt))

    async def touch(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        **options: Unpack[commands.TouchOptions],
    ) -> datetime | None:
        """Renew a lease, or move its deadline by so many seconds. Returns the deadline.

        `progress` and `checkpoint` tell how far the work has come. With the `id` of a ready task,
        `by` moves its TTL.
        """
        return await self.client.run(
            about_tasks.touch(self.name, receipt, id=id, member=self.member, **options)
        )

    async def wait_for(self, id: Name, *, wait: Span | None = 0) -> Awaited:
        """Wait until a task is finished, at most for `wait` seconds, and tell how it ended.

        `result` of what it returns is what came of the work. If the queue does not keep finished
        tasks, only who waits at their end gets that, and a task that ends between two requests of a
        long wait has none. Of a task that is gone the server tells how it ended as long as it
        remembers that, and is refused with `NotFound` afterwards.
        """
        return await self._await(id, Deadline(wait, self.client.options.slice_s))

    async def _await(self, id: Name, deadline: Deadline) -> Awaited:
        while True:
            words = commands.await_(self.name, id, result=True)
            words.option("WAIT", deadline.next_ms() or None)
            awaited = await self._run(words, parsing.awaited(self.serialiser), Repeat.SAFE)
            if awaited.outcome is not Outcome.TIMEOUT or deadline.passed():
                return awaited
