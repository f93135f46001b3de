"""Importing this makes Celery know broker URLs that begin with `pinpriq://` or `pinpriqs://`."""

import pinpriq_kombu  # noqa: F401
