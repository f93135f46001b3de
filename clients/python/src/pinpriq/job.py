"""What the jobs of both clients have in common."""

from __future__ import annotations


def reason_of(error: BaseException) -> str:
    """Return why an exception failed a job: its type and its message."""
    message = str(error)
    kind = type(error).__qualname__
    return f"{kind}: {message}" if message else kind
