"""What came of the work on a task, for who waits for it or looks at it later."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from pinpriq import (
    AsyncClient,
    Client,
    Job,
    Outcome,
    Put,
    QueueSettings,
    Retry,
    SerialisationError,
    Stale,
    State,
    Task,
    TooLarge,
    Worker,
    commands,
)
from pinpriq.aio.prefetch import RESULT_HERE_MAX
from pinpriq.job import RESULT_BYTES_MAX
from servers import AgeingProxy, LossyProxy, Server
from test_worker import Told, both, running

KEEP = QueueSettings(after_ack="keep")

ways = pytest.mark.parametrize("prefetch", [0, 2])


def taken(client: Client, name: str = "jobs") -> Job:
    """Wait for a job."""
    job = client.queue(name).take(wait=30, ttr=60)
    assert job is not None
    return job


def shown(client: Client, id: str, name: str = "jobs") -> Task:
    """Show a task that is there."""
    task = client.queue(name).get(id)
    assert task is not None
    return task


@pytest.mark.parametrize("value", [{"file": "17.pdf"}, 0, "", False, [], None])
def test_who_waits_gets_it(client: Client, value: object) -> None:
    queue = client.queue("jobs")
    worker = threading.Thread(target=lambda: taken(client).ack(value))
    worker.start()
    put = queue.put_and_wait("17", 30)
    worker.join()
    assert (put.outcome, put.result) == (Outcome.ACKED, value)
    # Who comes too late learns only how it ended.
    late = queue.wait_for(put.id)
    assert (late.outcome, late.result) == (Outcome.ACKED, None)


def test_a_kept_task_keeps_it(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create(KEEP)
    queue.put("17")
    job = taken(client)
    assert job.task.result is None
    job.ack("17.pdf", payload="read")
    task = shown(client, job.id)
    assert (task.state, task.value, task.result) == (State.DONE, "read", b'"17.pdf"')
    assert [each.result for each in queue.tasks()] == [b'"17.pdf"']
    awaited = queue.wait_for(job.id)
    assert (awaited.outcome, awaited.state) == (Outcome.ACKED, State.DONE)
    assert (awaited.result, awaited.result_bytes) == ("17.pdf", b'"17.pdf"')
    assert queue.restart(job.id) is State.READY
    assert shown(client, job.id).result is None


def test_there_is_none_of_what_is_not_done(client: Client) -> None:
    put = client.queue("jobs").put("x")
    assert (put.outcome, put.result) == (None, None)
    put = client.queue("jobs").put_and_wait("x", 0.01)
    assert (put.outcome, put.result) == (Outcome.TIMEOUT, None)
    put = client.queue("jobs").put_and_wait("x", 0.01, unique=None)
    assert (put.outcome, put.result, put.new) == (Outcome.TIMEOUT, None, True)
    awaited = client.queue("jobs").wait_for(put.id)
    assert (awaited.outcome, awaited.result) == (Outcome.TIMEOUT, None)


def test_a_duplicate_gets_it_too(client: Client) -> None:
    queue = client.queue("jobs")
    first = queue.put("x", unique="one")
    worker = threading.Thread(target=lambda: taken(client).ack(1))
    puts: list[Put] = []

    def wait() -> None:
        puts.append(queue.put_and_wait("x", 30, unique="one"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while queue.stats()["duplicates"] < 1:
        client.ping()
    worker.start()
    worker.join()
    waiting.join()
    [put] = puts
    assert (put.id, put.new, put.outcome, put.result) == (first.id, False, Outcome.ACKED, 1)


def test_a_long_wait_gets_it(client: Client, server: Server) -> None:
    queue = client.queue("jobs")
    queue.create(KEEP)
    puts: list[Put] = []
    with Client(server.url) as other:
        other.link.options.__dict__["socket_timeout_s"] = 0.05
        waiting = threading.Thread(
            target=lambda: puts.append(other.queue("jobs").put_and_wait("x", None))
        )
        waiting.start()
        job = taken(client)
        # The put has waited by then, and asks again.
        assert client.queue("other").take(wait=0.2, ttr=60) is None
        job.ack("late")
        waiting.join()
    assert [(put.outcome, put.result, put.new) for put in puts] == [(Outcome.ACKED, "late", True)]


def test_a_lost_reply_loses_none(client: Client, server: Server) -> None:
    client.queue("jobs").create(KEEP)
    proxy = LossyProxy(server.port)
    worker = threading.Thread(target=lambda: taken(client).ack("done"))
    worker.start()
    with Client(proxy.url) as lossy:
        proxy.lose(1, about=b"PUT")
        put = lossy.queue("jobs").put_and_wait("x", 30)
    worker.join()
    assert proxy.lost == 1
    assert (put.outcome, put.result) == (Outcome.ACKED, "done")
    proxy.close()


def test_a_lost_reply_about_a_given_id(client: Client, server: Server) -> None:
    client.queue("jobs").create(QueueSettings(ids="given", after_ack="keep"))
    proxy = LossyProxy(server.port)
    worker = threading.Thread(target=lambda: taken(client).ack("done"))
    worker.start()
    with Client(proxy.url) as lossy:
        proxy.lose(1, about=b"PUT")
        put = lossy.queue("jobs").put_and_wait("x", 30, id="one", unique="one")
    worker.join()
    assert (put.id, put.outcome, put.result) == ("one", Outcome.ACKED, "done")
    proxy.close()


def test_a_put_of_what_is_done_gets_it_if_it_is_kept(client: Client) -> None:
    for name, settings, expected in (
        ("kept", KEEP, (Outcome.ACKED, "done")),
        ("gone", QueueSettings(), (Outcome.ACKED, None)),
    ):
        queue = client.queue(name)
        queue.create(settings)
        first = queue.put("x", unique="one", window=60)
        taken(client, name).ack("done")
        put = queue.put_and_wait("x", 30, unique="one", window=60)
        assert (put.id, put.new) == (first.id, False)
        assert (put.outcome, put.result) == expected


def test_one_that_cannot_be_read_hides_nothing(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create(KEEP)
    put = queue.put("x")
    queue.ack(taken(client).receipt, result=1)
    again = queue.put("y")
    job = client.queue("jobs", serialiser="bytes").take(ttr=60)
    assert job is not None
    job.ack(b"\xff\x00")
    assert shown(client, again.id).result == b"\xff\x00"
    awaited = queue.wait_for(again.id)
    assert awaited.result_bytes == b"\xff\x00"
    with pytest.raises(SerialisationError):
        _ = awaited.result
    assert queue.wait_for(put.id).result == 1
    assert client.queue("jobs", serialiser="bytes").wait_for(put.id).result == b"1"


def test_it_can_go_with_a_take(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create(KEEP)
    for number in range(5):
        queue.put(number)
    first, second, third, fourth = queue.take_many(4, ttr=60)
    [fifth] = queue.take_many(1, ttr=60, done=[(first, "one"), second, (third, None)])
    done: list[Any] = [("jobs", fourth.receipt, b'"four"'), ("jobs", fifth.receipt)]
    assert client.take_many(["jobs"], ttr=60, done=done) == []
    assert [job.settled for job in (first, second, third, fourth)] == [True, True, True, False]
    results = [shown(client, job.id).result for job in (first, second, third, fourth, fifth)]
    assert results == [b'"one"', None, None, b'"four"', None]
    assert list(commands.take(["q"], done=[("q", "1-1-1"), ("q", "2-1-1", b"x")])) == [
        *(b"TAKE", b"q", b"DONE", b"q", b"1-1-1", b"DONE", b"q", b"2-1-1", b"RESULT", b"x")
    ]


def test_it_can_go_with_a_transaction(client: Client) -> None:
    client.queue("jobs").create(KEEP)
    ids = [client.queue("jobs").put(number).id for number in range(2)]
    with client.transaction() as steps:
        steps.ack(taken(client), {"pages": 3})
        steps.ack(taken(client))
        steps.put("{jobs}-next", "x")
    assert [shown(client, id).result for id in ids] == [b'{"pages":3}', None]


def test_by_the_id_of_the_task(client: Client) -> None:
    # One request follows the other here, so all go over one connection.
    queue = client.queue("jobs")
    queue.create(KEEP)
    queue.put("x")
    job = queue.take()
    assert job is not None
    queue.ack(id=job.id, result="by id")
    assert queue.wait_for(job.id).result == "by id"


def test_it_can_be_refused(client: Client) -> None:
    queue = client.queue("jobs")
    queue.put("x")
    job = taken(client)
    with pytest.raises(SerialisationError):
        job.ack(object())
    with pytest.raises(TooLarge):
        job.ack("x" * 2_000_000)
    assert not job.settled
    job.ack("x")
    with pytest.raises(Stale):
        job.ack("y")


async def test_with_asyncio_too(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    await queue.create(KEEP)
    await queue.put("x")
    job = await queue.take(ttr=60)
    assert job is not None
    await job.ack({"pages": 3})
    assert (await queue.wait_for(job.id)).result == {"pages": 3}
    await queue.put("y")
    job = await queue.take(ttr=60)
    assert job is not None
    async with aclient.transaction() as steps:
        steps.ack(job, 4)
    assert (await queue.wait_for(job.id)).result == 4


@both
@ways
def test_what_a_function_returns(client: Client, server: Server, how: str, prefetch: int) -> None:
    worker = Worker(server.url, prefetch=prefetch)
    large = "x" * (RESULT_HERE_MAX * 10)

    @worker.job("sums")
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    @worker.job("lines")
    async def repeat(times: int) -> str | None:
        return large[:times] if times else None

    @worker.job("by-hand", with_job=True)
    def by_hand(job: Any) -> Any:
        # With asyncio this is something to await, which gives None.
        return job.ack("by hand")

    @worker.job("twice", with_job=True)
    async def twice(job: Any) -> str:
        done = job.ack("first")
        if done is not None:
            await done
        return "second"

    with running(worker, how):
        for numbers in ([1, 2, 3], [-1, 1]):
            assert client.queue("sums").put_and_wait(numbers, 30).result == sum(numbers)
        for times in (1, len(large), 0, 2, len(large)):
            put = client.queue("lines").put_and_wait(times, 30)
            assert (put.outcome, put.result) == (Outcome.ACKED, large[:times] or None)
        assert client.queue("by-hand").put_and_wait("x", 30).result == "by hand"
        assert client.queue("twice").put_and_wait("x", 30).result == "first"


@both
@ways
def test_many_large_results(client: Client, server: Server, how: str, prefetch: int) -> None:
    # So many deliveries wait on the connection that no more can be written until they are read.
    worker = Worker(server.url, prefetch=prefetch * 20)
    worker.job("jobs")(lambda value: value)
    queue = client.queue("jobs")
    queue.create(KEEP)
    payload = "x" * 1_000_000
    ids = [queue.put(payload).id for _ in range(50)]
    with running(worker, how, 4):
        for id in ids:
            assert queue.wait_for(id, wait=30).result == payload
    assert [task.failures for task in queue.tasks()] == [0] * len(ids)
    assert queue.stats()["acked"] == len(ids)


@both
@ways
def test_a_result_that_cannot_be_sent_repeats_no_work(
    client: Client,
    server: Server,
    how: str,
    prefetch: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"pinpriq.{'sync' if how == 'threads' else 'aio'}.runner.RESULT_BYTES_MAX",
                        RESULT_BYTES_MAX // 16)  # fmt: skip
    told = Told()
    worker = Worker(server.url, prefetch=prefetch, on_event=told)
    values: dict[str, object] = {
        "an object": object(),
        "an exception": Retry("it is only returned"),
        "not JSON": float("nan"),
        "too large": "x" * 2_000_000,
        "larger than any": "x" * 5_000_000,
        "fine": 1,
    }
    seen: list[str] = []

    @worker.job("jobs")
    def work(name: str) -> object:
        seen.append(name)
        return values[name]

    queue = client.queue("jobs")
    queue.create(KEEP)
    with caplog.at_level(logging.WARNING, "pinpriq.worker"), running(worker, how):
        for name in values:
            put = queue.put_and_wait(name, 30)
            assert (put.outcome, put.result) == (Outcome.ACKED, 1 if name == "fine" else None)
        told.await_count("end", len(values))
    assert seen == list(values)
    assert queue.stats()["acked"] == len(values)
    warnings = [record.getMessage() for record in caplog.records]
    assert len([each for each in warnings if "is not sent: " in each]) == 4, warnings
    assert len([each for each in warnings if "without its result: TOOLARGE" in each]) == 1, warnings
    assert len(warnings) == 5, warnings


@both
@ways
def test_without_room_for_it(
    program: str, tmp_path: Path, how: str, prefetch: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(
        program, tmp_path / "data", "--task-bytes-max", "100000", "--payload-bytes-max", "60000"
    )
    server.start()
    worker = Worker(server.url, prefetch=prefetch)
    seen: list[str] = []

    @worker.job("jobs")
    def work(value: str) -> str:
        seen.append(value)
        return "x" * int(value)

    with Client(server.url) as client, running(worker, how):
        queue = client.queue("jobs")
        queue.configure(KEEP)
        client.queue("other").put("x" * 50_000)
        for value, result in (("55000", None), ("3", "xxx")):
            put = queue.put_and_wait(value, 30)
            assert (put.outcome, put.result) == (Outcome.ACKED, result)
        assert queue.stats()["acked"] == 2
    assert seen == ["55000", "3"]
    assert "without its result: BUSY" in caplog.text
    server.stop()


@both
@ways
def test_a_server_that_knows_none(client: Client, server: Server, how: str, prefetch: int) -> None:
    proxy = AgeingProxy(server.port, b"RESULT")
    worker = Worker(proxy.url, prefetch=prefetch)
    worker.job("jobs")(lambda value: value)
    client.queue("jobs").create()
    with running(worker, how):
        for number in range(3):
            put = client.queue("jobs").put_and_wait(number, 30)
            assert (put.outcome, put.result) == (Outcome.ACKED, None)
    assert client.queue("jobs").stats()["acked"] == 3
    proxy.close()
