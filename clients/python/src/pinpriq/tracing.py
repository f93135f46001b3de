"""Spans of OpenTelemetry for puts and attempts, where the application traces.

Only this module knows OpenTelemetry. Its API is no dependency: an application that traces has it,
and has set a tracer provider. This sets none up, exports nothing, and passes on the trace of a put
in the headers of its task, whatever the application chose for its own requests, and no baggage.

What goes wrong here is logged. No put and no job fails because of it.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from .job import reason_of
from .replies import State
from .requests.base import Name, encoded
from .task import Task

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    #: Whether there is an API that can be used.
    INSTALLED = True
    _W3C = TraceContextTextMapPropagator()
except Exception:
    # It is not there, or is another version than its parts expect.
    INSTALLED = False

log = logging.getLogger("pinpriq.tracing")

#: What the server accepts: how many headers, and how many bytes in a value and in all.
_HEADERS_MAX = 16
_VALUE_BYTES_MAX = 1024
_BYTES_MAX = 4096

#: How much of a reason an event tells, in characters, and how long an export may take at the end.
_REASON_MAX = 200
_FLUSH_MS = 3000

_PARENT, _STATE = "traceparent", "tracestate"

# The provider that was asked last, and its tracer: None if it is none of the application.
_known: tuple[Any, trace.Tracer | None] = (None, None)


class _Harmless:
    """A block whose exceptions are logged."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, Exception):
            log.warning("a span is incomplete", exc_info=error)
            return True
        return False


_harmless = _Harmless()


def is_on() -> bool:
    """Tell whether the application traces."""
    return INSTALLED and _tracer() is not None


def _tracer() -> trace.Tracer | None:
    global _known
    with _harmless:
        provider = trace.get_tracer_provider()
        if provider is not _known[0]:
            tracer = None
            if not isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
                from . import __version__

                tracer = provider.get_tracer("pinpriq", __version__)
            _known = (provider, tracer)
        return _known[1]
    return None


class Sending:
    """The span of a put or a publication. As a context manager it ends with its block.

    `kind` is `create` where the task is sent later, with others. Make it only if tracing is on.
    """

    def __init__(
        self,
        operation: str,
        destination: str,
        url: str,
        headers: Mapping[str, Name] | None,
        kind: str = "send",
    ) -> None:
        self._span: trace.Span = trace.INVALID_SPAN
        #: The headers of the task, with the trace.
        self.headers = headers
        with _harmless:
            tracer = _tracer()
            assert tracer is not None
            self._span = tracer.start_span(
                f"{operation} {destination}",
                kind=trace.SpanKind.PRODUCER,
                attributes={
                    "messaging.system": "pinpriq",
                    "messaging.operation.name": operation,
                    "messaging.operation.type": kind,
                    "messaging.destination.name": destination,
                    **_server(url),
                },
            )
            self.headers = _with_trace(headers or {}, self._span)

    def note_id(self, id_: str) -> None:
        """Take note of the id of the task."""
        with _harmless:
            self._span.set_attribute("messaging.message.id", id_)

    def end(self, error: BaseException | None = None) -> None:
        """End the span."""
        with _harmless:
            if error is not None:
                _fail(self._span, error, str(error))
            self._span.end()

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.end(error)


