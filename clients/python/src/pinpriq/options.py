"""How a client reaches its server, and how it behaves when it does not."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis

from .spans import Span, span_s

#: The server, when neither the caller nor the environment variable says which.
DEFAULT_URL = "pinpriq://127.0.0.1:7251"
URL_VARIABLE = "PINPRIQ_URL"

_SCHEMES = {"pinpriq": "redis", "pinpriqs": "rediss", "redis": "redis", "rediss": "rediss"}
_PORTS = {"redis": 7251, "rediss": 7261}

#: From this version on a pool hands out connections without being told for which command.
POOL_NEEDS_NO_NAME = int(redis.__version__.split(".")[0]) >= 6


@dataclass(frozen=True)
class Options:
    """The options of a client. All spans are in seconds."""

    url: str
    retry_for_s: float
    window_s: float
    socket_timeout_s: float
    redis: dict[str, Any]

    @property
    def slice_s(self) -> float:
        """How long one request may block: less than the socket waits for a reply."""
        return self.socket_timeout_s * 0.6


def redis_url(url: str) -> str:
    """Return the URL by which redis-py knows the same server.

    Raises `ValueError` for a scheme that is not pinpriq, pinpriqs (TLS), redis or rediss.
    """
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise ValueError(f"the URL must begin with pinpriq:// or pinpriqs://: {url!r}")
    netloc = parts.netloc or "127.0.0.1"
    if parts.port is None:
        netloc = f"{netloc.rstrip(':')}:{_PORTS[scheme]}"
    # There are no numbered databases, so redis-py must not select one.
    return urlunsplit((scheme, netloc, "", parts.query, ""))


def options_of(
    url: str | None,
    *,
    retry_for: Span,
    window: Span,
    socket_timeout: Span,
    host: str | None,
    port: int | None,
    username: str | None,
    password: str | None,
    client_name: str | None,
    redis_options: dict[str, Any],
) -> Options:
    """Check and collect the options of a client."""
    if url is not None and (host is not None or port is not None):
        raise ValueError("give either a URL, or a host and a port")
    if url is None:
        url = os.environ.get(URL_VARIABLE) or DEFAULT_URL
        if host is not None or port is not None:
            name = host or "127.0.0.1"
            url = f"pinpriq://[{name}]" if ":" in name else f"pinpriq://{name}"
            url = f"{url}:{port or 7251}"
    options = Options(redis_url(url), span_s(retry_for), span_s(window), span_s(socket_timeout), {})
    if options.window_s <= options.retry_for_s + options.socket_timeout_s:
        raise ValueError(
            "the window must be longer than retry_for and socket_timeout together, "
            "or a put that is sent again could make a second task"
        )
    options.redis.update(redis_options)
    for name, value in (
        ("username", username),
        ("password", password),
        ("client_name", client_name),
    ):
        if value is not None:
            options.redis[name] = value
    options.redis.setdefault("socket_timeout", options.socket_timeout_s)
    options.redis.setdefault("socket_connect_timeout", min(5.0, options.socket_timeout_s))
    # RESP2 needs no greeting, and redis-py decodes nothing in it by itself.
    options.redis["protocol"] = 2
    options.redis["decode_responses"] = False
    return options
