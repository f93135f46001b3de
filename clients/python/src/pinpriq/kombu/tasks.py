"""What the transport does for Celery tasks: spans, where the application traces, and cancels.

The transport puts the trace into the headers of a task of the server, and tells the message that it
makes of a delivery where that came from. Celery carries this to the process in which the task runs,
whose signals begin and end the span. Nothing is connected to them where the application does not
trace, and messages that are no Celery tasks have no spans. Where OpenTelemetry's instrumentation of
Celery is active, its spans are the only ones.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

from .. import tracing
from ..task import Task

#: The property of a message that says where it came from. No retry of a task inherits it.
ORIGIN_PROPERTY = "pinpriq_origin"


class Origin(NamedTuple):
    """The delivery of which a message was made.

    A process that was not forked from one with the transport loads it when it reads this.
    """

    queue: str
    id: str
    attempts: int
    headers: dict[str, str]


# The attempts of this process by Celery's id of the task and by thread. The id alone is too little:
# a retry has the id of its task, and may begin in one thread before the failed try ends in another.
_running: dict[tuple[str, int], tracing.Attempt] = {}


def _here(task_id: str) -> tuple[str, int]:
    return task_id, threading.get_ident()


def has_own_span(message_headers: Any) -> bool:
    """Tell whether the put of a message has a span of the transport."""
    return tracing.is_on() and "task" in message_headers


def tell_origin(properties: dict[str, Any], task: Task) -> None:
    """Add where a message came from, also for a process that traces although this one does not."""
    if tracing.INSTALLED:
        properties[ORIGIN_PROPERTY] = Origin(task.queue, task.id, task.attempts, task.headers)


def revoke(task_id: Any) -> None:
    """Have the worker of this process not begin a task, nor another try of it."""
    state = sys.modules.get("celery.worker.state")
    if state is not None and task_id is not None:
        state.revoked.add(task_id)


def connect(**_: Any) -> None:
    """Have Celery begin and end spans, now or, where each process traces by itself, there."""
    if not tracing.INSTALLED:
        return
    try:
        from celery import signals
    except ImportError:
        # The application uses kombu alone.
        return
    signals.worker_process_init.connect(connect)
    if tracing.is_on():
        signals.task_prerun.connect(_begin)
        signals.task_failure.connect(_failed)
        signals.task_retry.connect(_tried_again)
        signals.task_postrun.connect(_end)
        signals.worker_process_shutdown.connect(_flush)


def _begin(task_id: str, task: Any, **_: Any) -> None:
    origin = (task.request.properties or {}).get(ORIGIN_PROPERTY)
    if origin is not None and not tracing.celery_is_instrumented():
        _running[_here(task_id)] = tracing.Attempt(*origin)


def _failed(task_id: str, exception: BaseException, **_: Any) -> None:
    attempt = _running.get(_here(task_id))
    if attempt is not None:
        attempt.failed(exception)


def _tried_again(request: Any, reason: Any, **_: Any) -> None:
    """Take note of a failure of which the task itself made a retry."""
    _failed(request.id, reason.exc or reason)


def _end(task_id: str, **_: Any) -> None:
    attempt = _running.pop(_here(task_id), None)
    if attempt is not None:
        attempt.end()


def _flush(**_: Any) -> None:
    tracing.flush()
