"""What an application that traces with OpenTelemetry sees, and that others pay nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from otlp import Receiver, named, provider_for
from pinpriq import (
    AsyncClient,
    Bury,
    Client,
    Full,
    GiveBack,
    Job,
    QueueSettings,
    Retry,
    State,
    Worker,
    __version__,
    tracing,
)
from servers import Server
from test_worker import Told, both, running

TESTS = Path(__file__).resolve().parent


def use(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the provider of the application, which can be set once in each process, for one test."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def provider(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """A provider that sends to the receiver."""
    provider = provider_for(receiver.url)
    use(provider, monkeypatch)
    yield provider
    provider.shutdown()


class Spans(InMemorySpanExporter):
    """The spans of one test that have ended."""

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """Have the application trace, and return the spans that end."""
    spans = Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    use(provider, monkeypatch)
    return spans


def headers_of(client: Client, queue: str, id_: str) -> dict[str, str]:
    task = client.queue(queue).get(id_)
    assert task is not None
    return task.headers


def traceparent_of(span: ReadableSpan) -> str:
    assert span.context is not None
    ids = f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
    return f"00-{ids}-{span.context.trace_flags:02x}"


def environment_for(server: Server, receiver: Receiver) -> dict[str, str]:
    """Return the environment of a process that traces, and exports only when it ends."""
    return os.environ | {
        "PINPRIQ_URL": server.url,
        "TRACES": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "3600000",
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")]),
    }


@both
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_task_is_in_one_trace_from_the_request_to_the_end(
    client: Client,
    server: Server,
    receiver: Receiver,
    provider: TracerProvider,
    how: str,
    prefetch: int,
) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told, prefetch=prefetch)
    settings = QueueSettings(attempts=2, backoff=0.001, dead_letter="{jobs}-dead")

    @worker.job("jobs", settings=settings, with_job=True)
    def work(job: Job) -> None:
        with trace.get_tracer("app").start_as_current_span("inside"):
            if told.count("failed") < 2:
                raise LookupError("no such thing" * 50)

    with trace.get_tracer("app").start_as_current_span("web request"):
        put = client.queue("jobs").put("x", headers={"tenant": "acme"})
        with running(worker, how):
            told.await_count("failed", 2)
            dead = client.queue("{jobs}-dead")
            [letter] = dead.peek()
            assert letter.headers["tenant"] == "acme"
            assert dead.redrive() == 1
            told.await_count("end", 1)
    provider.force_flush()
    spans = receiver.await_spans(named("web request", 1))
    assert [span.name for span in spans] == [
        "web request", "put jobs", *["process jobs", "inside"] * 3
    ]  # fmt: skip
    request, sent, *_ = spans
    assert {span.trace for span in spans} == {request.trace}
    assert (sent.kind, sent.parent, sent.status) == ("PRODUCER", request.id, "UNSET")
    assert sent.scope == f"pinpriq {__version__}"
    common = {"messaging.system": "pinpriq", "messaging.destination.name": "jobs"}
    assert sent.attributes == common | {
        "messaging.operation.name": "put",
        "messaging.operation.type": "send",
        "messaging.message.id": put.id,
        "server.address": "127.0.0.1",
        "server.port": server.port,
    }
    assert request.event("pinpriq.redrive") == {
        "messaging.destination.name": "{jobs}-dead",
        "pinpriq.count": 1,
    }
    attempts, inside = spans[2::2], spans[3::2]
    for number, attempt in enumerate(attempts, 1):
        assert (attempt.kind, attempt.parent) == ("CONSUMER", sent.id)
        assert attempt.links == [(sent.trace, sent.id)]
        assert inside[number - 1].parent == attempt.id
        failed = {"error.type": "LookupError"} if number < 3 else {}
        assert attempt.attributes.pop("messaging.message.id") == (put.id if number < 3 else ANY_ID)
        assert attempt.attributes == common | failed | {
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.pinpriq.attempt": number if number < 3 else 1,
        }
    assert [attempt.status for attempt in attempts] == ["ERROR", "ERROR", "UNSET"]
    assert [[name for name, _ in attempt.events] for attempt in attempts] == [
        ["exception"], ["exception", "pinpriq.dead_letter"], []
    ]  # fmt: skip
    reason = "LookupError: " + "no such thing" * 50
    assert attempts[0].message == reason
    assert attempts[0].event("exception") == {
        "exception.type": "LookupError",
        "exception.message": "no such thing" * 50,
    }
    assert attempts[1].event("pinpriq.dead_letter") == {
        "pinpriq.state": "X",
        "pinpriq.reason": reason[:200],
    }


class _AnyId:
    """A task that was moved has another id."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.isdecimal()

    __hash__ = None  # type: ignore[assignment]


