"""A transport of kombu, so that Celery can use pinpriq as its broker.

`import pinpriq.celery` makes kombu know URLs that begin with `pinpriq://` or `pinpriqs://`. Needs
the extra `celery`.
"""

from kombu.transport import TRANSPORT_ALIASES

from .transport import SSLTransport, Transport

__all__ = ["SSLTransport", "Transport", "register"]


def register() -> None:
    """Make kombu know the schemes of pinpriq. Doing so again is harmless."""
    TRANSPORT_ALIASES["pinpriq"] = "pinpriq.kombu:Transport"
    TRANSPORT_ALIASES["pinpriqs"] = "pinpriq.kombu:SSLTransport"
