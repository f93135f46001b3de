"""Celery tasks and Dramatiq messages in applications that trace."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dramatiq
import pytest
from kombu import Connection
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otlp import Receiver, Seen, named
from pinpriq import Client
from pinpriq.dramatiq import PinpriqBroker
from pinpriq.kombu import tasks
from servers import Server
from test_celery import TESTS, Application
from test_celery import application as application
from test_tracing import OWN, Spans, environment_for
from test_tracing import provider as provider
from test_tracing import receiver as receiver
from test_tracing import spans as spans


def tree_of(spans: list[Seen]) -> dict[str, list[str]]:
    """Return the names of the children of each span that has some, and of the roots."""
    names = {span.id: span.name for span in spans}
    tree: dict[str, list[str]] = {}
    for span in spans:
        tree.setdefault(names.get(span.parent, ""), []).append(span.name)
    return tree


@pytest.mark.parametrize(
    ("pool", "each"), [("prefork", False), ("prefork", True), ("threads", False), ("solo", True)]
)
def test_celery_tasks_are_in_the_trace_of_the_request(
    application: Application, receiver: Receiver, provider: TracerProvider, pool: str, each: bool
) -> None:
    environment = {"TRACES": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    if each:
        # As OpenTelemetry advises for processes that are forked.
        environment["TRACE_EACH_PROCESS"] = "yes"
    with trace.get_tracer("app").start_as_current_span("web request"):
        application.tasks.flaky.delay("again")
        application.tasks.fail.delay("fails")
    with application.worker("--pool", pool, app="traced_app", **environment):
        application.await_done("again", "fails")
        application.await_present(0)
    provider.force_flush()
    spans = receiver.await_spans(named("process celery", 4))
    assert len({span.trace for span in spans}) == 1
    assert tree_of(spans) == {
        "": ["web request"],
        "web request": ["put celery"] * 2,
        "put celery": ["process celery"] * 4,
        "process celery": ["put celery"] * 2,
    }
    puts = {span.id: span for span in spans if span.kind == "PRODUCER"}
    attempts = [span for span in spans if span.kind == "CONSUMER"]
    for attempt in attempts:
        assert attempt.links == [(attempt.trace, attempt.parent)]
        id_ = puts[attempt.parent].attributes["messaging.message.id"]
        assert attempt.attributes["messaging.message.id"] == id_
        assert attempt.attributes["messaging.pinpriq.attempt"] == 1
    failures = [attempt.attributes.get("error.type") for attempt in attempts]
    assert sorted(map(str, failures)) == ["LookupError", "None", "Retry", "Retry"]
    assert sorted(span.status for span in attempts) == ["ERROR"] * 3 + ["UNSET"]
    [failed] = [span for span in attempts if span.attributes.get("error.type") == "LookupError"]
    assert failed.event("exception")["exception.message"] == "no such thing"


def test_a_celery_task_may_begin_again_before_its_first_try_ends(
    application: Application, receiver: Receiver
) -> None:
    application.tasks.overtaken.delay("x")
    with application.worker("--pool", "threads", app="traced_app", TRACES=receiver.url):
        application.await_done("x")
    spans = receiver.await_spans(named("process celery", 2))
    attempts = [span for span in spans if span.kind == "CONSUMER"]
    assert [attempt.attributes.get("error.type") for attempt in attempts] == ["Retry", None]


def test_each_delivery_of_a_celery_task_is_an_attempt(
    application: Application, receiver: Receiver, provider: TracerProvider
) -> None:
    application.tasks.die_once.delay("x")
    with application.worker(app="traced_app", TRACES=receiver.url):
        application.await_done("x")
    spans = receiver.await_spans(named("process celery", 1))
    [attempt] = [span for span in spans if span.kind == "CONSUMER"]
    assert attempt.attributes["messaging.pinpriq.attempt"] == 2


def test_a_celery_task_without_a_trace_begins_one(
    application: Application, receiver: Receiver
) -> None:
    application.tasks.work.delay("x")
    with application.worker(app="traced_app", TRACES=receiver.url, TRACE_EACH_PROCESS="yes"):
        application.await_done("x")
    [attempt] = receiver.await_spans(named("process celery", 1))
    assert (attempt.parent, attempt.links) == ("", [])


def test_without_a_provider_celery_tasks_have_no_headers(
    application: Application, client: Client
) -> None:
    application.tasks.work.delay("x")
    [task] = client.queue("celery", serialiser="bytes").peek()
    assert task.headers == {}
    assert b"pinpriq_origin" not in task.payload


def test_the_trace_of_an_instrumentation_is_passed_on(
    application: Application, client: Client, spans: Spans
) -> None:
    headers = {"traceparent": OWN, "tracestate": "x" * 1025}
    application.tasks.work.apply_async(("x",), headers=headers)
    [task] = client.queue("celery", serialiser="bytes").peek()
    assert task.headers == {"traceparent": OWN}
    assert spans.get_finished_spans() == ()


@pytest.mark.parametrize("active", [False, True])
def test_celery_tasks_have_one_span(
    application: Application, spans: Spans, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    """One of OpenTelemetry's own instrumentation of Celery is not followed by another one."""
    instrumentor = SimpleNamespace(is_instrumented_by_opentelemetry=active)
    module = SimpleNamespace(CeleryInstrumentor=lambda: instrumentor)
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.celery", module)
    request = SimpleNamespace(
        properties={tasks.ORIGIN_PROPERTY: tasks.Origin("jobs", "1", 1, {})}, id="a"
    )
    tasks._begin("a", SimpleNamespace(request=request))
    tasks._failed("a", LookupError())
    tasks._end("a")
    assert len(spans.get_finished_spans()) == (not active)


