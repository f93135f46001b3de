"""Lengths of time and moments, as the server writes them.

Users of this package give a span in seconds, as a number or a `timedelta`, and a moment as a
`datetime` or as Unix seconds. The server counts both in whole milliseconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

#: A length of time: seconds, or a `timedelta`.
Span = float | timedelta

#: A moment: an aware `datetime`, or Unix seconds.
Moment = float | datetime


def span_ms(span: Span) -> int:
    """Return a span in whole milliseconds. Raises `ValueError` if it is negative.

    A span above zero is at least one millisecond, so that a short delay is never no delay.
    """
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 0:
        raise ValueError(f"a span cannot be negative: {span!r}")
    return max(1, round(seconds * 1000)) if seconds > 0 else 0


def span_s(span: Span) -> float:
    """Return a span in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def moment_ms(moment: Moment) -> int:
    """Return a moment in Unix milliseconds. Raises `ValueError` for a `datetime` without zone."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"this moment has no time zone: {moment!r}")
        return round(moment.timestamp() * 1000)
    return round(moment * 1000)


def moment_of(unix_ms: int | None) -> datetime | None:
    """Return the moment of Unix milliseconds in UTC, or None for None."""
    if unix_ms is None:
        return None
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc)


def span_of(ms: int | None) -> float | None:
    """Return milliseconds in seconds, or None for None."""
    return None if ms is None else ms / 1000
