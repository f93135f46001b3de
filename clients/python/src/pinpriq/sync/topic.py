"""Fan-out: topics, and the members that each have a lane in them.

Made from `aio/topic.py` by `tools/make_sync.py`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import NotFound
from ..parsing import text
from ..replies import MemberShown
from ..requests import queues as about_queues
from ..requests.base import Name, Priority
from ..serialisers import Serialiser, serialiser_named
from ..spans import Moment, Span, span_s
from .heartbeat import Heartbeat
from .queue import Queue

if TYPE_CHECKING:
    from .client import Client

#: How long a member lives without a sign of life, in seconds, unless told otherwise.
LEASE_S = 60.0


class Topic:
    """A topic. It is a name that members share, and is neither created nor removed."""

    def __init__(
        self, client: Client, name: Name, *, serialiser: str | Serialiser | None = None
    ) -> None:
        self.client = client
        self.name = text(name)
        self.serialiser = client.serialiser if serialiser is None else serialiser_named(serialiser)

    def publish(
        self,
        value: Any,
        *,
        key: Name | None = None,
        priority: Priority | None = None,
        deadline: Moment | None = None,
        ttl: Span | None = None,
    ) -> int:
        """Put one task into each lane. Returns how many lanes.

        From `deadline` on it is not delivered; `ttl` says the same in seconds from now. A
        publication has no unique key, so it is never sent again after a lost reply.
        """
        return self.client.run(
            about_queues.publish(
                self.name,
                self.serialiser.dump(value),
                key=key,
                priority=priority,
                deadline=deadline,
                ttl=ttl,
            )
        )

    def members(self) -> list[MemberShown]:
        """Tell the members, in the order of their names."""
        return self.client.run(about_queues.members(self.name))

    def leave(self, member: Name) -> int:
        """End the lane of a member, with what is in it. Returns 1, or 0 if there was none."""
        return self.client.run(about_queues.leave(self.name, member))

    def member(self, name: Name, *, lease: Span = LEASE_S) -> Member:
        """Return a member, which joins when its block begins or `join` is called."""
        return Member(self, name, lease=lease)


class Member:
    """A member of a topic. As a context manager it joins, gives signs of life, and leaves.

    `stay` keeps the lane when the block ends, so that nothing is missed until the member comes
    back within its lease. `lane` is its queue: take jobs from it.
    """

    def __init__(
        self, topic: Topic, name: Name, *, lease: Span = LEASE_S, stay: bool = False
    ) -> None:
        self.topic = topic
        self.name = name
        self.lease_s = span_s(lease)
        self.stay = stay
        self.lane = Queue(topic.client, topic.name, serialiser=topic.serialiser, member=name)
        self._heartbeat = Heartbeat(self.beat_or_join, self.lease_s / 3)

    def join(self) -> int:
        """Get a lane. Joining again is harmless. Returns the incarnation of the member."""
        return self.topic.client.run(
            about_queues.join(self.topic.name, self.name, self.lease_s)
        )

    def beat(self) -> None:
        """Give a sign of life. Refused with `NotFound` if the member has ended."""
        self.topic.client.beat(self.name, lease=self.lease_s)

    def beat_or_join(self) -> None:
        """Give a sign of life, or join again. What was in an ended lane is gone."""
        try:
            self.beat()
        except NotFound:
            self.join()

    def leave(self) -> int:
        """End the lane, with what is in it."""
        return self.topic.leave(self.name)

    def __enter__(self) -> Member:
        self.join()
        self._heartbeat.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._heartbeat.stop()
        if not self.stay:
            self.leave()
