"""The client with asyncio."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import pinpriq
from pinpriq import AsyncClient, Outcome, QueueSettings, Stale, State


async def test_put_take_ack(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    put = await queue.put({"to": "ada"}, priority=2)
    job = await queue.take(ttr=60, wait=1)
    assert job is not None
    assert job.id == put.id
    async with job:
        assert job.value == {"to": "ada"}
    with pytest.raises(Stale):
        await job.touch()


async def test_an_exception_fails_and_a_cancellation_gives_back(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    put = await queue.put("x")
    job = await queue.take(ttr=60)
    assert job is not None
    with pytest.raises(LookupError):
        async with job:
            raise LookupError("gone")
    entered = asyncio.Event()

    async def work() -> None:
        job = await queue.take(ttr=60)
        assert job is not None
        async with job:
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    shown = await queue.get(put.id)
    assert shown is not None
    assert (shown.state, shown.failures, shown.reason) == (State.READY, 1, "LookupError: gone")


async def test_a_cancelled_take_leaves_the_connection_clean(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(queue.take(wait=30, ttr=60), 0.05)
    await queue.put("x")
    assert await queue.pop(wait=5) is not None


async def test_waiting_and_iterating(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    popped = asyncio.create_task(queue.pop(wait=30))
    assert (await queue.put_and_wait("ring", 30)).outcome is Outcome.ACKED
    assert await popped is not None
    for number in range(3):
        await queue.put(number)
    seen = []
    async for job in queue.jobs(ttr=60, wait=0):
        async with job:
            seen.append(job.value)
    assert seen == [0, 1, 2]
    await queue.create(QueueSettings(ttr=5))
    assert [name async for name in aclient.queue_names()] == ["jobs"]
    assert [task async for task in queue.tasks()] == []


async def test_a_transaction(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    await queue.put("x")
    job = await queue.take(ttr=60)
    assert job is not None
    async with aclient.transaction() as both:
        both.ack(job)
        both.put("{jobs}-next", "y")
    assert job.settled
    assert [task.value for task in await aclient.queue("{jobs}-next").peek()] == ["y"]


async def test_a_member(aclient: AsyncClient) -> None:
    topic = aclient.topic("news")
    async with topic.member("mailer", lease=30) as member:
        assert await topic.publish("open") == 1
        job = await member.lane.take(wait=5, ttr=60)
        assert job is not None
        async with job:
            assert job.value == "open"
    assert await topic.members() == []


async def test_deliveries(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    async with aclient.subscription() as subscription:
        assert await subscription.subscribe("jobs", ttr=60) == 1
        await subscription.credit(2)
        await queue.put("a")
        job = await subscription.next()
        assert job is not None
        await job.ack()
        assert await subscription.unsubscribe() == 0


async def test_a_schedule(aclient: AsyncClient) -> None:
    await aclient.schedules.set("{jobs}-beat", "jobs", "check", every=3600)
    assert [name async for name in aclient.schedules.names()] == ["{jobs}-beat"]
    await aclient.schedules.fire("{jobs}-beat")
    [task] = await aclient.queue("jobs").peek()
    assert (task.value, task.schedule) == ("check", "{jobs}-beat")


def test_every_public_name_is_explained() -> None:
    for name in pinpriq.__all__:
        found = getattr(pinpriq, name)
        if inspect.isclass(found):
            assert found.__doc__, name
            for method, function in inspect.getmembers(found, inspect.isfunction):
                if not method.startswith("_") and found.__module__.startswith("pinpriq"):
                    assert function.__doc__, f"{name}.{method}"
