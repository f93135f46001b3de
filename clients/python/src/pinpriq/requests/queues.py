"""Requests that belong to no method alone, and those about the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .. import commands, parsing, values
from ..replies import Page
from ..settings import QueueSettings
from ..spans import Span
from .base import Name, Repeat, Request, Words

#: Which side of a queue is paused: puts, takes, or both if it is None.
Side = Literal["in", "out"]


def set_(queue: Name, settings: QueueSettings, member: Name | None) -> Request[None]:
    """Change settings of a queue."""
    words = commands.queue_set(queue, settings, member=member)
    return words.request(parsing.nothing, Repeat.SAFE)


def join(topic: Name, member: Name, lease: Span | None) -> Request[int]:
    """Give a member a lane in a topic."""
    return commands.join(topic, member, lease=lease).request(parsing.number, Repeat.SAFE)


def page_of_names(words: Words) -> Request[Page[str]]:
    """Tell names, page by page."""
    return words.request(parsing.page_of_names, Repeat.SAFE)


def ping() -> Request[None]:
    """Ask for a sign of life of the server."""
    return Words("PING").request(parsing.nothing, Repeat.SAFE)


def info(sections: Sequence[str]) -> Request[dict[str, str]]:
    """Tell about the server."""
    return Words("INFO", *sections).request(parsing.info, Repeat.SAFE)


def whoami() -> Request[str | None]:
    """Tell the user of the connection."""
    return Words("ACL", "WHOAMI").request(values.text_or_none, Repeat.SAFE)


def client_list() -> Request[str]:
    """Tell who is connected."""
    return Words("CLIENT", "LIST").request(values.text, Repeat.SAFE)


def client_kill(numbers: Sequence[int]) -> Request[int]:
    """End connections by number."""
    words = Words("CLIENT", "KILL")
    for each in numbers:
        words.option("ID", each)
    return words.request(parsing.number)
