"""The client: its connections, and the requests that belong to no single queue.

Made from `aio/client.py` by `tools/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from ..attempts import Deadline
from ..options import options_of
from ..replies import Lease, Page, Stats
from ..requests import queues as about_queues
from ..requests import tasks as about_tasks
from ..requests.base import Name, Receipt, Request
from ..requests.tasks import From, Order
from ..serialisers import Serialiser, serialiser_named
from ..spans import Span
from .job import Job
from .link import Link
from .queue import Queue
from .schedules import Schedules
from .subscription import Subscription
from .topic import Topic
from .transaction import Transaction

T = TypeVar("T")


class Client:
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
        self.link = Link(self.options)

    def close(self) -> None:
        """Close the connections. Leases with a TTR go on."""
        self.link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, request: Request[T]) -> T:
        """Have one request carried out. The other methods use this."""
        return self.link.run(request)

    def queue(self, name: Name, *, serialiser: str | Serialiser | None = None) -> Queue:
        """Return a queue. That asks the server nothing."""
        return Queue(self, name, serialiser=serialiser)

    def topic(self, name: Name, *, serialiser: str | Serialiser | None = None) -> Topic:
        """Return a topic of fan-out. That asks the server nothing."""
        return Topic(self, name, serialiser=serialiser)

    @property
    def schedules(self) -> Schedules:
        """The schedules of the server."""
        return Schedules(self)

    def transaction(self) -> Transaction:
        """Begin a transaction: commands that are carried out at one moment, all or none."""
        return Transaction(self)

    def subscription(self) -> Subscription:
        """Return a connection to which the server pushes tasks."""
        return Subscription(self)

    def take_many(
        self,
        queues: Sequence[Name],
        count: int = 1,
        *,
        wait: Span | None = 0,
        ttr: Span | None = None,
        from_: From | None = None,
        order: Order | None = None,
        group: bool = False,
        member: Name | None = None,
        done: Iterable[tuple[Name, Receipt]] = (),
        serialiser: str | Serialiser | None = None,
    ) -> list[Job]:
        """Take up to `count` tasks of several queues, which are tried in this order.

        `wait` is how many seconds to block while there is none; None is without limit. `done`
        acknowledges tasks in the same step. Without any `ttr` a lease ends with its connection,
        so give one unless the task or the queue has one. If the queues live in several shards, the
        most urgent of what these would hand over first comes.
        """
        deadline = Deadline(wait, self.options.slice_s)
        finished = tuple(done)
        while True:
            tasks = self.run(
                about_tasks.take(
                    queues,
                    count=count,
                    wait_ms=deadline.next_ms(),
                    ttr=ttr,
                    from_=from_,
                    order=order,
                    group=group,
                    member=member,
                    done=finished,
                )
            )
            finished = ()
            if tasks or deadline.passed():
                break
        return [
            Job(Queue(self, task.queue, serialiser=serialiser, member=member), task)
            for task in tasks
        ]

    def stats(self) -> Stats:
        """Tell the figures of all queues and lanes together."""
        return self.run(about_queues.stats(None, None))

    def queue_names(self, prefix: Name | None = None) -> Iterator[str]:
        """Go through the names of the queues, in the order of their bytes."""
        cursor = "0"
        while True:
            page = self.run(about_queues.list_("QUEUE", prefix, 1000, cursor))
            for name in page.items:
                yield name
            cursor = page.cursor
            if cursor == "0":
                return

    def leases(self, cursor: Name = "0", count: int | None = None) -> Page[Lease]:
        """Show who holds which task, in all queues and lanes. `count` is 1000 at most."""
        return self.run(about_tasks.leases(None, cursor=cursor, count=count, member=None))

    def beat(self, member: Name, *, lease: Span | None = None) -> None:
        """Give a sign of life of a member. Refused with `NotFound` if it has ended."""
        self.run(about_queues.beat(member, lease))

    def leave(self, member: Name) -> int:
        """End a member with all its lanes. Returns how many lanes it had."""
        return self.run(about_queues.leave(None, member))

    def ping(self) -> None:
        """Ask for a sign of life of the server."""
        self.run(about_queues.ping())

    def info(self, *sections: str) -> dict[str, str]:
        """Tell facts about the server, by name."""
        return self.run(about_queues.info(sections))

    def whoami(self) -> str | None:
        """Tell the user that this client has signed in as."""
        return self.run(about_queues.whoami())

    def client_list(self) -> str:
        """Tell who is connected, a line each."""
        return self.run(about_queues.client_list())

    def client_kill(self, *numbers: int) -> int:
        """End connections by their numbers. Returns how many."""
        return self.run(about_queues.client_kill(numbers))

    def command(self, *words: Name | int) -> Any:
        """Send any command, never twice, and return its reply as redis-py gives it."""
        from ..requests.base import Words

        return self.run(Words(*words).request(lambda reply: reply))
