"""Watches the connections of all channels of a transport, with an event loop or without."""

from __future__ import annotations

import selectors
import time
from queue import Empty
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .channel import Channel
    from .taker import Taker

#: How long to wait at most for a descriptor, in seconds, before takers are looked after again.
LOOK_S = 0.2


class Poller:
    """Starts takes, and has the replies delivered that have come."""

    def __init__(self) -> None:
        self._channels: list[Channel] = []
        # A new connection may have the descriptor of the one before, so the socket counts too.
        self._watched: dict[int, tuple[Channel, Taker, Any]] = {}
        self._selector: selectors.BaseSelector | None = selectors.DefaultSelector()
        self._loop: Any = None

    def add(self, channel: Channel) -> None:
        """Look after a channel from now on."""
        self._channels.append(channel)

    def discard(self, channel: Channel) -> None:
        """Look after a channel no longer."""
        if channel in self._channels:
            self._channels.remove(channel)
        for fd in [fd for fd, (of, _, _) in self._watched.items() if of is channel]:
            self._unwatch(fd)

    def use_loop(self, loop: Any) -> None:
        """Have an event loop of kombu watch the descriptors."""
        self._loop = loop
        for fd in self._watched:
            loop.add_reader(fd, self.on_readable, fd)
        loop.on_tick.add(self.look)

    def close(self) -> None:
        """Stop watching."""
        for fd in list(self._watched):
            self._unwatch(fd)
        if self._loop is not None:
            self._loop.on_tick.discard(self.look)
            self._loop = None
        if self._selector is not None:
            self._selector.close()
            self._selector = None

    def look(self) -> int:
        """Start the takes that channels are ready for.

        Delivers what came while a consumer was cancelled, and returns how many messages.
        """
        delivered = 0
        for channel in list(self._channels):
            delivered += channel.deliver([])
            for taker in channel.start_takes():
                self._watch(channel, taker)
        current = [taker.sock for channel in self._channels for taker in channel.takers]
        for fd in [fd for fd, (_, _, sock) in self._watched.items() if sock not in current]:
            self._unwatch(fd)
        return delivered

    def on_readable(self, fd: int) -> int:
        """Deliver what has come on a descriptor. Returns how many messages."""
        if fd not in self._watched:
            return 0
        channel, taker, sock = self._watched[fd]
        tasks = taker.read()
        if taker.sock is not sock:
            self._unwatch(fd)
        return channel.deliver(tasks)

    def get(self, _: Any, timeout: float | None = None) -> None:
        """Wait for messages and deliver them. Raises `Empty` if none came in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if self.look():
                return
            left = LOOK_S if until is None else max(0.0, min(LOOK_S, until - time.monotonic()))
            delivered = 0
            if self._selector is not None and self._selector.get_map():
                for key, _events in self._selector.select(left):
                    delivered += self.on_readable(key.fd)
            else:
                time.sleep(left)
            if delivered:
                return
            if until is not None and time.monotonic() >= until:
                raise Empty

    def _watch(self, channel: Channel, taker: Taker) -> None:
        sock = taker.sock
        if sock is None:
            return
        fd = sock.fileno()
        if self._watched.get(fd) == (channel, taker, sock):
            return
        if fd in self._watched:
            self._unwatch(fd)
        self._watched[fd] = (channel, taker, sock)
        if self._loop is not None:
            self._loop.add_reader(fd, self.on_readable, fd)
        elif self._selector is not None:
            self._selector.register(fd, selectors.EVENT_READ)

    def _unwatch(self, fd: int) -> None:
        del self._watched[fd]
        if self._loop is not None:
            self._loop.remove_reader(fd)
        if self._selector is not None and fd in self._selector.get_map():
            self._selector.unregister(fd)
