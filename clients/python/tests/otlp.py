"""Receives what exporters of OpenTelemetry send, so that tests read real traces back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

#: What is told of an exception beside its type and message depends on the machine.
UNSTEADY = ("exception.stacktrace", "exception.escaped")


def provider_for(url: str) -> TracerProvider:
    """Return a provider that sends to a receiver, as an application would make it."""
    provider = TracerProvider(resource=Resource.create({"service.name": "tests"}))
    exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


@dataclass
class Seen:
    """A span as it was received. Ids are hexadecimal, `parent` is empty for a root."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    links: list[tuple[str, str]]
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    status: str
    message: str
    scope: str
    started: int

    def event(self, name: str) -> dict[str, Any]:
        """Return the attributes of its one event with this name."""
        [attributes] = [attributes for each, attributes in self.events if each == name]
        return attributes


class Receiver:
    """A server for OTLP over HTTP on a loopback port of its own."""

    def __init__(self) -> None:
        self._spans: list[Seen] = []
        self._changed = threading.Condition()
        receive = self._receive

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receive(ExportTraceServiceRequest.FromString(body))
                reply = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def await_spans(self, enough: Callable[[list[Seen]], bool]) -> list[Seen]:
        """Wait until there are enough spans. Returns all, in the order of their starts."""
        with self._changed:
            assert self._changed.wait_for(lambda: enough(self._spans), 60), self._spans
            return sorted(self._spans, key=lambda span: span.started)

    def _receive(self, request: ExportTraceServiceRequest) -> None:
        with self._changed:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    name = f"{scope.scope.name} {scope.scope.version}".strip()
                    self._spans.extend(_seen(span, name) for span in scope.spans)
            self._changed.notify_all()


def named(name: str, count: int) -> Callable[[list[Seen]], bool]:
    """Return what tells whether so many spans with this name are there."""
    return lambda spans: sum(span.name == name for span in spans) >= count


def _seen(span: Any, scope: str) -> Seen:
    return Seen(
        name=span.name,
        kind=type(span).SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        attributes=_values(span.attributes),
        events=[(event.name, _values(event.attributes)) for event in span.events],
        status=type(span.status).StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        message=span.status.message,
        scope=scope,
        started=span.start_time_unix_nano,
    )


def _values(pairs: list[KeyValue]) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
        for pair in pairs
        if pair.key not in UNSTEADY
    }