class Attempt:
    """The span of an attempt at a task, current from the start to the end.

    Its parent is the put, and no span around the worker. It ends in the thread or the asyncio task
    in which it began: as a context manager with its block. Make it only if tracing is on.
    """

    def __init__(
        self,
        queue: str,
        id_: str,
        attempts: int,
        headers: Mapping[str, str],
        member: str | None = None,
    ) -> None:
        self._span: trace.Span = trace.INVALID_SPAN
        self._token: Any = None
        with _harmless:
            tracer = _tracer()
            assert tracer is not None
            came = _W3C.extract(headers, context.Context())
            parent = trace.get_current_span(came).get_span_context()
            attributes: dict[str, str | int] = {
                "messaging.system": "pinpriq",
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": queue,
                "messaging.message.id": id_,
                "messaging.pinpriq.attempt": attempts,
            }
            if member is not None:
                attributes["messaging.destination.subscription.name"] = member
            self._span = tracer.start_span(
                f"process {queue}",
                came,
                trace.SpanKind.CONSUMER,
                attributes,
                [trace.Link(parent)] if parent.is_valid else [],
            )
            self._token = context.attach(trace.set_span_in_context(self._span, came))

    @classmethod
    def at(cls, task: Task) -> Attempt:
        """Begin an attempt at a task."""
        return cls(task.queue, task.id, task.attempts, task.headers, task.member)

    def failed(
        self, error: BaseException | None, reason: str | None = None, state: State | None = None
    ) -> None:
        """Take note of a failure, and of what the task is now if that is known."""
        with _harmless:
            if reason is None:
                reason = "" if error is None else reason_of(error)
            if error is not None:
                self._span.record_exception(error)
            _fail(self._span, error, reason)
            if state in (State.BURIED, State.GONE):
                self._span.add_event(
                    "pinpriq.dead_letter",
                    {"pinpriq.state": state.value, "pinpriq.reason": reason[:_REASON_MAX]},
                )

    def cancelled(self) -> None:
        """Take note that the attempt ended because its task was cancelled, which is no failure."""
        with _harmless:
            self._span.set_attribute("pinpriq.cancelled", True)

    def end(self) -> None:
        """End the span, which is no longer the current one."""
        with _harmless:
            if self._token is not None:
                context.detach(self._token)
            self._span.end()

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def redriven(queue: str, count: int) -> None:
    """Take note that so many dead letters of a queue went back."""
    if is_on():
        with _harmless:
            trace.get_current_span().add_event(
                "pinpriq.redrive", {"messaging.destination.name": queue, "pinpriq.count": count}
            )


def flush() -> None:
    """Export what has ended, in a process that ends without the exit functions of Python."""
    if is_on():
        with _harmless:
            force_flush = getattr(trace.get_tracer_provider(), "force_flush", None)
            if force_flush is not None:
                force_flush(_FLUSH_MS)


def trace_in(headers: Mapping[str, Any]) -> dict[str, Name]:
    """Return the headers that tell a trace, if there are some and a task can have them."""
    if _PARENT not in headers:
        return {}
    found = {name: str(headers[name]) for name in (_PARENT, _STATE) if headers.get(name)}
    return _fitting({}, found)


def celery_is_instrumented() -> bool:
    """Tell whether Celery tasks have spans already, of OpenTelemetry's own instrumentation."""
    with _harmless:
        module: Any = sys.modules.get("opentelemetry.instrumentation.celery")
        return module is not None and module.CeleryInstrumentor().is_instrumented_by_opentelemetry
    return False


def _fail(span: trace.Span, error: BaseException | None, reason: str) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(trace.StatusCode.ERROR, reason)


@functools.lru_cache(maxsize=64)
def _server(url: str) -> dict[str, str | int]:
    parts = urlsplit(url)
    return {"server.address": parts.hostname or "", "server.port": parts.port or 0}


def _with_trace(given: Mapping[str, Name], span: trace.Span) -> Mapping[str, Name]:
    """Return headers with the context of a span, unless they have one."""
    if _PARENT in given:
        return given
    added: dict[str, str] = {}
    _W3C.inject(added, trace.set_span_in_context(span, context.Context()))
    if not given and _STATE not in added:
        # Nearly every put is like this, and it always fits.
        return added
    return _fitting(given, added)


def _fitting(given: Mapping[str, Name], added: Mapping[str, Name]) -> dict[str, Name]:
    """Return both, without the state of the trace or all of it where the server would refuse."""
    for names in ((_PARENT, _STATE), (_PARENT,)):
        both = {**{name: added[name] for name in names if name in added}, **given}
        values = [len(encoded(value)) for value in both.values()]
        names_bytes = sum(len(encoded(name)) for name in both)
        if (
            len(both) <= _HEADERS_MAX
            and max(values, default=0) <= _VALUE_BYTES_MAX
            and names_bytes + sum(values) <= _BYTES_MAX
        ):
            return both
    return dict(given)
