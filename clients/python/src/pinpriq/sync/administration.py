"""What queues and lanes have beside putting and taking: looking, changing, moving, settings.

Made from `aio/administration.py` by `tools/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from ..parsing import text
from ..replies import Explanation, Lease, Page, QueueShown, State, Stats, Task
from ..requests import queues as about_queues
from ..requests import tasks as about_tasks
from ..requests.base import Name, Priority, Receipt
from ..requests.queues import Side
from ..serialisers import Serialiser, serialiser_named
from ..settings import QueueSettings
from ..spans import Span

if TYPE_CHECKING:
    from .client import Client


class Administration:
    """The part of a queue that producers and workers seldom need."""

    def __init__(
        self,
        client: Client,
        name: Name,
        *,
        serialiser: str | Serialiser | None = None,
        member: Name | None = None,
    ) -> None:
        self.client = client
        #: The name; bytes that are not UTF-8 as surrogates.
        self.name = text(name)
        self.member = member
        self.serialiser = client.serialiser if serialiser is None else serialiser_named(serialiser)

    def __repr__(self) -> str:
        of = "" if self.member is None else f", member={self.member!r}"
        return f"{type(self).__name__}({self.name!r}{of})"

    def dig(
        self,
        id: Name,
        *,
        delay: Span | None = None,
        ttl: Span | None = None,
        priority: Priority | None = None,
        value: Any = None,
    ) -> State:
        """Bring a buried task back. Refused with `WrongState` or `Taken`."""
        return self.client.run(
            about_tasks.dig(
                self.name,
                id,
                delay=delay,
                ttl=ttl,
                priority=priority,
                payload=self._dumped(value),
                member=self.member,
            )
        )

    def plow(
        self, count: int | None = None, *, delay: Span | None = None, ttl: Span | None = None
    ) -> int:
        """Bring the oldest buried tasks back, all of them without `count`. Returns how many."""
        return self.client.run(
            about_tasks.plow(self.name, count=count, delay=delay, ttl=ttl, member=self.member)
        )

    def kick(self, count: int) -> int:
        """Bring the oldest buried tasks back, in the words of beanstalkd."""
        return self.client.run(about_tasks.kick(self.name, count, self.member))

    def kick_id(self, id: Name) -> State:
        """Bring a buried task back, in the words of beanstalkd."""
        return self.client.run(about_tasks.kick_id(self.name, id, self.member))

    def kill(self, *ids: Name) -> int:
        """Remove tasks, whatever their state and whoever holds them. Returns how many."""
        return self.client.run(about_tasks.kill(self.name, ids, self.member))

    def switch(
        self, id: Name, to: State, *, delay: Span | None = None, ttl: Span | None = None
    ) -> State:
        """Turn a task that is not taken into another state. Refused with `Taken`."""
        return self.client.run(
            about_tasks.switch(self.name, id, to, delay=delay, ttl=ttl, member=self.member)
        )

    def snatch(
        self, id: Name, *, delay: Span | None = None, ttl: Span | None = None
    ) -> State:
        """Take a task away from its holder. Refused with `NotTaken`."""
        return self.client.run(
            about_tasks.moved_by("SNATCH", self.name, id, delay=delay, ttl=ttl, member=self.member)
        )

    def restart(
        self, id: Name, *, delay: Span | None = None, ttl: Span | None = None
    ) -> State:
        """Bring a waiting, buried or finished task back as if it had never been taken."""
        return self.client.run(
            about_tasks.moved_by("RESTART", self.name, id, delay=delay, ttl=ttl, member=self.member)
        )

    def update(
        self,
        id: Name,
        *,
        priority: Priority | None = None,
        value: Any = None,
        ttl: Span | Literal["none"] | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        """Change a task where it is. A taken one needs its receipt. A TTL counts from now."""
        self.client.run(
            about_tasks.update(
                self.name,
                id,
                priority=priority,
                payload=self._dumped(value),
                ttl=ttl,
                receipt=receipt,
                member=self.member,
            )
        )

    def move(self, to: Name, *, count: int | None = None, state: State | None = None) -> int:
        """Move tasks of one state, R by default, to another queue. Returns how many.

        `count` is 1,000 by default and 10,000 at most.
        """
        return self.client.run(
            about_tasks.move(self.name, to, count=count, state=state, member=self.member)
        )

    def redrive(self, *, count: int | None = None) -> int:
        """Move ready dead letters back to the queues that they come from. Returns how many."""
        return self.client.run(
            about_tasks.redrive(self.name, count=count, member=self.member)
        )

    def explain(self, id: Name | None = None) -> Explanation:
        """Tell why a task is not handed out, or which task would be next."""
        return self.client.run(about_tasks.explain(self.name, id, self.member))

    def scan(
        self,
        cursor: Name = "0",
        *,
        count: int | None = None,
        state: State | None = None,
        key: Name | None = None,
    ) -> Page[Task]:
        """Show one page of all tasks, in the order of their puts. `count` is 1,000 at most."""
        return self.client.run(
            about_tasks.scan(
                self.name,
                self.serialiser,
                cursor=cursor,
                count=count,
                state=state,
                key=key,
                meta=True,
                member=self.member,
            )
        )

    def tasks(
        self, *, state: State | None = None, key: Name | None = None
    ) -> Iterator[Task]:
        """Go through all tasks, in the order of their puts."""
        cursor = "0"
        while True:
            page = self.scan(cursor, count=1000, state=state, key=key)
            for task in page.items:
                yield task
            cursor = page.cursor
            if cursor == "0":
                return

    def leases(self, cursor: Name = "0", *, count: int | None = None) -> Page[Lease]:
        """Show who holds which task of this queue."""
        return self.client.run(
            about_tasks.leases(self.name, cursor=cursor, count=count, member=self.member)
        )

    def create(self, settings: QueueSettings | None = None) -> None:
        """Make a queue that exists even when it is empty. Refused with `Exists`."""
        self.client.run(about_queues.create(self.name, settings or QueueSettings()))

    def configure(self, settings: QueueSettings) -> None:
        """Change the settings that are given. A queue is created if need be."""
        self.client.run(about_queues.set_(self.name, settings, self.member))

    def show(self) -> QueueShown:
        """Tell the settings. Refused with `NoQueue`."""
        return self.client.run(about_queues.show(self.name, self.member))

    def truncate(self) -> int:
        """Remove all tasks. Returns how many. Refused with `NoQueue`."""
        return self.client.run(about_queues.truncate(self.name, self.member))

    def drop(self) -> int:
        """Remove the queue with its tasks, settings and pause. Returns how many tasks it had."""
        return self.client.run(about_queues.drop(self.name))

    def pause(self, side: Side | None = None, *, for_: Span | None = None) -> None:
        """Pause puts (`in`), takes (`out`) or both, for good or for so many seconds."""
        self.client.run(about_queues.pause(self.name, side, for_, self.member))

    def resume(self, side: Side | None = None) -> None:
        """End a pause."""
        self.client.run(about_queues.resume(self.name, side, self.member))

    def stats(self) -> Stats:
        """Tell the figures of this queue."""
        return self.client.run(about_queues.stats(self.name, self.member))

    def export(self, cursor: Name = "0", *, count: int | None = None) -> Page[bytes]:
        """Show a page of all that another server needs to go on with this queue, as JSON."""
        return self.client.run(about_queues.export(self.name, cursor, count))

    def import_record(self, record: Name, *, payload: bytes | None = None) -> str:
        """Take over one record of an export. Returns the id of a task, or `OK`."""
        return self.client.run(about_queues.import_(self.name, record, payload))

    def _dumped(self, value: Any) -> bytes | None:
        return None if value is None else self.serialiser.dump(value)
