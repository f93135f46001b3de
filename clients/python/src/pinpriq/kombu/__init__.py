"""A transport of kombu, so that Celery can use pinpriq as its broker.

Where this package is installed, kombu knows URLs that begin with `pinpriq://` or `pinpriqs://`, by
the entry point of `pinpriq_kombu`. Importing `pinpriq.celery` does the same. Needs the extra
`celery`.
"""

from kombu.transport import TRANSPORT_ALIASES

from .transport import SSLTransport, Transport

__all__ = ["SSLTransport", "Transport", "register"]


def register() -> None:
    """Make kombu know the schemes of pinpriq. Doing so again is harmless."""
    TRANSPORT_ALIASES["pinpriq"] = "pinpriq.kombu:Transport"
    TRANSPORT_ALIASES["pinpriqs"] = "pinpriq.kombu:SSLTransport"
