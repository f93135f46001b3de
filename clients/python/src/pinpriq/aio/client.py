"""The client: its connections, and the requests that belong to no single queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import commands, parsing
from ..attempts import Deadline
from ..options import options_of
from ..replies import Lease, Page, Stats
from ..requests import tasks as about_tasks
from ..requests.base import Done, Name, Repeat, Request, Words
from ..serialisers import Serialiser, serialiser_named
from ..spans import Span
from ..values import text, text_or_none
from .administration import PAGE_MAX
from .batches import AsyncBatch
from .job import AsyncJob
from .link import AsyncLink
from .queue import AsyncQueue
from .schedules import AsyncSchedules
from .subscription import AsyncSubscription
from .topic import AsyncTopic
from .transaction import AsyncTransaction

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class AsyncClient:
    """A client of one server, or of a cluster through one of its nodes.

    `url` is `pinpriq://user:password@host:port`, or `pinpriqs://` for TLS. Instead of it give
    `host` and `port`. Without any of them the environment variable `PINPRIQ_URL` counts, and
    without that `pinpriq://127.0.0.1:7251`. Further options go to the connections of redis-py,
    such as `ssl_ca_certs` or `max_connections`.

    Spans are seconds. A request that is safe to repeat is sent again for `retry_for` after a
    connection broke. `socket_timeout` is how long a reply may take; longer waits are cut into
    several requests. `window` is how long the server remembers the unique key of a put, and must
    be longer than both together. `serialiser` is `json`, `msgpack`, `bytes`, or an object.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        username: str | None = None,
        password: str | None = None,
        client_name: str | None = None,
        serialiser: str | Serialiser = "json",
        retry_for: Span = 15.0,
        window: Span = 30.0,
        socket_timeout: Span = 10.0,
        **redis_options: Any,
    ) -> None:
        self.options = options_of(
            url,
            retry_for=retry_for,
            window=window,
            socket_timeout=socket_timeout,
            host=host,
            port=port,
            username=username,
            password=password,
            client_name=client_name,
            redis_options=redis_options,
        )
        self.serialiser = serialiser_named(serialiser)
        self.link = AsyncLink(self.options)

    async def close(self) -> None:
        """Close the connections. Leases with a TTR go on."""
        await self.link.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def serialiser_for(self, which: str | Serialiser | None) -> Serialiser:
        """Return the serialiser of this name, or that of the client for None."""
        return self.serialiser if which is None else serialiser_named(which)

    async def run(self, request: Request[T]) -> T:
        """Have one request carried out. The other methods use this."""
        return await self.link.run(request)

    def queue(self, name: Name, *, serialiser: str | Serialiser | None = None) -> AsyncQueue:
        """Return a queue. That asks the server nothing."""
        return AsyncQueue(self, name, serialiser=serialiser)

    def topic(self, name: Name, *, serialiser: str | Serialiser | None = None) -> AsyncTopic:
        """Return a topic of fan-out. That asks the server nothing."""
        return AsyncTopic(self, name, serialiser=serialiser)

    @property
    def schedules(self) -> AsyncSchedules:
        """The schedules of the server."""
        return AsyncSchedules(self)

    def batch(
        self,
        name: Name | None = None,
        *,
        ttl: Span | None = None,
        serialiser: str | Serialiser | None = None,
    ) -> AsyncBatch:
        """Return a batch: tasks that are followed together. That asks the server nothing.

        As a context manager it opens a new one, for which `ttl` is how long it has to be done.
        """
        return AsyncBatch(self, name, ttl=ttl, serialiser=serialiser)

    def batch_names(self, prefix: Name | None = None) -> AsyncIterator[str]:
        """Go through the names of the batches, in the order of their bytes."""
        return self.pages(commands.batch_list(prefix=prefix, count=PAGE_MAX), text)

    def transaction(self) -> AsyncTransaction:
        """Begin a transaction: commands that are carried out at one moment, all or none."""
        return AsyncTransaction(self)

    def subscription(self) -> AsyncSubscription:
        """Return a connection to which the server pushes tasks."""
        return AsyncSubscription(self)

    async def take_many(
        self,
        queues: Sequence[Name],
        count: int = 1,
        *,
        wait: Span | None = 0,
        member: Name | None = None,
        done: Iterable[Done] = (),
        serialiser: str | Serialiser | None = None,
        **options: Unpack[commands.TakeOptions],
    ) -> list[AsyncJob]:
        """Take up to `count` tasks of several queues, which are tried in this order.

        `wait` is how many seconds to block while there is none; None is without limit. `done`
        acknowledges tasks in the same step, each by its queue and receipt, and the bytes of its
        result if there is one. Without any `ttr` a lease ends with its connection, so give one
        unless the task or the queue has one. If the queues live in several shards, the most urgent
        of what these would hand over first comes.
        """
        deadline = Deadline(wait, self.options.slice_s)
        finished = tuple(done)
        while True:
            tasks = await self.run(
                about_tasks.take(
                    queues,
                    count=count,
                    wait_ms=deadline.next_ms(),
                    member=member,
                    done=finished,
                    **options,
                )
            )
            finished = ()
            if tasks or deadline.passed():
                break
        return [
            AsyncJob(AsyncQueue(self, task.queue, serialiser=serialiser, member=member), task)
            for task in tasks
        ]

    async def stats(self) -> Stats:
        """Tell the figures of all queues and lanes together."""
        return await self.run(commands.stats().request(parsing.stats, Repeat.SAFE))

    def queue_names(self, prefix: Name | None = None) -> AsyncIterator[str]:
        """Go through the names of the queues, in the order of their bytes."""
        return self.pages(commands.queue_list(prefix=prefix, count=PAGE_MAX), text)

    async def pages(self, words: Words, item: Callable[[Any], T]) -> AsyncIterator[T]:
        """Go through all pages of a command that has no cursor yet."""
        cursor = "0"
        while True:
            request = Words(*words, "CURSOR", cursor).request(parsing.page(item), Repeat.SAFE)
            page = await self.run(request)
            for each in page.items:
                yield each
            cursor = page.cursor
            if cursor == "0":
                return

    async def leases(self, cursor: Name = "0", count: int | None = None) -> Page[Lease]:
        """Show who holds which task, in all queues and lanes. `count` is 1000 at most."""
        words = commands.leases(cursor=cursor, count=count)
        return await self.run(words.request(parsing.page(parsing.lease), Repeat.SAFE))

    async def beat(self, member: Name, *, lease: Span | None = None) -> None:
        """Give a sign of life of a member. Refused with `NotFound` if it has ended."""
        await self.run(commands.beat(member, lease=lease).request(parsing.nothing, Repeat.SAFE))

    async def leave(self, member: Name) -> int:
        """End a member with all its lanes. Returns how many lanes it had."""
        return await self.run(commands.leave(None, member).request(parsing.number))

    async def ping(self) -> None:
        """Ask for a sign of life of the server."""
        await self.run(Words("PING").request(parsing.nothing, Repeat.SAFE))

    async def info(self, *sections: str) -> dict[str, str]:
        """Tell facts about the server, by name."""
        return await self.run(Words("INFO", *sections).request(parsing.info, Repeat.SAFE))

    async def whoami(self) -> str | None:
        """Tell the user that this client has signed in as."""
        return await self.run(Words("ACL", "WHOAMI").request(text_or_none, Repeat.SAFE))

    async def client_list(self) -> str:
        """Tell who is connected, a line each."""
        return await self.run(Words("CLIENT", "LIST").request(text, Repeat.SAFE))

    async def client_kill(self, *numbers: int) -> int:
        """End connections by their numbers. Returns how many."""
        words = Words("CLIENT", "KILL")
        for number in numbers:
            words.option("ID", number)
        return await self.run(words.request(parsing.number))

    async def command(self, *words: Name | int) -> Any:
        """Send any command, never twice, and return its reply as redis-py gives it.

        `pinpriq.commands` makes its words: `client.command(*commands.members("news"))`.
        """
        return await self.run(Words(*words).request(lambda reply: reply))
