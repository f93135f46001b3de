"""What becomes of tasks when their caller gave up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pinpriq import AsyncClient, AsyncQueue, BadArgument, Client, Disconnected, QueueSettings, State
from servers import Server, certificate

#: Tasks for each test, of which every tenth was lost when a cancellation closed the connection.
COUNT = 200

#: The longest wait at first, in seconds: about as long as a reply takes.
FIRST_S = 0.004


class Patience:
    """How long to wait: never the same, and longer while nothing comes, as on a slow machine."""

    def __init__(self) -> None:
        self._dice = random.Random(7)
        self._most_s = FIRST_S

    def seconds(self) -> float:
        """Return for how long to wait this time."""
        return self._dice.random() * self._most_s

    def note(self, came: bool) -> None:
        """Note whether something came in that time."""
        self._most_s = FIRST_S if came else self._most_s * 1.1


async def received(
    queue: AsyncQueue, take: Callable[[], Awaitable[Any]], finish: Callable[[Any], Awaitable[Any]]
) -> list[int]:
    """Take all tasks with waits that end at any moment, while they are put. Returns the values."""
    patience = Patience()

    async def put_all() -> None:
        for number in range(COUNT):
            await queue.put(number)
            # So that the queue is often empty, and replies come at any moment.
            for _ in range(number % 9):
                await queue.client.ping()

    putting = asyncio.create_task(put_all())
    values = []
    while not putting.done() or (await queue.stats())["present"]:
        try:
            got = await asyncio.wait_for(take(), patience.seconds())
        except asyncio.TimeoutError:
            patience.note(False)
            continue
        patience.note(True)
        if got is not None:
            values.append(got.value)
            await finish(got)
    return values


async def _nothing(_: Any) -> None:
    """Nothing is left to do for a task that was popped."""


async def test_a_pop_that_is_cancelled_loses_nothing(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    await queue.create()
    values = await received(queue, lambda: queue.pop(wait=30), _nothing)
    assert sorted(values) == list(range(COUNT))


async def test_a_take_that_is_cancelled_gives_back(aclient: AsyncClient) -> None:
    """No lease has to end for it: it is much longer than the test."""
    queue = aclient.queue("jobs")
    await queue.create()
    values = await received(queue, lambda: queue.take(wait=30, ttr=3600), lambda job: job.ack())
    assert sorted(values) == list(range(COUNT))
    assert (await queue.stats())["failures"] == 0


async def test_encrypted_connections_lose_nothing(program: str, tmp_path: Path) -> None:
    files = certificate(tmp_path)
    flags = ("--resps", "127.0.0.1:0", "--tls-cert", str(files.cert), "--tls-key", str(files.key))
    server = Server(program, tmp_path / "data", *flags)
    server.start()
    url = f"pinpriqs://127.0.0.1:{server.tls_port()}"
    async with AsyncClient(url, ssl_ca_certs=str(files.cert)) as client:
        queue = client.queue("jobs")
        await queue.create()
        values = await received(queue, lambda: queue.pop(wait=30), _nothing)
        assert sorted(values) == list(range(COUNT))
    server.stop()


async def test_a_pop_from_a_lane_loses_nothing(aclient: AsyncClient) -> None:
    topic = aclient.topic("news")
    async with topic.member("mailer", lease=60) as member:
        lane = member.lane
        for number in range(50):
            await topic.publish(number)
        values = []
        patience = Patience()
        while (await lane.stats())["present"]:
            try:
                task = await asyncio.wait_for(lane.pop(wait=5), patience.seconds())
            except asyncio.TimeoutError:
                patience.note(False)
                continue
            patience.note(True)
            if task is not None:
                values.append(task.value)
                assert task.receipt is None
        assert set(values) == set(range(50))


@pytest.mark.parametrize("ids", ["sequence", "given"])
async def test_what_is_put_back_is_the_same_task_but_for_its_age(
    aclient: AsyncClient, ids: str
) -> None:
    from pinpriq.requests import tasks as about_tasks

    queue = aclient.queue("jobs")
    await queue.create(QueueSettings(ids=ids))  # type: ignore[arg-type]
    id_ = "order-1" if ids == "given" else None
    await queue.put("x", id=id_, key="ada", priority=7, ttl=600)
    task = await queue.pop()
    assert task is not None
    for step in about_tasks.undone([task], None):
        await aclient.link.carry_out_one_of(step)
    [again] = await queue.peek()
    assert (again.value, again.key, again.priority) == ("x", b"ada", 7)
    assert task.ttl_at is not None
    assert again.ttl_at is not None
    assert abs(again.ttl_at - task.ttl_at).total_seconds() < 5
    assert ids == "sequence" or again.id == "order-1"


async def test_the_end_of_the_loop_gives_back(client: Client, server: Server) -> None:
    """`asyncio.run` cancels what runs when its main function returns."""

    def run_and_leave() -> None:
        async def main() -> None:
            aclient = AsyncClient(server.url)
            takers = [
                asyncio.create_task(aclient.queue("jobs").take(wait=30, ttr=3600)) for _ in range(3)
            ]
            while (await aclient.client_list()).count("blocked=1") < 3:
                await asyncio.sleep(0)
            # Their replies are here before the loop can look at them.
            for number in range(3):
                client.queue("jobs").put(number)
            del takers

        asyncio.run(main())

    await asyncio.to_thread(run_and_leave)
    assert client.queue("jobs").stats().counts[State.TAKEN] == 0
    assert client.queue("jobs").stats().counts[State.READY] == 3


async def test_unrequested_deliveries_are_given_back(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    async with aclient.subscription() as subscription:
        await subscription.subscribe("jobs", ttr=3600)
        await subscription.credit(5)
        for number in range(5):
            await queue.put(number)
        job = await subscription.next()
        assert job is not None
        await job.ack()
    counts = (await queue.stats()).counts
    assert (counts[State.READY], counts[State.TAKEN]) == (4, 0)
    async with aclient.subscription() as subscription:
        await subscription.subscribe("jobs", pop=True)
        await subscription.credit(5)
        assert await subscription.next() is not None
    assert (await queue.stats()).counts[State.READY] == 3


async def test_a_subscription_outlives_calls_that_are_cancelled(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    for number in range(40):
        await queue.put(number)
    done: list[int] = []
    async with aclient.subscription() as subscription:
        await subscription.subscribe("jobs", ttr=3600)
        for turns in range(20):
            granting = asyncio.create_task(subscription.credit(1))
            for _ in range(turns % 5):
                await asyncio.sleep(0)
            granting.cancel()
            await asyncio.gather(granting, return_exceptions=True)
        with pytest.raises(BadArgument):
            await subscription.credit(-1)
        assert await subscription.credit(1) >= 0
        while len(done) < 5:
            job = await subscription.next()
            assert job is not None
            done.append(job.value)
            await job.ack()
    counts = (await queue.stats()).counts
    assert (counts[State.READY], counts[State.TAKEN]) == (35, 0)
    assert done == list(range(5))


@pytest.mark.parametrize("verb", ["pop", "take"])
def test_ctrl_c_while_the_reply_is_on_its_way_loses_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    queue = client.queue("jobs")
    queue.put("x")

    def interrupted(*_: Any, **__: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    client.ping()
    monkeypatch.setattr("redis.connection.Connection.read_response", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.pop() if verb == "pop" else queue.take(ttr=3600)
    counts = queue.stats().counts
    assert (counts[State.READY], counts[State.TAKEN]) == (1, 0)


async def test_one_client_in_two_loops(server: Server) -> None:
    aclient = AsyncClient(server.url)

    def run_twice() -> None:
        asyncio.run(aclient.ping())
        asyncio.run(aclient.ping())

    await asyncio.to_thread(run_twice)
    await aclient.ping()
    await aclient.close()


async def test_a_server_that_is_gone_is_no_cancellation(own_server: Server) -> None:
    async with AsyncClient(own_server.url, retry_for=0.2) as aclient:
        popping = asyncio.create_task(aclient.queue("jobs").pop(wait=30))
        while "blocked=1" not in await aclient.client_list():
            await asyncio.sleep(0)
        own_server.kill()
        with pytest.raises(Disconnected):
            await popping
