"""The transport: what all channels of one connection share."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import redis
from kombu.transport import virtual

from .. import parsing
from ..errors import Denied, Disconnected, PinpriqError, Refused, StoreFailed
from ..options import own_name
from ..requests.base import Words
from ..sync.client import Client
from . import tasks
from .bindings import Bindings
from .channel import Channel
from .keeper import Keeper
from .poller import Poller

log = logging.getLogger("pinpriq.kombu")

tasks.connect()

#: How long a lease lasts, in seconds, unless `lease_seconds` of the transport options says so.
LEASE_S = 60.0

#: Options of a transport that go to the client.
CLIENT_OPTIONS = ("retry_for", "window", "socket_timeout", "max_connections", "client_name")

#: Options that kombu itself uses, with every transport.
KOMBU_OPTIONS = (
    *("max_retries", "interval_start", "interval_step", "interval_max"),
    *("connect_retries_timeout", "errback", "callback", "polling_interval"),
)


class Transport(virtual.Transport):
    """Lets kombu use pinpriq. Its options are `broker_transport_options` of Celery.

    | option | meaning | default |
    |---|---|---|
    | `lease_seconds` | how long a lease lasts, renewed at a third of that | 60 |
    | `confirm_leases` | deliver a message only when its lease is on disk | True |
    | `lowest_priority_first` | priority 0 is the most urgent, as on Redis | False |
    | `queue_prefix` | what the names of queues on the server begin with | nothing |

    Those of `Client` are `retry_for`, `window`, `socket_timeout`, `max_connections`, `client_name`.
    Other options, and a path in the URL, are refused: they would make no difference.
    """

    Channel = Channel
    default_port = 7251
    driver_type = "pinpriq"
    driver_name = "pinpriq"
    #: Takes block on the server, so no sleep is needed between them.
    polling_interval = None
    #: Whether connections are encrypted.
    encrypted = False

    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )
    connection_errors = (
        *virtual.Transport.connection_errors,
        Disconnected,
        Denied,
        redis.exceptions.ConnectionError,
        redis.exceptions.TimeoutError,
    )
    recoverable_connection_errors = (
        Disconnected,
        StoreFailed,
        redis.exceptions.ConnectionError,
        redis.exceptions.TimeoutError,
        OSError,
    )
    channel_errors = (*virtual.Transport.channel_errors, Refused)
    recoverable_channel_errors = ()

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.cycle = Poller()
        options = client.transport_options
        known = {
            "lease_seconds",
            *CLIENT_OPTIONS,
            *KOMBU_OPTIONS,
            *self.Channel.from_transport_options,
        }
        if unknown := sorted(set(options) - known):
            raise ValueError(f"pinpriq has no transport options {', '.join(unknown)}")
        if client.virtual_host not in (None, "", "/"):
            raise ValueError(
                f"the URL of pinpriq has no path such as {client.virtual_host!r}, since all queues "
                "of a server belong together: set queue_prefix in the transport options instead"
            )
        self.ttr_s = float(options.get("lease_seconds", LEASE_S))
        self.pinpriq = self._new_client(client)
        self.keeper = Keeper(self.pinpriq, self.ttr_s)
        self.bindings = Bindings(self.pinpriq, options.get("queue_prefix", ""))

    def _new_client(self, connection: Any) -> Client:
        options = connection.transport_options
        chosen = {name: options[name] for name in CLIENT_OPTIONS if name in options}
        chosen.setdefault("client_name", own_name("kombu"))
        encrypted = self.encrypted or bool(connection.ssl)
        if isinstance(connection.ssl, dict):
            chosen.update(_ssl_options(connection.ssl))
        host = connection.hostname or "127.0.0.1"
        if ":" in host:
            host = f"[{host}]"
        port = connection.port or self.default_port
        sign_in = ""
        if connection.userid or connection.password:
            sign_in = (
                f"{quote(connection.userid or '', '')}:{quote(connection.password or '', '')}@"
            )
        scheme = "pinpriqs" if encrypted else "pinpriq"
        return Client(f"{scheme}://{sign_in}{host}:{port}", **chosen)

    def establish_connection(self) -> Any:
        """Connect. Raises one of `connection_errors` if there is no server."""
        # Kombu itself tries again, and says so.
        replies = self.pinpriq.link.run_all([Words("PING").request(parsing.nothing)])
        if isinstance(replies[0], Exception):
            raise replies[0]
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Close all channels, and settle what is left."""
        super().close_connection(connection)
        self.keeper.close()
        self.pinpriq.close()

    def verify_connection(self, connection: Any) -> bool:
        """Tell whether the server answers."""
        try:
            self.pinpriq.ping()
        except PinpriqError:
            return False
        return True

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Have the event loop of a Celery worker deliver messages."""
        self.cycle.use_loop(loop)

    def on_readable(self, fileno: int) -> None:
        """Deliver what has come on a descriptor."""
        self.cycle.on_readable(fileno)

    def driver_version(self) -> str:
        """Return the version of this package."""
        from .. import __version__

        return __version__

    def quietly(self, function: Callable[[], None]) -> None:
        """Do something that need not work, because what it removes ends by itself."""
        try:
            function()
        except PinpriqError as error:
            log.debug("left to end by itself: %s", error)


class SSLTransport(Transport):
    """The same over TLS."""

    default_port = 7261
    encrypted = True


def _ssl_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of redis-py for those of `broker_use_ssl`."""
    options = {}
    for name, value in given.items():
        known = name if name.startswith("ssl_") else f"ssl_{name}"
        if isinstance(value, ssl.VerifyMode):
            value = {ssl.CERT_NONE: "none", ssl.CERT_OPTIONAL: "optional"}.get(value, "required")
        options[known] = value
    return options
