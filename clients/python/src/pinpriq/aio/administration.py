"""What queues and lanes have beside putting and taking: looking, changing, moving, settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from .. import commands, parsing, tracing, values
from ..replies import Changed, Explanation, Lease, Page, State, Stats
from ..requests.base import Name, Repeat, Words
from ..serialisers import Serialiser
from ..settings import QueueSettings, QueueShown, queue_shown
from ..task import Task
from ..values import text

P = ParamSpec("P")
T = TypeVar("T")

#: Which side of a queue is paused: puts, takes, or both if it is None.
Side = Literal["in", "out"]

#: The most tasks or names of a page.
PAGE_MAX = 1000

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient


class AsyncAdministration:
    """The part of a queue that producers and workers seldom need."""

    def __init__(
        self,
        client: AsyncClient,
        name: Name,
        *,
        serialiser: str | Serialiser | None = None,
        member: Name | None = None,
    ) -> None:
        self.client = client
        #: The name; bytes that are not UTF-8 as surrogates.
        self.name = text(name)
        self.member = member
        self.serialiser = client.serialiser_for(serialiser)

    def __repr__(self) -> str:
        of = "" if self.member is None else f", member={self.member!r}"
        return f"{type(self).__name__}({self.name!r}{of})"

    async def dig(
        self, id: Name, *, value: Any = None, **options: Unpack[commands.DigOptions]
    ) -> State:
        """Bring a buried task back. Refused with `WrongState` or `Taken`."""
        return await self._run(
            commands.dig(self.name, id, payload=self._dumped(value), **options), parsing.state
        )

    async def plow(self, count: int | None = None, **options: Unpack[commands.PlowOptions]) -> int:
        """Bring the oldest buried tasks back, all of them without `count`. Returns how many."""
        return await self._run(commands.plow(self.name, count=count, **options), parsing.number)

    async def kick(self, count: int) -> int:
        """Bring the oldest buried tasks back, in the words of beanstalkd."""
        return await self._run(commands.kick(self.name, count), parsing.number)

    async def kick_id(self, id: Name) -> State:
        """Bring a buried task back, in the words of beanstalkd."""
        return await self._run(commands.kick(self.name, id=id), parsing.state)

    async def kill(self, *ids: Name) -> int:
        """Remove tasks in any state, also those that are held. Returns how many."""
        return await self._run(commands.kill(self.name, *ids), parsing.number)

    async def cancel(self, id: Name, **options: Unpack[commands.CancelOptions]) -> State:
        """End a task, or if it is taken, ask its holder to stop, for `grace` seconds at most.

        Returns `GONE` if it has ended, `TAKEN` if its holder is asked, and what it is if it was
        finished. Refused with `NotFound`.
        """
        words = commands.cancel(self.name, id, **options)
        return await self._run(words, parsing.state, Repeat.SAFE)

    async def switch(self, id: Name, to: State, **options: Unpack[commands.SwitchOptions]) -> State:
        """Turn a task that is not taken into another state. Refused with `Taken`."""
        return await self._run(commands.switch(self.name, id, to, **options), parsing.state)

    async def snatch(self, id: Name, **options: Unpack[commands.SnatchOptions]) -> State:
        """Take a task away from its holder. Refused with `NotTaken`."""
        return await self._run(commands.snatch(self.name, id, **options), parsing.state)

    async def restart(self, id: Name, **options: Unpack[commands.RestartOptions]) -> State:
        """Bring a waiting, buried or finished task back as if it had never been taken."""
        return await self._run(commands.restart(self.name, id, **options), parsing.state)

    async def update(
        self, id: Name, *, value: Any = None, **options: Unpack[commands.UpdateOptions]
    ) -> None:
        """Change a task where it is. A taken one needs its receipt. A TTL counts from now."""
        await self._run(
            commands.update(self.name, id, payload=self._dumped(value), **options),
            parsing.nothing,
            Repeat.SAFE,
        )

    async def move(self, to: Name, **options: Unpack[commands.MoveOptions]) -> int:
        """Move tasks of one state, R by default, to another queue. Returns how many.

        `count` is 1,000 by default and 10,000 at most.
        """
        return await self._run(commands.move(self.name, to, **options), parsing.number)

    async def redrive(self, **options: Unpack[commands.RedriveOptions]) -> int:
        """Move ready dead letters back to the queues that they come from. Returns how many."""
        count = await self._run(commands.redrive(self.name, **options), parsing.number)
        tracing.redriven(self.name, count)
        return count

    async def bulk(self, **options: Unpack[commands.BulkOptions]) -> Changed:
        """Do the same with all tasks of this queue, or with those of them that are chosen.

        One option says what: `restart`, `cancel`, `kill` or `redrive`, `move` with a queue,
        `priority` or `delay`. The others say with which tasks, such as `reason="*timeout*"`, and
        all of them have to fit. `dry` only counts. `count` is how many change in one request. A
        request whose reply was lost is sent again, and then the numbers may be too low.
        """
        changed, looked, cursor = 0, 0, "0"
        while True:
            words = commands.bulk(self.name, cursor=cursor, **options)
            page = await self._run(words, parsing.plain, Repeat.SAFE)
            cursor, changed, looked = page[0], changed + page[2], looked + page[1]
            if cursor == "0":
                break
        if options.get("redrive") and not options.get("dry"):
            tracing.redriven(self.name, changed)
        return Changed(changed, looked)

    async def explain(self, id: Name | None = None) -> Explanation:
        """Tell why a task is not handed out, or which task would be next."""
        return await self._run(commands.explain(self.name, id), parsing.explanation, Repeat.SAFE)

    async def scan(self, cursor: Name = "0", **options: Unpack[commands.ScanOptions]) -> Page[Task]:
        """Show one page of all tasks, in the order of their puts. `count` is 1,000 at most."""
        return await self._run(
            commands.scan(self.name, cursor=cursor, meta=True, **options),
            parsing.page(self._task),
            Repeat.SAFE,
        )

    def tasks(
        self, *, state: State | None = None, key: Name | None = None, batch: Name | None = None
    ) -> AsyncIterator[Task]:
        """Go through all tasks, in the order of their puts."""
        words = commands.scan(
            self.name, count=PAGE_MAX, meta=True, state=state, key=key, batch=batch
        )
        return self.client.pages(words.option("MEMBER", self.member), self._task)

    async def leases(
        self, cursor: Name = "0", **options: Unpack[commands.LeasesOptions]
    ) -> Page[Lease]:
        """Show who holds which task of this queue."""
        return await self._run(
            commands.leases(self.name, cursor=cursor, **options),
            parsing.page(parsing.lease),
            Repeat.SAFE,
        )

    async def create(self, settings: QueueSettings | None = None) -> None:
        """Make a queue that exists even when it is empty. Refused with `Exists`."""
        words = commands.queue_create(self.name, settings)
        await self.client.run(words.request(parsing.nothing))

    async def configure(self, settings: QueueSettings) -> None:
        """Change the settings that are given. A queue is created if need be."""
        await self._run(commands.queue_set(self.name, settings), parsing.nothing, Repeat.SAFE)

    async def show(self) -> QueueShown:
        """Tell the settings. Refused with `NoQueue`."""
        return await self._run(commands.queue_show(self.name), queue_shown, Repeat.SAFE)

    async def truncate(self) -> int:
        """Remove all tasks. Returns how many. Refused with `NoQueue`."""
        return await self._run(commands.queue_truncate(self.name), parsing.number)

    async def drop(self) -> int:
        """Remove the queue with its tasks, settings and pause. Returns how many tasks it had."""
        words = commands.queue_drop(self.name)
        return await self.client.run(words.request(parsing.number))

    async def pause(
        self, side: Side | None = None, **options: Unpack[commands.QueuePauseOptions]
    ) -> None:
        """Pause puts (`in`), takes (`out`) or both, for good or for so many seconds."""
        await self._run(
            commands.queue_pause(self.name, side, **options), parsing.nothing, Repeat.SAFE
        )

    async def resume(self, side: Side | None = None) -> None:
        """End a pause."""
        await self._run(commands.queue_resume(self.name, side), parsing.nothing, Repeat.SAFE)

    async def stats(self) -> Stats:
        """Tell the figures of this queue."""
        return await self._run(commands.stats(self.name), parsing.stats, Repeat.SAFE)

    async def export(
        self, cursor: Name = "0", **options: Unpack[commands.ExportOptions]
    ) -> Page[bytes]:
        """Show a page of all that another server needs to go on with this queue, as JSON."""
        words = commands.export(self.name, cursor=cursor, **options)
        return await self.client.run(words.request(parsing.page(bytes), Repeat.SAFE))

    async def import_record(self, record: Name, *, payload: bytes | None = None) -> str:
        """Take over one record of an export. Returns the id of a task, or `OK`."""
        words = commands.import_(self.name, record, payload=payload)
        return await self.client.run(words.request(values.text))

    async def command(
        self,
        build: Callable[Concatenate[Name, P], Words],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Any:
        """Send any command of `pinpriq.commands` about this queue, never twice.

        Such as `queue.command(commands.queue_pause, "in")`. Returns numbers, texts and lists, where
        a map is a list of names and values in turn.
        """
        return await self._run(build(self.name, *arguments, **options), parsing.plain)

    async def _run(
        self, words: Words, parse: Callable[[Any], T], repeat: Repeat = Repeat.NEVER
    ) -> T:
        """Have a command carried out about this queue, or about the lane if it is one."""
        return await self.client.run(words.option("MEMBER", self.member).request(parse, repeat))

    def _task(self, reply: Any) -> Task:
        return parsing.task(reply, self.serialiser)

    def _dumped(self, value: Any) -> bytes | None:
        return None if value is None else self.serialiser.dump(value)