ANY_ID = _AnyId()


@pytest.mark.parametrize(
    "arguments", [[], ["--processes", "1", "--threads", "2"], ["--asyncio"]], ids=" ".join
)
def test_workers_of_all_kinds_export_before_they_end(
    client: Client, server: Server, receiver: Receiver, provider: TracerProvider,
    arguments: list[str],
) -> None:  # fmt: skip
    queue = client.queue("jobs")
    for number in range(3):
        queue.put(number)
    process = subprocess.Popen(
        [sys.executable, "-m", "pinpriq", "worker", "traced_app:worker", *arguments],
        env=environment_for(server, receiver),
    )
    try:
        while queue.stats()["present"]:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
    provider.force_flush()
    spans = receiver.await_spans(lambda spans: len(spans) == 9)
    by_id = {span.id: span for span in spans}
    for number in range(3):
        [inside] = [span for span in spans if span.name == f"inside {number}"]
        attempt = by_id[inside.parent]
        assert (attempt.name, by_id[attempt.parent].name) == ("process jobs", "put jobs")


@both
def test_without_a_provider_nothing_is_added(client: Client, server: Server, how: str) -> None:
    assert not tracing.is_on()
    told = Told()
    worker = Worker(server.url, on_event=told)
    seen: list[Any] = []

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        seen.append((job.task.headers, context.get_current()))

    put = client.queue("jobs").put("x")
    assert headers_of(client, "jobs", put.id) == {}
    with client.transaction() as steps:
        steps.put("jobs", "y")
    with running(worker, how):
        told.await_count("end", 2)
    assert seen == [({}, {})] * 2


WITHOUT = """
    import sys
    {block}
    import pinpriq.dramatiq, pinpriq.celery, pinpriq.kombu
    from pinpriq import Client, tracing
    assert {condition}
    with Client("{url}") as client:
        queue = client.queue("jobs")
        queue.put("x")
        with client.transaction() as steps:
            steps.put("jobs", "y")
        for job in queue.jobs(ttr=60, wait=0):
            with job:
                assert job.task.headers == {{}}
        queue.redrive()
    assert not tracing.is_on()
"""


@pytest.mark.parametrize(
    ("block", "condition"),
    [
        ("sys.modules['opentelemetry'] = None", "not tracing.INSTALLED"),
        # One whose parts do not fit together.
        ("sys.modules['opentelemetry.trace.propagation'] = None", "not tracing.INSTALLED"),
        ("", "tracing.INSTALLED"),
    ],
)
def test_it_works_where_the_api_is_not_installed(
    server: Server, block: str, condition: str
) -> None:
    code = textwrap.dedent(WITHOUT).format(block=block, condition=condition, url=server.url)
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "src")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


