"""Requests as values: the words to send, and how to read the reply. Nothing here does I/O."""

from .base import NO_PRIORITY, OWN, Name, NoPriority, OwnKey, Priority, Receipt, Request, encoded

__all__ = [
    "NO_PRIORITY",
    "OWN",
    "Name",
    "NoPriority",
    "OwnKey",
    "Priority",
    "Receipt",
    "Request",
    "encoded",
]
