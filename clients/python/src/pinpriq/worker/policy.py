"""How often a job may fail and when it comes back, where its queue does not say so.

The queue counts failures, waits and buries by itself. This decides only what is sent to it. The
figures are those of `pinpriq take --exec`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ..replies import State
from ..settings import QueueShown
from ..task import Task

#: How often a job may fail where its queue does not say so.
FAILURES_MAX = 5

#: How long it waits after its first failure, in seconds. The time doubles with each further one.
BACKOFF_S = 1.0

#: How long it waits at most, in seconds.
DELAY_MAX_S = 86_400.0


@dataclass(frozen=True)
class Policy:
    """What a put or its queue says about failures. None means that neither says anything."""

    attempts: int | None = None
    backoff_s: float | None = None
    dead_letter: str | None = None

    @classmethod
    def of(cls, shown: QueueShown | None, task: Task) -> Policy:
        """Return that of a task in a queue with these settings, if it shows any."""
        attempts, backoff_s = (shown.attempts, shown.backoff) if shown else (None, None)
        if task.attempts_max is not None:
            attempts = sys.maxsize if task.attempts_max == "none" else task.attempts_max
        if task.backoff is not None:
            backoff_s = 0.0 if task.backoff == "none" else task.backoff
        return cls(attempts, backoff_s, shown.dead_letter if shown else None)

    def gives_up(self, failures: int) -> bool:
        """Tell whether the worker has to give a job up that has failed so often."""
        return self.attempts is None and failures >= FAILURES_MAX

    def delay_s(self, failures: int) -> float | None:
        """Return for how long a job waits after so many failures, or None if the queue says it."""
        if self.backoff_s is not None:
            return None
        return min(DELAY_MAX_S, BACKOFF_S * 2.0 ** min(failures - 1, 64))

    def next_step(self, state: State | None, failures: int, delay_s: float | None) -> str:
        """Say what comes next for a job that has failed so often and is in this state now."""
        if state is State.BURIED:
            return "buried"
        if state is State.GONE:
            exhausted = self.attempts is not None and failures >= self.attempts
            if exhausted and self.dead_letter is not None:
                return f"moved to {self.dead_letter}, as a dead letter"
            return "its time to live is over, or it was cancelled"
        if state is State.WAITING and delay_s is None:
            return "comes back after the back-off of its queue"
        if state is None:
            return "its lease had ended, so it comes back by itself"
        return f"comes back in {delay_s or 0:g} s"
