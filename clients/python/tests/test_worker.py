"""Workers in this process: threads and asyncio tasks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis.exceptions import ResponseError

from pinpriq import (
    Bury,
    Client,
    Event,
    GiveBack,
    Job,
    Outcome,
    QueueSettings,
    Retry,
    State,
    Worker,
)
from pinpriq.sync.prefetch import Prefetch
from servers import DelayingProxy, LossyProxy, Server

Run = Callable[[Worker], None]


class Told:
    """Collects events, and waits for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def count(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.events)

    def await_count(self, kind: str, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count(kind) >= count, 30), self.events


@contextmanager
def running(worker: Worker, how: str, number: int = 2) -> Iterator[None]:
    """Run a worker in a thread while the block lasts."""
    results: list[bool] = []

    def run() -> None:
        if how == "threads":
            results.append(worker.run(threads=number))
        else:
            results.append(worker.run_asyncio(tasks=number))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        # A worker that has not begun yet cannot be stopped.
        while thread.is_alive():
            worker.stop()
            thread.join(0.05)
    assert results == [True]


both = pytest.mark.parametrize("how", ["threads", "asyncio"])


@both
def test_each_task_is_done_once(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, prefetch=5, on_event=told)
    seen: Counter[int] = Counter()

    @worker.job("jobs")
    def work(value: int) -> None:
        seen[value] += 1

    @worker.job("more")
    async def work_async(value: int) -> None:
        await asyncio.sleep(0)
        seen[value] += 1

    client.queue("jobs").create()
    client.queue("more").create()
    for number in range(200):
        client.queue("jobs" if number % 2 else "more").put(number)
    with running(worker, how, 4):
        told.await_count("end", 200)
    assert seen == Counter(range(200))
    for name in ("jobs", "more"):
        stats = client.queue(name).stats()
        assert (stats["acked"], stats["present"]) == (100, 0)


