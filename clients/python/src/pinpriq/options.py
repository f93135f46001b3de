"""How a client reaches its server, and how it behaves when it does not."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import redis

from .spans import Span, span_s

#: The server, when neither the caller nor the environment variable says which.
DEFAULT_URL = "pinpriq://127.0.0.1:7251"
URL_VARIABLE = "PINPRIQ_URL"

_SCHEMES = {"pinpriq": "redis", "pinpriqs": "rediss", "redis": "redis", "rediss": "rediss"}
_PORTS = {"redis": 7251, "rediss": 7261}

#: The variables that the command line reads too: files of certificates, in the words of redis-py.
_FILES = (
    ("PINPRIQ_CA", "ssl_ca_certs", ("ssl_ca_certs", "ssl_ca_data", "ssl_ca_path")),
    ("PINPRIQ_CLIENT_CERT", "ssl_certfile", ("ssl_certfile",)),
    ("PINPRIQ_CLIENT_KEY", "ssl_keyfile", ("ssl_keyfile",)),
)

#: What this package decides by itself, so that callers cannot give it to redis-py.
_OWN = ("db", "path", "protocol", "decode_responses", "retry", "connection_class")

#: What a URL cannot say, since the client has an argument for it that more depends on.
_NOT_IN_URLS = (*_OWN, "host", "port", "socket_timeout", "max_connections")

#: From this version on a pool hands out connections without being told for which command.
POOL_NEEDS_NO_NAME = int(redis.__version__.split(".")[0]) >= 6


@dataclass(frozen=True)
class Options:
    """The options of a client. All spans are in seconds.

    `urls` are those of the servers, in the words of redis-py. The first that answers is used.
    """

    urls: tuple[str, ...]
    retry_for_s: float
    window_s: float
    socket_timeout_s: float
    redis: dict[str, Any]

    @property
    def slice_s(self) -> float:
        """How long one request may block: less than the socket waits for a reply."""
        return self.socket_timeout_s * 0.6

    @property
    def places(self) -> str:
        """Where the servers are, without passwords."""
        return ", ".join(urlsplit(url).netloc.rpartition("@")[2] for url in self.urls)


def redis_urls(url: str) -> tuple[str, ...]:
    """Return the URLs by which redis-py knows the same servers.

    Raises `ValueError` for a scheme that is not pinpriq, pinpriqs (TLS), redis or rediss, and for
    what a server of pinpriq has not, such as a numbered database.
    """
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise ValueError(f"the URL must begin with pinpriq:// or pinpriqs://: {_shown(url)!r}")
    if parts.path not in ("", "/") or parts.fragment:
        raise ValueError(
            f"the URL has nothing after the port, since all queues of a server belong together: "
            f"{_shown(url)!r}. Let the names of queues begin with a prefix instead"
        )
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name in _NOT_IN_URLS:
            raise ValueError(f"the URL cannot say {name!r}")
    sign_in, at, hosts = parts.netloc.rpartition("@")
    urls = []
    for host in (hosts or "127.0.0.1").split(","):
        place = host.strip()
        if not place:
            raise ValueError(f"an address is missing in the URL {_shown(url)!r}")
        # This raises for a port that is none.
        if urlsplit(f"//{place}").port is None:
            place = f"{place.rstrip(':')}:{_PORTS[scheme]}"
        urls.append(urlunsplit((scheme, f"{sign_in}{at}{place}", "", parts.query, "")))
    return tuple(urls)


def _shown(url: str) -> str:
    """Return a URL without its password."""
    return re.sub(r"//[^/@]*@", "//", url)


def own_name(kind: str) -> str:
    """Return a name for the connections of this process, which `CLIENT LIST` and leases show."""
    return re.sub(r"[^!-~]", "_", f"{kind}:{socket.gethostname()}:{os.getpid()}")


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
    if refused := sorted(set(_OWN) & set(redis_options)):
        raise ValueError(f"this client cannot be given {', '.join(refused)}")
    options = Options(
        redis_urls(url), span_s(retry_for), span_s(window), span_s(socket_timeout), {}
    )
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
    if options.urls[0].startswith("rediss:"):
        given = {*options.redis, *parse_qs(urlsplit(options.urls[0]).query)}
        for variable, name, instead in _FILES:
            path = os.environ.get(variable)
            if path and not given.intersection(instead):
                options.redis[name] = path
    return options


def check_pool(pool: Any) -> None:
    """Raise `ValueError` for an option that redis-py does not know, before anything is sent."""
    try:
        pool.connection_class(**pool.connection_kwargs)
    except TypeError as error:
        raise ValueError(f"an option of the client makes no sense: {error}") from error