READS = """
    import pickle
    from celery import signals
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    trace.set_tracer_provider(TracerProvider())
    assert signals.task_prerun.receivers == []
    assert pickle.loads({written}).id == "1"
    assert len(signals.task_prerun.receivers) == 1
"""


def test_a_process_that_was_not_forked_traces_what_it_reads() -> None:
    """Celery has begun no connection there, but the message comes before the task."""
    written = pickle.dumps(tasks.Origin("celery", "1", 1, {}))
    code = textwrap.dedent(READS).format(written=written)
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "src")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_messages_that_are_no_tasks_have_no_spans(server: Server, spans: Spans) -> None:
    with Connection(server.url) as connection:
        queue = connection.SimpleQueue("jobs")
        queue.put("x")
        queue.get(timeout=10).ack()
        queue.close()
    assert spans.get_finished_spans() == ()


@pytest.fixture
def broker(server: Server) -> Iterator[PinpriqBroker]:
    broker = PinpriqBroker(server.url)
    yield broker
    broker.close()


def work_with(broker: PinpriqBroker) -> None:
    """Work until nothing is left."""
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
    worker.start()
    broker.join("default", timeout=30_000)
    worker.stop()


def test_dramatiq_messages_are_in_one_trace_from_the_request_to_the_end(
    broker: PinpriqBroker, receiver: Receiver, provider: TracerProvider
) -> None:
    tries: list[int] = []

    @dramatiq.actor(broker=broker, max_retries=1, min_backoff=10, max_backoff=20)
    def work(number: int) -> None:
        tries.append(number)
        if len(tries) <= 2:
            raise LookupError("no such thing")

    with trace.get_tracer("app").start_as_current_span("web request"):
        work.send(7)
        work_with(broker)
        assert broker.redrive("default") == 1
        work_with(broker)
    provider.force_flush()
    spans = receiver.await_spans(named("web request", 1))
    request, sent, first, again, second, third = spans
    process, put = "process {default}", "put {default}"
    assert [span.name for span in spans[1:]] == [put, process, put, process, process]
    assert {span.trace for span in spans} == {request.trace}
    assert [sent.parent, first.parent, again.parent] == [request.id, sent.id, first.id]
    assert [second.parent, third.parent] == [again.id] * 2
    assert third.links == [(again.trace, again.id)]
    assert [span.status for span in (first, second, third)] == ["ERROR", "ERROR", "UNSET"]
    assert [[name for name, _ in span.events] for span in (first, second, third)] == [
        ["exception"], ["exception", "pinpriq.dead_letter"], []
    ]  # fmt: skip
    assert second.event("pinpriq.dead_letter") == {
        "pinpriq.state": "X",
        "pinpriq.reason": "LookupError: no such thing",
    }
    assert request.event("pinpriq.redrive") == {
        "messaging.destination.name": "{default}.dead",
        "pinpriq.count": 1,
    }


def test_the_processes_of_dramatiq_export_before_they_end(
    server: Server, receiver: Receiver, broker: PinpriqBroker
) -> None:
    environment = environment_for(server, receiver)
    process = subprocess.Popen(
        [sys.executable, "-m", "dramatiq", "traced_app:broker", "--processes=1", "--threads=1"],
        env=environment,
    )
    broker.declare_queue("default")
    broker.enqueue(dramatiq.Message("default", "grind", (), {}, {}))
    try:
        broker.join("default", timeout=30_000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
    receiver.await_spans(named("process {default}", 1))


def test_async_actors_of_dramatiq_run_in_the_span(server: Server, spans: Spans) -> None:
    broker = PinpriqBroker(server.url, middleware=[dramatiq.middleware.AsyncIO()])
    current: list[Any] = []

    @dramatiq.actor(broker=broker)
    async def work() -> None:
        current.append(trace.get_current_span().get_span_context())

    work.send()
    work_with(broker)
    broker.close()
    assert current == [spans.one("process {default}").context]


def test_without_a_provider_dramatiq_messages_have_no_headers(broker: PinpriqBroker) -> None:
    @dramatiq.actor(broker=broker, max_retries=0)
    def work() -> None:
        raise LookupError

    work.send()
    [task] = broker.client.queue(broker.server_queue("default")).peek()
    assert task.headers == {}
    work_with(broker)
    assert len(broker.dead_letters("default")) == 1
