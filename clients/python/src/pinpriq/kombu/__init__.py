"""A transport of kombu, so that Celery can use pinpriq as its broker.

Where this package is installed, kombu knows URLs that begin with `pinpriq://` or `pinpriqs://`, by
the entry point of `pinpriq_kombu`. Importing `pinpriq.celery` does the same. Needs the extra
`celery`.
"""

from .transport import SSLTransport, Transport

__all__ = ["SSLTransport", "Transport"]
