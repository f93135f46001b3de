"""A queue, or the lane of a member in a topic, with every command that it has.

Made from `aio/queue.py` by `tools/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, overload

from ..attempts import Deadline
from ..errors import Exists, Full, NotFound, Refused
from ..parsing import text
from ..replies import Awaited, Outcome, Put, State, Task
from ..requests import tasks as about_tasks
from ..requests.base import OWN, Name, OwnKey, Priority, Receipt
from ..requests.tasks import From, OnDuplicate, Order
from ..spans import Moment, Span
from .administration import Administration
from .job import Job

#: How long a lane's task is leased between the two steps of a pop, in seconds.
POP_LEASE_S = 30.0


class Queue(Administration):
    """A queue of a server. It need not exist: the first put creates it.

    With `member` it is the lane of that member in the topic `name`. Spans are seconds or
    `timedelta`s, moments Unix seconds or aware `datetime`s. A lower priority is more urgent.
    """

    def put(
        self,
        value: Any,
        *,
        key: Name | None = None,
        priority: Priority | None = None,
        delay: Span | None = None,
        at: Moment | None = None,
        ttl: Span | None = None,
        ttr: Span | None = None,
        id: Name | None = None,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        window: Span | None = None,
        on_duplicate: OnDuplicate | None = None,
        buried: bool = False,
        reason: str | None = None,
    ) -> Put:
        """Put a task.

        Without `unique` it gets a unique key of its own with the window of the client, so that it
        is safe to send again when a reply was lost. Give your own key to meet duplicates, or None
        for a put without key, which is never sent again. `room` is how long to wait for room in a
        full queue. `buried` sets the task aside at once, with `reason`.

        Refused with `Exists`, `Full`, `Paused`, `Busy`, `TooLarge`, `IdRequired`, `Taken`.
        """
        return self._put(
            value,
            None,
            key=key,
            priority=priority,
            delay=delay,
            at=at,
            ttl=ttl,
            ttr=ttr,
            id=id,
            room=room,
            unique=unique,
            window=window,
            on_duplicate=on_duplicate,
            buried=buried,
            reason=reason,
        )

    def put_and_wait(
        self,
        value: Any,
        wait: Span | None,
        *,
        key: Name | None = None,
        priority: Priority | None = None,
        ttl: Span | None = None,
        ttr: Span | None = None,
        id: Name | None = None,
        room: Span | None = None,
        unique: Name | OwnKey | None = OWN,
        window: Span | None = None,
        on_duplicate: OnDuplicate | None = None,
    ) -> Put:
        """Put a task, and wait until it is finished, at most for `wait` seconds.

        `outcome` of the result tells how it ended, `TIMEOUT` if it has not, and None if nobody
        knows any more. None as `wait` is without limit.
        """
        deadline = Deadline(wait, self.client.options.slice_s)
        done = self._put(
            value,
            deadline.next_ms(),
            key=key,
            priority=priority,
            delay=None,
            at=None,
            ttl=ttl,
            ttr=ttr,
            id=id,
            room=room,
            unique=unique,
            window=window,
            on_duplicate=on_duplicate,
            buried=False,
            reason=None,
        )
        if done.outcome is not Outcome.TIMEOUT or deadline.passed():
            return done
        try:
            awaited = self._await(done.id, deadline)
        except NotFound:
            return Put(done.id, done.new, None)
        return Put(done.id, done.new, awaited.outcome)

    def _put(
        self, value: Any, wait_ms: int | None, *, room: Span | None, **options: Any
    ) -> Put:
        waiting = None if room is None else Deadline(room, self.client.options.slice_s)
        # One request for all attempts, so that they share the unique key.
        request = about_tasks.put(
            self.name,
            self.serialiser.dump(value),
            room=None,
            own_window=self.client.options.window_s,
            wait_ms=wait_ms,
            **options,
        )
        given_id = options["id"]
        while True:
            attempt = request
            if waiting is not None:
                attempt = request.with_words(b"ROOM", str(waiting.next_ms()).encode())
            try:
                return self.client.run(attempt)
            except Full:
                if waiting is None or waiting.passed():
                    raise
            except Exists as refused:
                if not refused.repeated or given_id is None:
                    raise
                return Put(text(given_id), True)

    def take(
        self,
        *,
        wait: Span | None = 0,
        ttr: Span | None = None,
        from_: From | None = None,
        order: Order | None = None,
    ) -> Job | None:
        """Take the most urgent task under a lease of `ttr` seconds, or return None.

        `wait` is how many seconds to block while there is none; None is without limit. Without
        any TTR, from here, the task or the queue, the lease ends with its connection.
        """
        jobs = self.take_many(1, wait=wait, ttr=ttr, from_=from_, order=order)
        return jobs[0] if jobs else None

    def take_many(
        self,
        count: int,
        *,
        wait: Span | None = 0,
        ttr: Span | None = None,
        from_: From | None = None,
        order: Order | None = None,
        group: bool = False,
        done: Iterable[Job] = (),
    ) -> list[Job]:
        """Take up to `count` tasks, or with `group` that many groups of tasks with one key.

        It does not wait for all of them. `done` are jobs to acknowledge in the same step, at most
        100. If one of them cannot be acknowledged, nothing is acknowledged or taken.
        """
        finished = list(done)
        jobs = self.client.take_many(
            [self.name],
            count,
            wait=wait,
            ttr=ttr,
            from_=from_,
            order=order,
            group=group,
            member=self.member,
            done=[(job.queue.name, job.receipt) for job in finished],
            serialiser=self.serialiser,
        )
        for job in finished:
            job.settled = True
        return jobs

    def jobs(self, *, ttr: Span, wait: Span | None = None) -> Iterator[Job]:
        """Go through tasks as they come, under leases of `ttr` seconds.

        It ends when there was none for `wait` seconds, or never if that is None.
        """
        while True:
            job = self.take(wait=wait, ttr=ttr)
            if job is None:
                return
            yield job

    def pop(
        self, *, wait: Span | None = 0, from_: From | None = None, order: Order | None = None
    ) -> Task | None:
        """Take the most urgent task for good, or return None.

        If its reply is lost, so is it. If the call is cancelled, it is put back.
        """
        tasks = self.pop_many(1, wait=wait, from_=from_, order=order)
        return tasks[0] if tasks else None

    def pop_many(
        self,
        count: int,
        *,
        wait: Span | None = 0,
        from_: From | None = None,
        order: Order | None = None,
        group: bool = False,
    ) -> list[Task]:
        """Take up to `count` tasks, or groups, for good. It is never sent again.

        What has been taken when the call is cancelled is put back, as a new task.
        """
        if self.member is not None:
            return self._pop_from_lane(count, wait, from_, order, group)
        deadline = Deadline(wait, self.client.options.slice_s)
        while True:
            tasks = self.client.run(
                about_tasks.pop(
                    [self.name],
                    count=count,
                    wait_ms=deadline.next_ms(),
                    from_=from_,
                    order=order,
                    group=group,
                    meta=True,
                    member=self.member,
                )
            )
            if tasks or deadline.passed():
                return [self._with_value(task) for task in tasks]

    def _pop_from_lane(
        self,
        count: int,
        wait: Span | None,
        from_: From | None,
        order: Order | None,
        group: bool,
    ) -> list[Task]:
        """Take and acknowledge, since nothing can be put back into the lane of one member."""
        jobs = self.take_many(
            count, wait=wait, ttr=POP_LEASE_S, from_=from_, order=order, group=group
        )
        for job in jobs:
            self.client.link.run_soon(
                about_tasks.ack(self.name, [job.receipt], member=self.member)
            )
        return [self._with_value(replace(job.task, receipt=None)) for job in jobs]

    def _with_value(self, task: Task) -> Task:
        return replace(task, value=self.serialiser.load(task.payload))

    def peek(
        self,
        count: int = 1,
        *,
        state: State | None = None,
        from_: From | None = None,
        order: Order | None = None,
    ) -> list[Task]:
        """Show what a take would choose, or the tasks of one state. Nothing changes."""
        return self.client.run(
            about_tasks.peek(
                self.name,
                self.serialiser,
                count=count,
                state=state,
                from_=from_,
                order=order,
                meta=True,
                member=self.member,
            )
        )

    def get(self, id: Name) -> Task | None:
        """Show one task in any state, or None."""
        return self.client.run(about_tasks.get(self.name, id, self.serialiser, self.member))

    @overload
    def ack(
        self, receipt: Receipt, /, *, payload: Any = ..., zombie: Span | None = ...
    ) -> None: ...

    @overload
    def ack(
        self, receipt: Receipt, second: Receipt, /, *more: Receipt
    ) -> list[Refused | None]: ...

    @overload
    def ack(self, *, id: Name, payload: Any = ..., zombie: Span | None = ...) -> None: ...

    def ack(
        self,
        *receipts: Receipt,
        id: Name | None = None,
        payload: Any = None,
        zombie: Span | None = None,
    ) -> list[Refused | None] | None:
        """Finish taken tasks. A `payload` replaces that of a task that is kept.

        For several receipts it returns None or a refusal for each. For one, a refusal is raised:
        `Stale` if the lease has ended. `id` is for the connection that took the task.
        """
        done = self.client.run(
            about_tasks.ack(
                self.name,
                receipts,
                id=id,
                payload=self._dumped(payload),
                zombie=zombie,
                member=self.member,
            )
        )
        return done if len(receipts) > 1 else None

    def release(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        delay: Span | None = None,
        ttl: Span | None = None,
        priority: Priority | None = None,
        value: Any = None,
        tail: bool = False,
    ) -> State:
        """Give a taken task back, at once or after `delay`. `GONE` says that its TTL had passed."""
        return self.client.run(
            about_tasks.release(
                self.name,
                receipt,
                id=id,
                delay=delay,
                ttl=ttl,
                priority=priority,
                payload=self._dumped(value),
                tail=tail,
                member=self.member,
            )
        )

    def bury(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        value: Any = None,
        reason: str | None = None,
    ) -> None:
        """Set a taken task aside. A reason is cut to 1,024 bytes."""
        self.client.run(
            about_tasks.bury(
                self.name,
                receipt,
                id=id,
                payload=self._dumped(value),
                reason=reason,
                member=self.member,
            )
        )

    def fail(
        self,
        receipt: Receipt | None = None,
        *,
        id: Name | None = None,
        reason: str | None = None,
        delay: Span | None = None,
        value: Any = None,
    ) -> State:
        """Say that a taken task failed. A reason is cut to 1,024 bytes. Returns what it is now."""
        return self.client.run(
            about_tasks.fail(
                self.name,
                receipt,
                id=id,
                reason=reason,
                delay=delay,
                payload=self._dumped(value),
                member=self.member,
            )
        )

    def touch(
        self, receipt: Receipt | None = None, *, id: Name | None = None, by: Span | None = None
    ) -> datetime | None:
        """Renew a lease, or move its deadline by so many seconds. Returns the deadline.

        With the `id` of a ready task, `by` moves its TTL.
        """
        return self.client.run(
            about_tasks.touch(self.name, receipt, id=id, by=by, member=self.member)
        )

    def wait_for(self, id: Name, *, wait: Span | None = 0) -> Awaited:
        """Wait until a task is finished, at most for `wait` seconds, and tell how it ended.

        Refused with `NotFound` if the task is gone already.
        """
        return self._await(id, Deadline(wait, self.client.options.slice_s))

    def _await(self, id: Name, deadline: Deadline) -> Awaited:
        while True:
            awaited = self.client.run(
                about_tasks.await_(self.name, id, wait_ms=deadline.next_ms(), member=self.member)
            )
            if awaited.outcome is not Outcome.TIMEOUT or deadline.passed():
                return awaited
