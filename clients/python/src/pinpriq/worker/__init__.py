"""Workers: functions that are run for the tasks of queues and topics."""

from .events import Bury, Event, GiveBack, Retry
from .worker import Worker

__all__ = ["Bury", "Event", "GiveBack", "Retry", "Worker"]
