"""How values become payloads, and payloads values."""

from __future__ import annotations

import json
from typing import Any, Protocol, runtime_checkable

from .errors import SerialisationError


@runtime_checkable
class Serialiser(Protocol):
    """Turns values into payloads and back. Raises `SerialisationError` if it cannot."""

    def dump(self, value: Any) -> bytes:
        """Return the payload of a value."""
        ...

    def load(self, payload: bytes) -> Any:
        """Return the value of a payload."""
        ...


class Json:
    """JSON in UTF-8, without spaces."""

    def dump(self, value: Any) -> bytes:
        """Return the payload of a value."""
        try:
            # NaN and Infinity, which Python would write, are not JSON: others cannot read them.
            return json.dumps(
                value, separators=(",", ":"), ensure_ascii=False, allow_nan=False
            ).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise SerialisationError(f"JSON cannot hold this value: {error}") from error

    def load(self, payload: bytes) -> Any:
        """Return the value of a payload."""
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise SerialisationError(f"the payload is not JSON: {error}") from error


class MsgPack:
    """MessagePack. Needs the extra `msgpack`."""

    def __init__(self) -> None:
        try:
            import msgpack
        except ImportError as error:
            raise ImportError("install pinpriq[msgpack] for this serialiser") from error
        self._msgpack = msgpack

    def dump(self, value: Any) -> bytes:
        """Return the payload of a value."""
        try:
            packed: bytes = self._msgpack.packb(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise SerialisationError(f"MessagePack cannot hold this value: {error}") from error
        return packed

    def load(self, payload: bytes) -> Any:
        """Return the value of a payload."""
        try:
            return self._msgpack.unpackb(payload)
        except Exception as error:
            raise SerialisationError(f"the payload is not MessagePack: {error}") from error


class Raw:
    """Bytes as they are. A text is written in UTF-8; a payload always comes back as bytes."""

    def dump(self, value: Any) -> bytes:
        """Return the payload of a value."""
        if isinstance(value, str):
            try:
                return value.encode()
            except UnicodeEncodeError as error:
                raise SerialisationError(f"this text is not Unicode: {error}") from error
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise SerialisationError(f"this serialiser takes bytes or text, not {type(value).__name__}")

    def load(self, payload: bytes) -> bytes:
        """Return the payload itself."""
        return payload


def serialiser_named(which: str | Serialiser) -> Serialiser:
    """Return the serialiser `json`, `msgpack` or `bytes`, or the given one itself."""
    if not isinstance(which, str):
        return which
    if which == "json":
        return Json()
    if which == "msgpack":
        return MsgPack()
    if which == "bytes":
        return Raw()
    raise ValueError(f"there is no serialiser {which!r}: use json, msgpack or bytes")
