"""Tasks that are cancelled, waiting and at work."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from pinpriq import (
    AsyncClient,
    Cancelled,
    Client,
    Job,
    NotFound,
    QueueSettings,
    State,
    Worker,
)
from servers import AgeingProxy, Server
from test_worker import Told, both, running

#: With a prefetch only the push can tell of a cancel, and without it only the renewal of a lease.
prefetches = pytest.mark.parametrize(("prefetch", "ttr"), [(2, 3600), (0, 3)])


def test_a_task_that_nobody_holds_leaves(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create()
    ready, later = queue.put("x").id, queue.put("y", delay=60).id
    assert queue.cancel(ready) is State.GONE
    with client.transaction() as steps:
        steps.cancel("jobs", later, reason="the customer left")
    assert steps.results == [State.GONE]
    with pytest.raises(NotFound):
        queue.cancel(ready)
    assert (queue.stats()["cancelled"], queue.stats()["present"]) == (2, 0)


def test_the_holder_of_a_task_is_asked_to_stop(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create()
    queue.put("x")
    job = queue.take(ttr=3600)
    assert job is not None
    assert (job.cancel_reason, job.cancelled.is_set()) == (None, False)
    assert queue.cancel(job.id, grace=60) is State.TAKEN
    with pytest.raises(Cancelled) as refused:
        job.touch()
    assert refused.value.reason == job.cancel_reason == ""
    assert queue.cancel(job.id, reason="the customer left") is State.TAKEN
    with pytest.raises(Cancelled, match="the customer left"):
        job.touch()
    assert (job.cancel_reason, job.cancelled.is_set()) == ("the customer left", True)
    task = queue.get(job.id)
    assert task is not None
    assert task.cancelled == "the customer left"
    assert task.lease_until is not None
    assert job.task.lease_until is not None
    assert (job.task.lease_until - task.lease_until).total_seconds() > 3000
    assert job.fail("broken") is State.GONE
    assert (queue.stats()["cancelled"], queue.stats()["failures"]) == (1, 0)


async def test_an_acknowledgement_counts(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    await queue.create()
    await queue.put("x")
    job = await queue.take(ttr=60)
    assert job is not None
    assert await queue.cancel(job.id) is State.TAKEN
    with pytest.raises(Cancelled):
        await job.touch()
    await job.ack()
    stats = await queue.stats()
    assert (stats["acked"], stats["cancelled"]) == (1, 0)


@both
@prefetches
def test_a_job_is_asked_to_end(
    client: Client,
    server: Server,
    how: str,
    prefetch: int,
    ttr: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It ends by an exception, which is no failure."""
    told = Told()
    worker = Worker(server.url, ttr=ttr, prefetch=prefetch, on_event=told)
    settings = QueueSettings(attempts=1, dead_letter="{jobs}-dead")
    seen: list[Any] = []

    @worker.job("jobs", with_job=True, settings=settings)
    async def work(job: Job) -> None:
        try:
            while how == "asyncio" or not job.cancelled.is_set():
                await asyncio.sleep(0.01)
        finally:
            seen.extend([job.cancelled.is_set(), job.cancel_reason])
        raise LookupError("half done")

    queue = client.queue("jobs")
    with caplog.at_level(logging.INFO, "pinpriq"), running(worker, how):
        put = queue.put("x")
        told.await_count("start", 1)
        assert queue.cancel(put.id, reason="the customer left") is State.TAKEN
        told.await_count("released", 1)
        assert queue.get(put.id) is None
    assert seen == [True, "the customer left"]
    assert [event.kind for event in told.events] == ["start", "cancelled", "released"]
    stats = queue.stats()
    assert (stats["cancelled"], stats["failures"], stats["present"]) == (1, 0, 0)
    assert not client.queue("{jobs}-dead").peek()
    records = [record for record in caplog.records if "cancelled" in record.message]
    assert len(records) == 1
    assert all(record.levelno == logging.INFO for record in caplog.records)


@both
@prefetches
def test_a_thread_can_finish_what_was_cancelled(
    client: Client, server: Server, how: str, prefetch: int, ttr: float
) -> None:
    told = Told()
    worker = Worker(server.url, ttr=ttr, prefetch=prefetch, on_event=told)
    seen: list[bool] = []
    queue = client.queue("jobs")

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        assert queue.cancel(job.id) is State.TAKEN
        seen.append(job.cancelled.wait(30))

    queue.create()
    queue.put("x")
    with running(worker, how):
        told.await_count("end", 1)
    assert seen == [True]
    assert [event.kind for event in told.events] == ["start", "cancelled", "end"]
    assert (queue.stats()["acked"], queue.stats()["cancelled"]) == (1, 0)


@both
def test_a_function_that_hears_of_it_first(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    queue = client.queue("jobs")

    @worker.job("jobs", with_job=True)
    async def work(job: Any) -> None:
        queue.cancel(job.id)
        renewal = job.touch()
        if how == "asyncio":
            await renewal

    queue.create()
    queue.put("x")
    with running(worker, how):
        told.await_count("released", 1)
    assert [event.kind for event in told.events] == ["start", "cancelled", "released"]
    assert (queue.stats()["cancelled"], queue.stats()["failures"]) == (1, 0)


@both
def test_a_job_that_waits_in_the_worker_is_not_run(
    client: Client, server: Server, how: str
) -> None:
    told = Told()
    worker = Worker(server.url, ttr=3600, prefetch=2, on_event=told)
    go = threading.Event()
    seen: list[int] = []

    @worker.job("jobs")
    def work(value: int) -> None:
        seen.append(value)
        assert go.wait(30)

    queue = client.queue("jobs")
    queue.create()
    ids = [queue.put(number).id for number in range(4)]

    def await_taken(count: int) -> None:
        while queue.stats().counts[State.TAKEN] != count:
            client.ping()

    with running(worker, how, 1):
        told.await_count("start", 1)
        await_taken(3)
        assert queue.cancel(ids[1]) is State.TAKEN
        told.await_count("cancelled", 1)
        while queue.get(ids[1]) is not None:
            client.ping()
        # Another one has its place.
        await_taken(3)
        go.set()
        told.await_count("end", 3)
    assert seen == [0, 2, 3]
    assert [event.id for event in told.events if event.kind == "cancelled"] == [ids[1]]
    assert told.count("released") == 0
    assert (queue.stats()["cancelled"], queue.stats()["failures"]) == (1, 0)


@both
def test_an_older_server_tells_it_later(client: Client, server: Server, how: str) -> None:
    proxy = AgeingProxy(server.port)
    told = Told()
    worker = Worker(proxy.url, ttr=3, prefetch=1, on_event=told)

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        if job.value == "x":
            assert job.cancelled.wait(30)

    queue = client.queue("jobs")
    queue.create()
    with running(worker, how, 1):
        put = queue.put("x")
        told.await_count("start", 1)
        assert queue.cancel(put.id) is State.TAKEN
        queue.put("y")
        told.await_count("end", 2)
    assert queue.stats()["acked"] == 2
    proxy.close()
