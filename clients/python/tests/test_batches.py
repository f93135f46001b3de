"""Batches: tasks that are followed together, and what waits for them."""

from __future__ import annotations

import pytest

from pinpriq import (
    Aborted,
    AsyncClient,
    Cancelled,
    Client,
    Exists,
    NotFound,
    Outcome,
    State,
    WrongState,
    commands,
)


def test_what_waits_for_a_batch_comes_when_it_is_done(client: Client) -> None:
    parts, joined = client.queue("{fan}-parts"), client.queue("{fan}-joined")
    with client.batch("{fan}-one") as batch:
        for number in range(3):
            batch.put(parts, number)
        parts.put("another")
        batch.then("{fan}-joined", "all", only_if="acked", priority=1)
        shown = batch.show()
        assert (shown.name, shown.state, shown.total, shown.waiting) == ("{fan}-one", "open", 3, 1)
    assert batch.show().state == "closed"
    [follower] = joined.tasks()
    assert (follower.state, follower.ready_at, follower.held) == (State.WAITING, None, False)
    assert (follower.after, follower.batch) == (("{fan}-one",), None)
    assert joined.take(ttr=60) is None
    assert [task.value for task in parts.tasks(batch="{fan}-one")] == [0, 1, 2]
    assert parts.bulk(kill=True, batch="{fan}-other", dry=True).changed == 0
    assert parts.bulk(kill=True, batch="{fan}-one", dry=True).changed == 3

    for job in parts.jobs(ttr=60, wait=0):
        with job:
            assert job.task.batch == (None if job.value == "another" else "{fan}-one")
    is_done, shown = batch.wait(10)
    assert is_done
    assert (shown.state, shown.pending, shown.acked, shown.failed) == ("done", 0, 3, 0)
    assert shown.opened_at is not None
    assert shown.done_at is not None
    assert shown.opened_at <= shown.done_at
    callback = joined.take(ttr=60, wait=10)
    assert callback is not None
    assert (callback.value, callback.task.after) == ("all", ())
    callback.ack()

    with pytest.raises(WrongState):
        batch.put(parts, "late")
    assert batch.close() == 0
    assert batch.drop()
    assert not batch.drop()
    with pytest.raises(NotFound):
        batch.show()
    with pytest.raises(NotFound):
        batch.then("{fan}-joined", "never")


def test_some_are_skipped(client: Client) -> None:
    ends: dict[str, str] = {}
    names: tuple[str, ...] = ("good", "bad", "both")
    for name in names:
        client.queue(name).create()
    with client.batch() as first, client.batch() as second:
        ids = [first.put("parts", "killed").id, second.put("parts", "acked").id]
        ends["good"] = first.then("good", 1, only_if="acked").id
        ends["bad"] = first.then("bad", 2, only_if="failed").id
        ends["both"] = second.then("both", 3, after=[first.name], only_if="acked").id
    task = client.queue("both").get(ends["both"])
    assert task is not None
    assert task.after == (second.name, first.name)
    assert client.queue("parts").kill(ids[0]) == 1
    assert client.queue("good").wait_for(ends["good"], wait=10).outcome is Outcome.SKIPPED
    assert client.queue("both").wait_for(ends["both"]).outcome is Outcome.TIMEOUT
    job = client.queue("parts").take(ttr=60)
    assert job is not None
    job.ack()
    assert client.queue("both").wait_for(ends["both"], wait=10).outcome is Outcome.SKIPPED
    job = client.queue("bad").take(ttr=60, wait=10)
    assert job is not None
    assert job.id == ends["bad"]
    assert [client.queue(name).stats()["skipped"] for name in names] == [1, 0, 1]


def test_an_exception_cancels(client: Client) -> None:
    queue = client.queue("{stop}")
    with pytest.raises(LookupError), client.batch("{stop}-one") as batch:
        batch.put(queue, 1)
        batch.put(queue, 2, delay=60)
        batch.then("{stop}-after", "clean up", only_if="failed")
        raise LookupError("no such film")
    is_done, shown = batch.wait(10)
    assert (is_done, shown.failed) == (True, 2)
    assert queue.take(ttr=60) is None
    job = client.queue("{stop}-after").take(ttr=60, wait=10)
    assert job is not None
    job.ack()


