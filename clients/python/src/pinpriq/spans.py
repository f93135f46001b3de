"""Lengths of time and moments, as the server writes them.

Users of this package give a span in seconds, as a number or a `timedelta`, and a moment as a
`datetime` or as Unix seconds. The server counts both in whole milliseconds.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)

#: A length of time: seconds, or a `timedelta`.
Span = float | timedelta

#: A moment: an aware `datetime`, or Unix seconds.
Moment = float | datetime


def span_ms(span: Span) -> int:
    """Return a span in whole milliseconds. Raises `ValueError` if it is negative or not a number.

    A span above zero is at least one millisecond, so that a short delay is never no delay.
    """
    seconds = span_s(span)
    if seconds < 0:
        raise ValueError(f"a span cannot be negative: {span!r}")
    return max(1, round(seconds * 1000)) if seconds > 0 else 0


def span_s(span: Span) -> float:
    """Return a span in seconds. Raises `ValueError` if it is infinite or not a number."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if not math.isfinite(seconds):
        raise ValueError(f"a span is a number of seconds, not {span!r}")
    return seconds


def moment_ms(moment: Moment) -> int:
    """Return a moment in Unix milliseconds. Raises `ValueError` for a `datetime` without zone.

    A part of a millisecond is left out, so that `datetime.max` stays within its year.
    """
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"this moment has no time zone: {moment!r}")
        return (moment - _EPOCH) // _MILLISECOND
    if not math.isfinite(moment):
        raise ValueError(f"a moment is a number of Unix seconds, not {moment!r}")
    return math.floor(round(moment * 1000, 3))


def moment_of(unix_ms: int | None) -> datetime | None:
    """Return the moment of Unix milliseconds in UTC, or None for None."""
    if unix_ms is None:
        return None
    return _EPOCH + timedelta(milliseconds=unix_ms)


def span_of(ms: int | None) -> float | None:
    """Return milliseconds in seconds, or None for None."""
    return None if ms is None else ms / 1000