@both
def test_what_a_function_raises(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    given_back: list[int] = []

    settings = QueueSettings(attempts=3, backoff=0.001, dead_letter="{jobs}-dead")

    @worker.job("jobs", with_job=True, settings=settings)
    def work(job: Job) -> object:
        if job.value == "fail":
            raise LookupError("no such thing")
        if job.value == "retry":
            raise Retry("later", delay=3600)
        if job.value == "bury":
            raise Bury("never")
        if job.value == "give back" and job.attempts == 1:
            given_back.append(job.attempts)
            raise GiveBack
        # With asyncio this is something to await, which the worker does.
        return job.ack() if job.value == "ack" else None  # type: ignore[func-returns-value]

    queue = client.queue("jobs")
    ids = {
        value: queue.put(value).id
        for value in ("fail", "retry", "bury", "give back", "ack", "return")
    }
    with running(worker, how):
        told.await_count("failed", 5)
        told.await_count("end", 3)
        told.await_count("released", 1)
    [dead] = client.queue("{jobs}-dead").peek(9)
    assert (dead.value, dead.reason) == ("fail", "LookupError: no such thing")
    retried, buried = queue.get(ids["retry"]), queue.get(ids["bury"])
    assert retried is not None
    assert buried is not None
    assert (retried.state, retried.reason) == (State.WAITING, "later")
    assert (buried.state, buried.reason) == (State.BURIED, "never")
    assert given_back == [1]
    assert queue.stats()["present"] == 2
    states = [event.state for event in told.events if event.kind == "failed"]
    assert Counter(states) == {
        State.WAITING: 3, State.GONE: 1, State.BURIED: 1
    }  # fmt: skip


@both
def test_a_payload_that_cannot_be_read_fails(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    worker.job("jobs", settings=QueueSettings(attempts=1))(lambda value: None)
    put = client.queue("jobs", serialiser="bytes").put("{not json")
    with running(worker, how):
        told.await_count("failed", 1)
    task = client.queue("jobs", serialiser="bytes").get(put.id)
    assert task is not None
    assert task.state is State.BURIED


@both
def test_leases_are_renewed_while_a_job_runs(client: Client, server: Server, how: str) -> None:
    """The job ends when its lease has been renewed for longer than it lasts by itself."""
    told = Told()
    worker = Worker(server.url, ttr=0.3, on_event=told)

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        first = job.task.lease_until
        assert first is not None
        with Client(server.url) as other:
            while True:
                [lease] = other.queue("jobs").leases().items
                assert lease.until is not None
                if (lease.until - first).total_seconds() > 0.6:
                    return

    client.queue("jobs").put("x")
    with running(worker, how):
        told.await_count("end", 1)
    assert [event.kind for event in told.events] == ["start", "end"]
    assert client.queue("jobs").stats()["present"] == 0


@both
def test_a_lost_lease_is_told_and_not_acknowledged(
    client: Client, server: Server, how: str
) -> None:
    told = Told()
    worker = Worker(server.url, ttr=0.3, on_event=told)
    lost = threading.Event()

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        with Client(server.url) as other:
            other.queue("jobs").snatch(job.id, delay=3600)
        told.await_count("lost", 1)
        lost.set()

    put = client.queue("jobs").put("x")
    with running(worker, how):
        assert lost.wait(30)
        told.await_count("end", 1)
    task = client.queue("jobs").get(put.id)
    assert task is not None
    assert task.state is State.WAITING


@both
def test_prefetched_jobs_are_given_back(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, prefetch=10, on_event=told)
    go = threading.Event()

    @worker.job("jobs")
    def work(value: int) -> None:
        assert go.wait(30)

    queue = client.queue("jobs")
    for number in range(8):
        queue.put(number)

    def let_go() -> None:
        told.await_count("released", 7)
        go.set()

    stopper = threading.Thread(target=let_go)
    stopper.start()
    with running(worker, how, 1):
        told.await_count("start", 1)
    stopper.join()
    stats = queue.stats()
    assert (stats.counts[State.READY], stats["acked"], stats["failures"]) == (7, 1, 0)


@both
def test_what_was_not_started_is_called_back(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, prefetch=2, on_event=told)
    go = threading.Event()
    order: list[str] = []

    @worker.job("jobs")
    def work(value: str) -> None:
        order.append(value)
        assert go.wait(30)

    jobs = client.queue("jobs")
    ids = {value: jobs.put(value, priority=5).id for value in ("first", "late", "later")}
    with running(worker, how, 1):
        told.await_count("start", 1)
        while jobs.stats().counts[State.TAKEN] < 3:
            client.ping()
        jobs.put("urgent", priority=1)
        back = jobs.get(ids["later"])
        assert back is not None
        assert (back.state, back.attempts, back.failures) == (State.READY, 0, 0)
        told.await_count("recalled", 1)
        go.set()
        told.await_count("end", 4)
    # The urgent one has perhaps not arrived when the second job begins.
    assert sorted(order) == ["first", "late", "later", "urgent"]
    assert order.index("urgent") < order.index("later")
    assert [event.attempts for event in told.events if event.kind == "end"] == [1, 1, 1, 1]
    assert jobs.stats()["failures"] == told.count("lost") == told.count("failed") == 0


class Line:
    """Stands for a connection, and keeps what is sent."""

    _sock = object()

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []

    def pack_commands(self, requests: list[list[bytes]]) -> list[list[bytes]]:
        return requests

    def send_packed_command(self, packed: list[list[bytes]], check_health: bool) -> None:
        assert not check_health
        self.sent.extend(packed)


def test_jobs_for_runs_that_wait_are_started_together(client: Client, server: Server) -> None:
    jobs = client.queue("jobs")
    for number in range(4):
        jobs.put(number)
    taken = [job for _ in range(4) if (job := jobs.take(ttr=60)) is not None]
    started: list[Job] = []
    stale: list[Job] = []
    cancelled: list[tuple[str, str]] = []
    prefetch = Prefetch(
        client,
        Worker(server.url, prefetch=2).plan,
        3,
        started=started.append,
        acked=lambda _: None,
        stale=stale.append,
        cancelled=lambda *told: cancelled.append(told),
    )
    line: Any = Line()
    prefetch._connection = line
    got: list[Job | None] = []
    runs = [
        threading.Thread(target=lambda: got.append(prefetch.next(None, None))) for _ in range(3)
    ]
    for run in runs:
        run.start()
    waiting = 0
    while waiting < 3:
        with prefetch._monitor:
            waiting = prefetch._waiting
            if waiting == 3:
                for at, job in enumerate(taken):
                    prefetch._arrived.append((0, at, time.monotonic(), job))
                prefetch._monitor.tell_change()
    for run in runs:
        run.join()
    receipts = [job.receipt for job in taken]
    assert line.sent == [[b"START", b"jobs", *(receipt.encode() for receipt in receipts[:3])]]
    assert [job.receipt for job in started] == receipts[:3]
    assert sorted(job.receipt for job in got if job is not None) == sorted(receipts[:3])
    # Each of them hears its own result.
    refused = [ResponseError("STALE it was called back"), ResponseError("CANCELLED by ann")]
    prefetch._hear([b"OK", *refused])
    assert (stale, cancelled) == ([taken[1]], [(receipts[2], "by ann")])


@both
def test_a_start_that_comes_too_late(client: Client, server: Server, how: str) -> None:
    proxy = DelayingProxy(server.port)
    told = Told()
    worker = Worker(proxy.url, prefetch=1, on_event=told)
    began, go = threading.Event(), threading.Event()
    broken_off: list[str] = []

    @worker.job("jobs")
    async def work(value: str) -> None:
        if value != "late" or began.is_set():
            return
        began.set()
        try:
            while not go.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            broken_off.append(value)
            raise

    jobs = client.queue("jobs")
    jobs.create()
    with running(worker, how, 1):
        while not jobs.stats()["subscribers"]:
            client.ping()
        proxy.hold()
        jobs.put("late", priority=5)
        assert began.wait(30)
        jobs.put("urgent", priority=1)
        jobs.put("more urgent", priority=0)
        proxy.let_go()
        told.await_count("lost", 1)
        go.set()
        while jobs.stats()["acked"] < 3:
            client.ping()
    assert broken_off == (["late"] if how == "asyncio" else [])
    assert jobs.stats()["failures"] == told.count("failed") == 0
    proxy.close()


@both
def test_one_job_of_a_fair_queue_is_taken_ahead(client: Client, server: Server, how: str) -> None:
    told = Told()
    settings = QueueSettings(ranking="fair")
    worker = Worker(server.url, prefetch=10, on_event=told)
    go = threading.Event()
    worker.job("jobs", settings=settings)(lambda value: go.wait(30) and None)
    jobs = client.queue("jobs")
    for number in range(8):
        jobs.put(number)
    with running(worker, how, 1):
        told.await_count("start", 1)
        while jobs.stats().counts[State.TAKEN] < 2:
            client.ping()
        assert jobs.stats().counts[State.TAKEN] == 2
        go.set()
        told.await_count("end", 8)


def test_what_is_done_is_not_given_back(client: Client, server: Server) -> None:
    """Between its end and its acknowledgement passes more than the grace of the worker."""
    over = threading.Event()

    def hook(event: Event) -> None:
        if event.kind == "end":
            worker.stop()
            assert over.wait(30)

    worker = Worker(server.url, grace=0, on_event=hook)
    worker.job("jobs")(lambda value: None)
    client.queue("jobs").create()
    client.queue("jobs").put("x")
    assert not worker.run()
    assert client.queue("jobs").stats().counts[State.TAKEN] == 1
    over.set()
    while client.stats()["present"]:
        client.ping()
    assert client.queue("jobs").stats()["acked"] == 1


@both
def test_a_worker_outlasts_a_server(own_server: Server, how: str) -> None:
    told = Told()
    worker = Worker(own_server.url, on_event=told, retry_for=0.2)
    worker.job("jobs")(lambda value: None)
    with Client(own_server.url) as client, running(worker, how):
        queue = client.queue("jobs")
        queue.put(1)
        told.await_count("end", 1)
        own_server.stop()
        own_server.start()
        queue.put(2)
        told.await_count("end", 2)
        own_server.kill()
        own_server.start()
        assert queue.put_and_wait(3, 30).outcome is Outcome.ACKED


@both
def test_lost_replies_lose_no_task(client: Client, server: Server, how: str) -> None:
    proxy = LossyProxy(server.port)
    told = Told()
    worker = Worker(proxy.url, ttr=1, prefetch=2, on_event=told)
    worker.job("jobs")(lambda value: proxy.lose(1) if value % 10 == 3 else None)
    queue = client.queue("jobs")
    queue.create()
    for number in range(40):
        queue.put(number)
    with running(worker, how):
        while queue.stats()["acked"] < 40:
            told.await_count("start", 1)
    assert proxy.lost >= 4
    assert queue.stats()["present"] == 0
    proxy.close()


@pytest.mark.parametrize("prefetch", [0, 3])
@both
def test_a_member_of_topics(client: Client, server: Server, how: str, prefetch: int) -> None:
    told = Told()
    worker = Worker(server.url, lease=2, prefetch=prefetch, on_event=told)
    seen: list[str] = []
    worker.member("news", "mailer")(seen.append)
    worker.member("alerts", "mailer")(seen.append)
    worker.job("jobs")(seen.append)
    news = client.topic("news")
    with running(worker, how):
        while not news.members() or not client.topic("alerts").members():
            client.ping()
        first = news.members()[0].incarnation
        assert news.publish("open") == 1
        client.topic("alerts").publish("fire")
        client.queue("jobs").put("job")
        told.await_count("end", 3)
        until = news.members()[0].lease_until
        # It goes on to give signs of life: its lease moves on, and it is the same member.
        while news.members()[0].lease_until == until:
            client.ping()
        assert news.members()[0].incarnation == first
        client.leave("mailer")
        while not news.publish("again"):
            client.ping()
        told.await_count("end", 4)
    assert sorted(seen) == ["again", "fire", "job", "open"]
    client.leave("mailer")


def test_queues_of_several_shards(program: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(program, tmp_path_factory.mktemp("shards"), "--shards", "4")
    server.start()
    told = Told()
    worker = Worker(server.url, prefetch=2, on_event=told)
    names = [f"queue-{number}" for number in range(6)]
    for name in names:
        worker.job(name)(lambda value: None)
    with Client(server.url) as client, running(worker, "threads"):
        for name in names:
            client.queue(name).put(1)
            client.queue(name).put(2)
        told.await_count("end", 12)
        while client.stats()["present"]:
            client.ping()
    server.stop()


def test_a_hook_that_raises_does_no_harm(client: Client, server: Server) -> None:
    def hook(event: Event) -> None:
        raise RuntimeError("the hook is broken")

    worker = Worker(server.url, on_event=hook)
    worker.job("jobs")(lambda value: None)
    with running(worker, "threads"):
        assert client.queue("jobs").put_and_wait("x", 30).outcome is Outcome.ACKED


def test_one_function_for_each_queue() -> None:
    worker = Worker()
    worker.job("jobs")(lambda value: None)
    with pytest.raises(ValueError, match="already"):
        worker.job("jobs")(lambda value: None)
    with pytest.raises(ValueError, match="other"):
        worker.plan.only({"other"})
