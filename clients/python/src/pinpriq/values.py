"""Names and maps, as redis-py gives them for RESP2."""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    """Return a name or an id. Bytes that are not UTF-8 survive as surrogates."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)


def text_or_none(value: Any) -> str | None:
    """Return a name, or None for null."""
    return None if value is None else text(value)


def texts(flat: Any) -> dict[str, str]:
    """Return a map of texts."""
    return {key: text(value) for key, value in mapping(flat).items()}


def mapping(flat: Any) -> dict[str, Any]:
    """Return a map, which RESP2 sends as keys and values in turn."""
    if isinstance(flat, dict):
        return {text(key): value for key, value in flat.items()}
    return {text(flat[index]): flat[index + 1] for index in range(0, len(flat), 2)}
