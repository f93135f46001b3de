"""Fan-out: topics, and the members that each have a lane in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import commands, parsing, tracing
from ..errors import NotFound
from ..replies import MemberShown
from ..requests.base import Name, Repeat, Request
from ..serialisers import Serialiser
from ..spans import Span, span_s
from ..values import text
from .heartbeat import AsyncHeartbeat
from .queue import AsyncQueue

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient

#: How long a member lives without a sign of life, in seconds, unless told otherwise.
LEASE_S = 60.0


class AsyncTopic:
    """A topic. It is a name that members share, and is neither created nor removed."""

    def __init__(
        self, client: AsyncClient, name: Name, *, serialiser: str | Serialiser | None = None
    ) -> None:
        self.client = client
        self.name = text(name)
        self.serialiser = client.serialiser_for(serialiser)

    async def publish(self, value: Any, **options: Unpack[commands.PublishOptions]) -> int:
        """Put one task into each lane. Returns how many lanes.

        From `deadline` on it is not delivered; `ttl` says the same in seconds from now. A
        publication has no unique key, so it is never sent again after a lost reply.
        """
        if tracing.is_on():
            url = self.client.link.url
            with tracing.Sending("publish", self.name, url, options.get("headers")) as sending:
                options["headers"] = sending.headers
                return await self.client.run(self._publication(value, **options))
        return await self.client.run(self._publication(value, **options))

    def _publication(self, value: Any, **options: Unpack[commands.PublishOptions]) -> Request[int]:
        words = commands.publish(self.name, self.serialiser.dump(value), **options)
        return words.request(parsing.number)

    async def members(self) -> list[MemberShown]:
        """Tell the members, in the order of their names."""
        words = commands.members(self.name)
        return await self.client.run(words.request(parsing.members, Repeat.SAFE))

    async def leave(self, member: Name) -> int:
        """End the lane of a member, with what is in it. Returns 1, or 0 if there was none."""
        return await self.client.run(commands.leave(self.name, member).request(parsing.number))

    def member(self, name: Name, *, lease: Span = LEASE_S) -> AsyncMember:
        """Return a member, which joins when its block begins or `join` is called."""
        return AsyncMember(self, name, lease=lease)


class AsyncMember:
    """A member of a topic. As a context manager it joins, gives signs of life, and leaves.

    `stay` keeps the lane when the block ends, so that nothing is missed until the member comes
    back within its lease. `lane` is its queue: take jobs from it.
    """

    def __init__(
        self, topic: AsyncTopic, name: Name, *, lease: Span = LEASE_S, stay: bool = False
    ) -> None:
        self.topic = topic
        self.name = name
        self.lease_s = span_s(lease)
        self.stay = stay
        self.lane = AsyncQueue(topic.client, topic.name, serialiser=topic.serialiser, member=name)
        self._heartbeat = AsyncHeartbeat(self.beat_or_join, self.lease_s / 3)

    async def join(self) -> int:
        """Get a lane. Joining again is harmless. Returns the incarnation of the member."""
        words = commands.join(self.topic.name, self.name, lease=self.lease_s)
        return await self.topic.client.run(words.request(parsing.number, Repeat.SAFE))

    async def beat(self) -> None:
        """Give a sign of life. Refused with `NotFound` if the member has ended."""
        await self.topic.client.beat(self.name, lease=self.lease_s)

    async def beat_or_join(self) -> None:
        """Give a sign of life, or join again. What was in an ended lane is gone."""
        try:
            await self.beat()
        except NotFound:
            await self.join()

    async def leave(self) -> int:
        """End the lane, with what is in it."""
        return await self.topic.leave(self.name)

    async def __aenter__(self) -> AsyncMember:
        await self.join()
        await self._heartbeat.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._heartbeat.stop()
        if not self.stay:
            await self.leave()
