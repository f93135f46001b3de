"""Transactions: commands that are carried out at one moment, all or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import commands, parsing, tracing
from ..errors import PinpriqError
from ..requests import tasks as about_tasks
from ..requests.base import OWN, Name, OwnKey, Request
from ..serialisers import Serialiser
from ..spans import Span
from ..values import text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient
    from .job import AsyncJob


class AsyncTransaction:
    """Collects commands. Leaving its block carries them out; an exception forgets them.

    `results` then has what each command returned. A refused command refuses all: `Aborted` tells
    its position and its refusal. It is never sent again, so after `Disconnected` it is unknown
    whether it was carried out.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._requests: list[Request[Any]] = []
        self._jobs: list[AsyncJob] = []
        #: What the commands returned, in their order.
        self.results: list[Any] = []

    def put(
        self,
        queue: Name,
        value: Any,
        *,
        unique: Name | OwnKey | None = OWN,
        serialiser: str | Serialiser | None = None,
        **options: Unpack[commands.PutOptions],
    ) -> None:
        """Put a task, with the options of `put` of a queue."""
        if tracing.is_on():
            options["headers"] = self._traced("put", queue, options.get("headers"))
        self.add(
            about_tasks.put(
                queue,
                self._client.serialiser_for(serialiser).dump(value),
                unique=unique,
                own_window=self._client.options.window_s,
                **options,
            )
        )

    def publish(
        self,
        topic: Name,
        value: Any,
        *,
        serialiser: str | Serialiser | None = None,
        **options: Unpack[commands.PublishOptions],
    ) -> None:
        """Put one task into each lane of a topic."""
        if tracing.is_on():
            options["headers"] = self._traced("publish", topic, options.get("headers"))
        payload = self._client.serialiser_for(serialiser).dump(value)
        words = commands.publish(topic, payload, **options)
        self.add(words.request(parsing.number))

    def _traced(
        self, operation: str, destination: Name, headers: Mapping[str, Name] | None
    ) -> Mapping[str, Name] | None:
        """Return headers with the trace. Its span is at the moment of the call, not the sending."""
        url = self._client.link.url
        sending = tracing.Sending(operation, text(destination), url, headers, "create")
        sending.end()
        return sending.headers

    def ack(self, job: AsyncJob, result: Any = None) -> None:
        """Acknowledge a job. A `result` is what came of the work."""
        dumped = None if result is None else job.queue.serialiser.dump(result)
        self.add(about_tasks.ack(job.queue.name, [job.receipt], result=dumped))
        self._jobs.append(job)

    def release(self, job: AsyncJob, *, delay: Span | None = None) -> None:
        """Give a job back."""
        words = commands.release(job.queue.name, job.receipt, delay=delay)
        self.add(words.request(parsing.state))
        self._jobs.append(job)

    def fail(self, job: AsyncJob, reason: str | None = None, *, delay: Span | None = None) -> None:
        """Fail a job."""
        words = commands.fail(job.queue.name, job.receipt, reason=reason, delay=delay)
        self.add(words.request(parsing.state))
        self._jobs.append(job)

    def kill(self, queue: Name, *ids: Name) -> None:
        """Remove tasks."""
        self.add(commands.kill(queue, *ids).request(parsing.number))

    def cancel(self, queue: Name, id: Name, **options: Unpack[commands.CancelOptions]) -> None:
        """End a task, or ask its holder to stop."""
        self.add(commands.cancel(queue, id, **options).request(parsing.state))

    def open_batch(self, batch: Name, *, ttl: Span | None = None) -> None:
        """Make a batch before its first task. It has `ttl` seconds to be done."""
        self.add(commands.batch_open(batch, ttl=ttl).request(parsing.nothing))

    def close_batch(self, batch: Name) -> None:
        """Say that a batch has all its tasks. The result is how many are pending."""
        self.add(commands.batch_close(batch).request(parsing.number))

    def drop_batch(self, batch: Name) -> None:
        """Forget a batch that is done. The result is whether it was there."""
        self.add(commands.batch_drop(batch).request(parsing.flag))

    def add(self, request: Request[Any]) -> None:
        """Add any request that a transaction may have."""
        if self.results:
            raise PinpriqError("this transaction is over")
        self._requests.append(request)

    async def execute(self) -> list[Any]:
        """Carry out the commands now. Leaving the block does it too."""
        if self._requests:
            requests, self._requests = self._requests, []
            self.results = await self._client.link.run_transaction(requests)
            for job in self._jobs:
                job.settled = True
        return self.results

    async def __aenter__(self) -> AsyncTransaction:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            await self.execute()
