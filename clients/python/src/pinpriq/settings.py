"""The settings of a queue or lane, to be sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .spans import Span, span_ms


@dataclass(frozen=True)
class QueueSettings:
    """Settings of a queue or lane. Those that are None stay as they are. Spans are seconds.

    `"none"` removes a setting. `rate` is a number of tasks and the span for them.
    """

    ids: Literal["sequence", "time64", "uuid", "given"] | None = None
    ttl: Span | Literal["none"] | None = None
    ttr: Span | Literal["none"] | None = None
    after_ack: Literal["delete", "keep", "zombie"] | None = None
    zombie: Span | None = None
    capacity: int | Literal["none"] | None = None
    attempts: int | Literal["none"] | None = None
    backoff: Span | Literal["none"] | None = None
    backoff_max: Span | None = None
    dead_letter: str | bytes | None = None
    on_expiry: Literal["delete", "deadletter"] | None = None
    limit: int | Literal["none"] | None = None
    rate: tuple[int, Span] | Literal["none"] | None = None
    capacity_bytes: int | Literal["none"] | None = None
    overflow: Literal["refuse", "evict"] | None = None
    release_fails: bool | None = None

    def words(self) -> list[str | bytes | int]:
        """Return the settings as the words of a request."""
        words: list[str | bytes | int] = []
        spans = (
            ("TTL", self.ttl),
            ("TTR", self.ttr),
            ("ZOMBIE", self.zombie),
            ("BACKOFF", self.backoff),
            ("BACKOFFMAX", self.backoff_max),
        )
        for name, span in spans:
            if span is not None:
                words += [name, span if isinstance(span, str) else span_ms(span)]
        plain = (
            ("IDS", self.ids),
            ("AFTERACK", self.after_ack),
            ("CAPACITY", self.capacity),
            ("ATTEMPTS", self.attempts),
            ("DEADLETTER", self.dead_letter),
            ("ONEXPIRY", self.on_expiry),
            ("LIMIT", self.limit),
            ("CAPACITYBYTES", self.capacity_bytes),
            ("OVERFLOW", self.overflow),
        )
        for name, value in plain:
            if value is not None:
                words += [name, value]
        if self.rate is not None:
            rate = self.rate
            words += [
                "RATE",
                rate if isinstance(rate, str) else f"{rate[0]}/{span_ms(rate[1])}",
            ]
        if self.release_fails is not None:
            words += ["RELEASEFAILS", "on" if self.release_fails else "off"]
        return words
