"""Makes kombu, and so Celery, know `pinpriq://` and `pinpriqs://` as soon as it is imported.

Kombu has no entry points for transports, but some for serialisers, which it loads when it is
imported. So this one registers the transports, by their names alone, and gives kombu the serialiser
`pinpriq`, which is JSON under another name. It is no part of the package `pinpriq`, so that a
program with another broker does not import that.
"""

from json import dumps, loads

from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES.setdefault("pinpriq", "pinpriq.kombu:Transport")
TRANSPORT_ALIASES.setdefault("pinpriqs", "pinpriq.kombu:SSLTransport")

#: What kombu registers: two functions, the type of the content, and its encoding.
SERIALISER = (dumps, loads, "application/x-pinpriq+json", "utf-8")
