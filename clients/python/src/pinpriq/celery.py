"""Importing this makes Celery know broker URLs that begin with `pinpriq://` or `pinpriqs://`."""

from .kombu import register

register()