async def test_a_provider_counts_that_is_set_later(
    aclient: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = aclient.queue("jobs")
    await queue.put("before")
    spans = Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    use(provider, monkeypatch)
    with trace.get_tracer("app").start_as_current_span("request") as request:
        await asyncio.gather(queue.put("after"), queue.put_and_wait("last", 0))
    sent = spans.named("put jobs")
    assert [span.parent for span in sent] == [request.get_span_context()] * 2
    told = [task.headers.get("traceparent") for task in await queue.peek(3)]
    assert set(told) == {None, *map(traceparent_of, sent)}


async def test_spans_around_a_worker_are_not_those_of_its_jobs(
    server: Server, aclient: AsyncClient, spans: Spans
) -> None:
    worker = Worker(server.url)
    current: list[Any] = []

    @worker.job("jobs")
    async def work(value: str) -> None:
        current.append(trace.get_current_span().get_span_context())
        worker.stop()

    await aclient.queue("jobs").put("x", headers={"traceparent": "nonsense"})
    with trace.get_tracer("app").start_as_current_span("ambient"):
        assert await worker.run_async(tasks=1)
    attempt = spans.one("process jobs")
    assert (attempt.parent, list(attempt.links), current) == (None, [], [attempt.context])


@pytest.mark.parametrize("given", [{}, {"tracestate": "a=1"}])
def test_a_put_has_the_context_of_its_span(
    client: Client, spans: Spans, given: dict[str, str]
) -> None:
    put = client.queue("jobs").put("x", headers=given)
    assert headers_of(client, "jobs", put.id) == given | {
        "traceparent": traceparent_of(spans.one("put jobs"))
    }


def in_state(size: int) -> Any:
    """Return a context with a trace whose state has so many bytes."""
    state: list[tuple[str, str]] = []
    left = size
    while left:
        # A member has 257 bytes at most, and a comma is between two.
        length = left if left <= 257 else 250
        state.append((f"k{len(state)}", "v" * (length - 3)))
        left -= length + (left > length)
    told = trace.SpanContext(7, 7, True, trace.TraceFlags(1), trace.TraceState(state))
    assert len(told.trace_state.to_header()) == size
    return trace.set_span_in_context(trace.NonRecordingSpan(told))


BOTH, PARENT, NONE = {"traceparent", "tracestate"}, {"traceparent"}, set[str]()


@pytest.mark.parametrize(
    ("given", "state", "added"),
    [
        ({}, 500, BOTH),
        ({}, 1024, BOTH),
        ({}, 1025, PARENT),
        ({f"h{number}": "" for number in range(14)}, 10, BOTH),
        ({f"h{number}": "" for number in range(15)}, 10, PARENT),
        ({f"h{number}": "" for number in range(16)}, 10, NONE),
        # Names and values are 4,008 bytes, the parent is 66, and the state has a name of 10.
        ({f"h{number}": "x" * 1000 for number in range(4)}, 12, BOTH),
        ({f"h{number}": "x" * 1000 for number in range(4)}, 13, PARENT),
        ({"h0": "x" * 1022} | {f"h{number}": "x" * 1000 for number in range(1, 4)}, 4, PARENT),
        ({"h0": "x" * 1023} | {f"h{number}": "x" * 1000 for number in range(1, 4)}, 4, NONE),
        ({"h0": "ü" * 511} | {f"h{number}": b"\xff" * 1000 for number in range(1, 4)}, 4, PARENT),
    ],
)
def test_what_does_not_fit_is_left_out(
    client: Client, spans: Spans, given: dict[str, Any], state: int, added: set[str]
) -> None:
    token = context.attach(in_state(state))
    put = client.queue("jobs").put("x", headers=given)
    context.detach(token)
    assert set(headers_of(client, "jobs", put.id)) == {*given, *added}
    assert spans.one("put jobs").status.status_code is StatusCode.UNSET


OWN = f"00-{'a' * 32}-{'b' * 16}-01"


def test_the_trace_of_a_caller_stands(client: Client, spans: Spans) -> None:
    token = context.attach(in_state(10))
    put = client.queue("jobs").put("x", headers={"traceparent": OWN})
    context.detach(token)
    assert headers_of(client, "jobs", put.id) == {"traceparent": OWN}
    sent = spans.one("put jobs")
    assert sent.attributes is not None
    assert sent.attributes["messaging.message.id"] == put.id


@both
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"traceparent": "nonsense"},
        {"traceparent": b"\xff\x00"},
        {"traceparent": ""},
        {"traceparent": f"00-{'0' * 32}-{'b' * 16}-01"},
        {"tracestate": "a=1"},
        {"traceparent": OWN, "tracestate": "\x00,,==" + "x" * 900},
    ],
)
def test_a_trace_that_cannot_be_read_does_no_harm(
    client: Client, server: Server, spans: Spans, monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, Any], how: str,
) -> None:  # fmt: skip
    with monkeypatch.context() as off:
        off.setattr(trace, "_TRACER_PROVIDER", None)
        client.queue("jobs").put("x", headers=headers)
    told = Told()
    worker = Worker(server.url, on_event=told)
    worker.job("jobs")(lambda value: None)
    with running(worker, how):
        told.await_count("end", 1)
    attempt = spans.one("process jobs")
    readable = headers.get("traceparent") == OWN
    assert len(attempt.links) == readable
    assert (attempt.parent is not None) == readable


