"""Push: the server sends tasks, one for each credit."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .. import commands
from ..attempts import BROKEN, NotConnected
from ..errors import Disconnected, Stale, is_refusal, refusal_from
from ..requests import tasks as about_tasks
from ..requests.base import Name, Words
from ..spans import Span
from ..task import Task
from ..values import text, text_or_none
from .job import AsyncJob
from .link import late_replies
from .pools import next_reply, send
from .queue import AsyncQueue

if TYPE_CHECKING:
    from .client import AsyncClient


class AsyncSubscription:
    """A connection of its own, to which tasks are pushed. Use it as a context manager.

    Where priorities matter, subscribe with `recall` and `start` each job: until then the server
    calls it back when a more urgent task arrives. What has arrived and was not asked for when the
    block ends is given back, and put back if it was popped from a queue. A broken connection raises
    `Disconnected`: subscribe again then.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._connection: Any = None
        self._arrived: deque[Any] = deque()
        # How many replies are under way. A call that was cancelled has not read its own.
        self._owed = 0
        self._members: dict[str, Name | None] = {}

    async def __aenter__(self) -> AsyncSubscription:
        try:
            self._connection = await self._client.link.connection()
        except NotConnected as error:
            raise Disconnected(f"no connection to the server: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._arrived.extend(await late_replies(self._connection))
        # The connection has subscriptions and credit, so it is not used for anything else.
        await self._connection.disconnect()
        await self._client.link.give_back(self._connection)
        while self._arrived:
            job = self._job(self._arrived.popleft())
            if job is not None:
                for step in about_tasks.undone([job.task], job.queue.member):
                    await self._client.link.carry_out_one_of(step)

    async def subscribe(
        self,
        *queues: Name,
        ttr: Span | None = None,
        pop: bool = False,
        recall: bool = False,
        member: Name | None = None,
    ) -> int:
        """Have tasks of these queues delivered, under leases of `ttr` seconds, or popped.

        Returns how many subscriptions there are. With `member` they are topics of that member. With
        `recall` a job can be called back until it is started with `start`.
        """
        words = commands.subscribe(queues, ttr=ttr, pop=pop, recall=recall, member=member)
        for queue in queues:
            self._members[text(queue)] = member
        return int(await self._ask(words))

    async def unsubscribe(self, *queues: Name, member: Name | None = None) -> int:
        """End these subscriptions, or all. Returns how many are left. Leases go on."""
        return int(await self._ask(commands.unsubscribe(queues, member=member)))

    async def credit(self, count: int) -> int:
        """Grant so many further deliveries. Returns the credit before those that follow."""
        return int(await self._ask(commands.credit(count)))

    async def ready(self) -> int:
        """Grant one further delivery."""
        return int(await self._ask(commands.ready()))

    async def start(self, job: AsyncJob) -> bool:
        """Begin with a job, whose lease begins anew.

        Returns False if it was called back or its lease has ended: leave it then.
        """
        words = commands.start(job.queue.name, job.receipt, member=job.queue.member)
        try:
            await self._ask(words)
        except Stale:
            job.settled = True
            return False
        return True

    async def next(self) -> AsyncJob | None:
        """Return the next delivery, or None if there was none within the socket's timeout.

        A job settles itself over another connection, for which a receipt is enough.
        """
        while not self._arrived:
            try:
                reply = await next_reply(self._connection, self._client.options.slice_s)
            except Exception as error:
                if is_refusal(error) and self._owed:
                    self._owed -= 1
                    continue
                if isinstance(error, BROKEN):
                    raise Disconnected(f"the subscription broke: {error}") from error
                raise
            if reply is None:
                return None
            if isinstance(reply, list):
                self._note(reply)
            else:
                self._owed -= 1
        return self._job(self._arrived.popleft())

    def _note(self, message: list[Any]) -> None:
        """Keep a delivery, or drop the one that is called back."""
        if text(message[0]) == "recall":
            kept = [each for each in self._arrived if each[3] != message[3]]
            self._arrived = deque(kept)
        else:
            self._arrived.append(message)

    def _job(self, reply: Any) -> AsyncJob | None:
        if not isinstance(reply, list) or len(reply) != 5:
            return None
        _, queue, id_, receipt, payload = reply
        task = Task(text(queue), text(id_), text_or_none(receipt), payload)
        member = self._members.get(text(queue))
        job = AsyncJob(AsyncQueue(self._client, task.queue, member=member), task)
        # A popped task has no lease to settle.
        job.settled = receipt is None
        return job

    async def _ask(self, words: Words) -> Any:
        try:
            self._owed += 1
            await send(self._connection, words.words)
            while True:
                try:
                    reply = await self._connection.read_response(disconnect_on_error=False)
                except Exception as error:
                    if not is_refusal(error):
                        raise
                    reply = error
                if isinstance(reply, list):
                    self._note(reply)
                    continue
                self._owed -= 1
                if not self._owed:
                    break
            if isinstance(reply, Exception):
                raise reply
            return reply
        except Exception as error:
            if is_refusal(error):
                raise refusal_from(error) from error
            if isinstance(error, BROKEN):
                raise Disconnected(f"the subscription broke: {error}") from error
            raise
