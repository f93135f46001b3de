"""What all requests are made of."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar

from ..replies import State
from ..spans import Moment, Span, moment_ms, span_ms

T = TypeVar("T")

#: The name of a queue, topic, member or schedule, or a key or id: text or any bytes.
Name = str | bytes

#: The text that proves a lease.
Receipt = str | bytes

#: A task to acknowledge with a take: its queue, its receipt, and its result if there is one.
Done = tuple[Name, Receipt] | tuple[Name, Receipt, bytes | None]

#: One word of a request.
Word = bytes


class _Sentinel(Enum):
    OWN = "OWN"
    NO_PRIORITY = "NO_PRIORITY"


#: The type of `OWN`.
OwnKey = Literal[_Sentinel.OWN]

#: The type of `NO_PRIORITY`.
NoPriority = Literal[_Sentinel.NO_PRIORITY]

#: Says that a put has a unique key that no other put has, so that it is safe to send again.
OWN: Final = _Sentinel.OWN

#: Says that a task has no priority: it is never selected and leaves only with its group.
NO_PRIORITY: Final = _Sentinel.NO_PRIORITY

#: How urgent a task is: a lower number is more urgent.
Priority = int | NoPriority


#: The most bytes of a reason.
REASON_BYTES_MAX = 1024


class Repeat(Enum):
    """Whether a request may be sent again when its reply was lost."""

    #: It must not: it could be carried out twice.
    NEVER = "never"
    #: It may: the result is the same.
    SAFE = "safe"
    #: It may, and a refusal as `STALE` then means that the first one was carried out.
    STALE_IS_DONE = "stale is done"


@dataclass(frozen=True)
class Request(Generic[T]):
    """The words of a request, how to read its reply, and whether it may be sent again."""

    words: tuple[Word, ...]
    parse: Callable[[Any], T]
    repeat: Repeat = Repeat.NEVER
    #: What to do with the result if the caller has stopped waiting: steps, each of which is a
    #: request, and others to try in its place if that is refused.
    undo: Callable[[T], Sequence[Sequence[Request[Any]]]] | None = None

    def with_words(self, *more: Word) -> Request[T]:
        """Return the same request with further words at its end."""
        return replace(self, words=self.words + more)


def encoded(value: Name | int) -> bytes:
    """Return the bytes of a name or a number."""
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogateescape")


def whole(priority: Any) -> int:
    """Return a priority as a number. Raises `ValueError` if it is not a whole one."""
    try:
        return operator.index(priority)
    except TypeError:
        raise ValueError(f"a priority is a whole number, not {priority!r}") from None


def several(names: Name | Sequence[Name]) -> Sequence[Name]:
    """Return names. A single one, which is a sequence too, counts as one."""
    return [names] if isinstance(names, str | bytes) else names


class Words:
    """Collects the words of a request. Options that are None are left out."""

    def __init__(self, *first: Name | int) -> None:
        self.words = [encoded(word) for word in first]

    def __iter__(self) -> Iterator[Word]:
        return iter(self.words)

    def add(self, *words: Name | int) -> Words:
        """Add words as they are."""
        self.words.extend(encoded(word) for word in words)
        return self

    def option(self, name: str, value: Name | int | None) -> Words:
        """Add an option with its value."""
        if value is not None:
            self.add(name, value)
        return self

    def maybe(self, value: Name | None) -> Words:
        """Add a word that can be left out."""
        return self if value is None else self.add(value)

    def span(self, name: str, value: Span | str | None) -> Words:
        """Add an option whose value is a span, or `"none"`."""
        if value is not None:
            self.add(name, value if isinstance(value, str) else span_ms(value))
        return self

    def wait(self, name: str, value: Span | None) -> Words:
        """Add how long to wait, where infinity is without end."""
        return self.add(name, -1) if value == math.inf else self.span(name, value)

    def moment(self, name: str, value: Moment | None) -> Words:
        """Add an option whose value is a moment."""
        return self if value is None else self.add(name, moment_ms(value))

    def state(self, name: str, value: State | None) -> Words:
        """Add an option whose value is a state."""
        return self if value is None else self.add(name, State(value).value)

    def reason(self, name: str, value: str | None) -> Words:
        """Add a reason, cut between two letters if it is too long."""
        if value is None:
            return self
        cut = value.encode("utf-8", "replace")[:REASON_BYTES_MAX].decode("utf-8", "ignore")
        return self.add(name, cut)

    def done(self, name: str, values: Iterable[Done]) -> Words:
        """Add an option once for each task, with its result if there is one."""
        for each in values:
            self.add(name, each[0], each[1]).option("RESULT", each[2] if len(each) == 3 else None)
        return self

    def two(self, name: str, values: tuple[Name | int, Name | int] | None) -> Words:
        """Add an option with two values."""
        return self if values is None else self.add(name, *values)

    def headers(self, name: str, values: Mapping[str, Name] | None) -> Words:
        """Add an option whose value is a number and so many names with their values.

        None at all remove those of a task in `UPDATE`, and are left out elsewhere.
        """
        if values or (values is not None and self.words[0] == b"UPDATE"):
            self.add(name, len(values))
            for pair in values.items():
                self.add(*pair)
        return self

    def counted(self, name: str, values: Sequence[Name] | None) -> Words:
        """Add an option whose value is a number and so many names. None at all are left out."""
        names = several(values or ())
        return self.add(name, len(names), *names) if names else self

    def switch(self, name: str, value: bool) -> Words:
        """Add an option that has no value."""
        if value:
            self.add(name)
        return self

    def on_off(self, name: str, value: bool | None) -> Words:
        """Add an option whose value is `on` or `off`."""
        return self if value is None else self.add(name, "on" if value else "off")

    def rate(self, name: str, value: tuple[int, Span] | str | None) -> Words:
        """Add an option whose value is a number of tasks and the span for them, or `"none"`."""
        if value is None or isinstance(value, str):
            return self.option(name, value)
        return self.add(name, f"{value[0]}/{span_ms(value[1])}")

    def priority(self, name: str, value: Priority | None) -> Words:
        """Add a priority. Raises `ValueError` if it is not a whole number."""
        if value is not None:
            self.add(name, "NONE" if value is NO_PRIORITY else whole(value))
        return self

    def names(self, names: Sequence[Name]) -> Words:
        """Add one queue, or several of them."""
        if len(names) == 1:
            return self.add(names[0])
        return self.add("QUEUES", len(names), *names)

    def any_names(self, names: Sequence[Name]) -> Words:
        """Add queues, or none."""
        return self.names(names) if names else self

    def holder(self, receipt: Receipt | int | None, id_: Name | None) -> Words:
        """Add the receipt of a lease, or a number of tasks, or the id of one's own task."""
        if (receipt is None) == (id_ is None):
            raise ValueError("give either the receipt or the id")
        return self.option("ID", id_) if receipt is None else self.add(receipt)

    def holders(self, receipts: Sequence[Receipt], id_: Name | None) -> Words:
        """Add receipts, or the id of one's own task."""
        if bool(receipts) == (id_ is not None):
            raise ValueError("give either receipts or the id")
        return self.add(*receipts).option("ID", id_)

    def options(
        self, given: Mapping[str, Any], of: type, table: Mapping[str, tuple[str, str]]
    ) -> Words:
        """Add options by their names. Raises `TypeError` for one that the command has not."""
        for name, value in given.items():
            if name not in of.__annotations__:
                raise TypeError(f"{of.__name__} has no {name!r}")
            word, method = table[name]
            getattr(self, method)(word, value)
        return self

    def request(self, parse: Callable[[Any], T], repeat: Repeat = Repeat.NEVER) -> Request[T]:
        """Return the request of these words."""
        return Request(tuple(self.words), parse, repeat)