def test_a_put_that_is_refused_is_an_error(client: Client, spans: Spans) -> None:
    queue = client.queue("jobs")
    queue.create(QueueSettings(capacity=1))
    queue.put("x")
    with pytest.raises(Full):
        queue.put("y")
    _, refused = spans.named("put jobs")
    assert refused.status.status_code is StatusCode.ERROR
    assert refused.attributes is not None
    assert refused.attributes["error.type"] == "Full"
    assert "messaging.message.id" not in refused.attributes


@both
def test_a_publication_and_its_lanes(
    client: Client, server: Server, spans: Spans, how: str
) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    worker.member("news", "screen")(lambda value: None)
    with client.topic("news").member("screen"):
        assert client.topic("news").publish("x") == 1
        with running(worker, how):
            told.await_count("end", 1)
    sent, attempt = spans.one("publish news"), spans.one("process news")
    assert sent.attributes is not None
    assert attempt.attributes is not None
    assert (sent.kind, attempt.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert sent.attributes["messaging.operation.name"] == "publish"
    assert sent.attributes["messaging.operation.type"] == "send"
    assert attempt.parent is not None
    assert attempt.parent.span_id == sent.context.span_id
    assert attempt.attributes["messaging.destination.name"] == "news"
    assert attempt.attributes["messaging.destination.subscription.name"] == "screen"


def test_puts_of_a_transaction_end_before_it(client: Client, spans: Spans) -> None:
    with client.topic("{a}-news").member("screen"), client.transaction() as steps:
        steps.put("{a}-jobs", "x")
        steps.publish("{a}-news", "y")
        created = [spans.one("put {a}-jobs"), spans.one("publish {a}-news")]
    for span in created:
        assert span.attributes is not None
        assert span.attributes["messaging.operation.type"] == "create"
    [task] = client.queue("{a}-jobs").peek()
    assert task.headers == {"traceparent": traceparent_of(created[0])}


def test_each_run_of_a_schedule_begins_a_trace(client: Client, spans: Spans) -> None:
    client.schedules.set("beat", "jobs", "x", every=3600)
    client.schedules.fire("beat")
    [task] = client.queue("jobs").peek()
    assert task.headers == {}
    assert spans.get_finished_spans() == ()


@both
def test_what_becomes_of_a_failure(client: Client, server: Server, spans: Spans, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)

    @worker.job("jobs")
    def work(value: str) -> None:
        if value == "bury":
            raise Bury("never")
        if value == "retry":
            raise Retry("later", delay=3600)
        raise GiveBack(delay=3600)

    ids = {value: client.queue("jobs").put(value).id for value in ("bury", "retry", "back")}
    with running(worker, how):
        told.await_count("failed", 2)
        told.await_count("released", 1)
    by_id = {
        span.attributes["messaging.message.id"]: span
        for span in spans.named("process jobs")
        if span.attributes
    }
    bury, retry, back = (by_id[ids[value]] for value in ids)
    assert [event.name for event in bury.events] == ["exception", "pinpriq.dead_letter"]
    assert bury.events[1].attributes == {"pinpriq.state": "B", "pinpriq.reason": "never"}
    assert [event.name for event in retry.events] == ["exception"]
    assert (retry.status.status_code, retry.status.description) == (StatusCode.ERROR, "later")
    assert (back.status.status_code, back.events) == (StatusCode.UNSET, ())


@both
def test_a_job_that_is_cancelled_has_not_failed(
    client: Client, server: Server, spans: Spans, how: str
) -> None:
    told = Told()
    worker = Worker(server.url, ttr=3, on_event=told)
    queue = client.queue("jobs")

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        queue.cancel(job.id)
        assert job.cancelled.wait(30)
        raise LookupError("half done")

    queue.put("x")
    with running(worker, how):
        told.await_count("released", 1)
    attempt = spans.one("process jobs")
    assert attempt.attributes is not None
    assert attempt.attributes["pinpriq.cancelled"] is True
    assert (attempt.status.status_code, attempt.events) == (StatusCode.UNSET, ())


@both
def test_a_job_that_is_not_run_again(
    client: Client, server: Server, spans: Spans, how: str
) -> None:
    queue = client.queue("jobs")
    queue.put("x")
    for _ in range(5):
        job = queue.take(ttr=60)
        assert job is not None
        job.fail("the end of its worker", delay=0)
    told = Told()
    worker = Worker(server.url, on_event=told)
    worker.job("jobs")(lambda value: None)
    with running(worker, how):
        told.await_count("failed", 1)
    attempt = spans.one("process jobs")
    assert attempt.status.status_code is StatusCode.ERROR
    [event] = attempt.events
    assert event.attributes is not None
    assert event.attributes["pinpriq.state"] == "B"


class Broken(SimpleSpanProcessor):
    """A part of the application that fails whenever it is called."""

    def on_start(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("the start of a span")

    def on_end(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("the end of a span")


@both
def test_errors_of_tracing_reach_nobody(
    client: Client, server: Server, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Broken(InMemorySpanExporter()))
    use(provider, monkeypatch)
    told = Told()
    worker = Worker(server.url, on_event=told)

    @worker.job("jobs")
    def work(value: str) -> None:
        if value == "fail":
            raise Bury("never")

    client.queue("jobs").put("fail")
    client.queue("jobs").put("x")
    with client.transaction() as steps:
        steps.put("jobs", "y")
    with running(worker, how):
        told.await_count("end", 2)
        told.await_count("failed", 1)
    assert client.queue("jobs").stats().counts[State.BURIED] == 1


def test_a_manual_take_goes_on_with_the_trace(client: Client, spans: Spans) -> None:
    client.queue("jobs").put("x")
    job = client.queue("jobs").take(ttr=60)
    assert job is not None
    tracer = trace.get_tracer("app")
    with job, tracer.start_as_current_span("by hand", context=extract(job.task.headers)):
        assert job.value == "x"
    assert spans.one("by hand").parent is not None
    assert len(spans.get_finished_spans()) == 2


def test_jobs_of_threads_do_not_mix(client: Client, server: Server, spans: Spans) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    meet = threading.Barrier(3)

    @worker.job("jobs")
    def work(value: int) -> None:
        meet.wait(30)
        with trace.get_tracer("app").start_as_current_span(f"inside {value}"):
            meet.wait(30)

    ids = [client.queue("jobs").put(number).id for number in range(3)]
    with running(worker, "threads", 3):
        told.await_count("end", 3)
    attempts = {
        span.attributes["messaging.message.id"]: span.context
        for span in spans.named("process jobs")
        if span.attributes
    }
    for number, id_ in enumerate(ids):
        parent, attempt = spans.one(f"inside {number}").parent, attempts[id_]
        assert parent is not None
        assert attempt is not None
        assert parent.span_id == attempt.span_id