def test_holders_of_its_tasks_are_asked_to_stop(client: Client) -> None:
    batch = client.batch("{stop}-two")
    batch.open()
    with pytest.raises(Exists):
        batch.open()
    with client.transaction() as steps:
        steps.put("{stop}", "x", batch=batch.name)
    job = client.queue("{stop}").take(ttr=3600)
    assert job is not None
    assert batch.cancel(reason="the customer left", grace=60) == 1
    with pytest.raises(Cancelled, match="the customer left"):
        job.touch()
    with pytest.raises(WrongState):
        batch.put("{stop}", "more")
    with pytest.raises(WrongState):
        batch.drop()
    is_done, shown = batch.wait(0)
    assert (is_done, shown.state, shown.pending) == (False, "closed", 1)
    assert job.release() is State.GONE
    assert batch.wait()[0]
    assert "{stop}-two" in client.batch_names("{stop}-t")
    assert "{stop}-two" not in client.batch_names("{stopped}")


def test_a_transaction_makes_fills_and_closes_one(client: Client) -> None:
    name, empty = "{whole}-one", "{whole}-empty"
    with client.transaction() as steps:
        steps.open_batch(name, ttl=3600)
        steps.put("{whole}", "part", batch=name)
        steps.put("{whole}-joined", "all", after=name)
        steps.close_batch(name)
    assert (steps.results[0], steps.results[3]) == (None, 1)
    assert client.batch(name).show().state == "closed"
    job = client.queue("{whole}").take(ttr=60)
    assert job is not None
    with client.transaction() as steps:
        steps.ack(job)
        steps.open_batch(empty)
        steps.close_batch(empty)
        steps.drop_batch(empty)
        steps.drop_batch(empty)
    assert steps.results[1:] == [None, 0, True, False]
    callback = client.queue("{whole}-joined").take(ttr=60, wait=10)
    assert callback is not None
    callback.ack()
    with pytest.raises(Aborted) as refused, client.transaction() as steps:
        steps.drop_batch(name)
        steps.open_batch(empty)
        steps.drop_batch(empty)
    assert refused.value.position == 3
    assert isinstance(refused.value.cause, WrongState)
    assert list(client.batch_names("{whole}")) == [name]


def test_one_that_is_late_is_done_as_failed(client: Client) -> None:
    with client.batch("{late}-one", ttl=0.1) as batch:
        batch.put("{late}", "x", delay=60)
        batch.then("{late}-after", "too late", only_if="failed")
    is_done, shown = batch.wait(10)
    assert (is_done, shown.acked, shown.failed) == (True, 0, 1)
    assert client.queue("{late}-after").take(ttr=60, wait=10) is not None


def test_names_are_counted() -> None:
    put = list(commands.put("q", b"x", batch="c", after=["a", b"b"], only_if="failed"))
    assert put == [b"PUT", b"q", b"x", b"BATCH", b"c", b"AFTER", b"2", b"a", b"b", b"IF", b"failed"]
    assert list(commands.put("q", b"x", after="ab"))[3:] == [b"AFTER", b"1", b"ab"]
    assert list(commands.put("q", b"x", after=[])) == [b"PUT", b"q", b"x"]


async def test_with_asyncio(aclient: AsyncClient) -> None:
    async with aclient.batch("{async}-one") as batch:
        await batch.put("{async}", "part")
        await batch.then("{async}-joined", "all")
        async with aclient.transaction() as steps:
            steps.put("{async}", "another", batch=batch.name)
            steps.close_batch(batch.name)
        assert steps.results[1] == 2
    async for job in aclient.queue("{async}").jobs(ttr=60, wait=0):
        async with job:
            assert job.task.batch == "{async}-one"
    is_done, shown = await batch.wait(10)
    assert (is_done, shown.acked) == (True, 2)
    assert await aclient.queue("{async}-joined").take(ttr=60, wait=10) is not None
    assert [name async for name in aclient.batch_names("{async}")] == ["{async}-one"]
    assert await batch.drop()
