"""Workers whose jobs end in unexpected ways."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from pinpriq import Bury, Client, Event, GiveBack, QueueSettings, Retry, State, Worker
from pinpriq.job import reason_of
from pinpriq.worker.plan import Plan
from pinpriq.worker.policy import Policy
from servers import Server
from test_worker import Told, both, running


class Unreadable(Exception):
    """An exception that cannot say what it is about."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Mute(Exception):
    """An exception whose words are none."""

    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


ENDS: list[Callable[[], BaseException]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    BaseException,
    Unreadable,
    Mute,
    MemoryError,
    RecursionError,
]


@both
@pytest.mark.parametrize("is_async", [False, True])
def test_no_end_of_a_job_ends_the_worker(
    client: Client, server: Server, how: str, is_async: bool
) -> None:
    """Each end is a failure of its job, and the one worker goes on to the next one."""
    told = Told()
    worker = Worker(server.url, on_event=told)
    queue = client.queue("jobs")
    queue.configure(QueueSettings(attempts=1))

    def work(value: int) -> None:
        if value < len(ENDS):
            raise ENDS[value]()

    async def work_async(value: int) -> None:
        await asyncio.sleep(0)
        work(value)

    worker.job("jobs")(work_async if is_async else work)
    for number in range(len(ENDS) + 1):
        queue.put(number)
    with running(worker, how, 1):
        told.await_count("failed", len(ENDS))
        told.await_count("end", 1)
    buried = queue.peek(99, state=State.BURIED)
    assert sorted(task.value for task in buried) == list(range(len(ENDS)))
    reasons = {task.value: task.reason for task in buried}
    assert reasons[0] == "SystemExit"
    assert reasons[7] == "Unreadable, whose message cannot be read"
    assert queue.stats()["present"] == len(ENDS)


@both
def test_a_job_that_cancels_itself_has_failed(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)

    @worker.job("jobs", settings=QueueSettings(attempts=1))
    async def work(value: str) -> None:
        if value == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    client.queue("jobs").put("cancel")
    client.queue("jobs").put("go on")
    with running(worker, how, 1):
        told.await_count("failed", 1)
        told.await_count("end", 1)
    assert [task.reason for task in client.queue("jobs").peek(state=State.BURIED)] == [
        "CancelledError"
    ]


def _yielding(value: object) -> Iterator[object]:
    yield value


async def _yielding_async(value: object) -> AsyncIterator[object]:
    yield value


class _Yielding:
    def __call__(self, value: object) -> Iterator[object]:
        yield value


@pytest.mark.parametrize(
    "function",
    [_yielding, _yielding_async, _Yielding(), functools.partial(_yielding), _Yielding().__call__],
)
def test_a_generator_is_refused_when_it_is_registered(function: Callable[..., Any]) -> None:
    worker = Worker()
    with pytest.raises(TypeError, match="yield"):
        worker.job("jobs")(function)
    with pytest.raises(TypeError, match="yield"):
        worker.member("news", "mailer")(function)
    assert worker.plan.handlers == {}


@both
def test_what_was_returned_and_has_not_run_is_no_success(
    client: Client, server: Server, how: str
) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    ran = threading.Event()

    async def later() -> None:
        ran.set()

    def work(value: str) -> object:
        return {"generator": _yielding, "async generator": _yielding_async}.get(
            value, lambda _: later()
        )(value)

    worker.job("jobs", settings=QueueSettings(attempts=1))(work)
    for value in ("generator", "async generator", "coroutine"):
        client.queue("jobs").put(value)
    with running(worker, how):
        told.await_count("failed", 2)
        told.await_count("end", 1)
    assert ran.is_set()
    buried = client.queue("jobs").peek(9, state=State.BURIED)
    assert sorted(str(task.reason) for task in buried) == [
        "TypeError: the function returned async_generator, which has not run",
        "TypeError: the function returned generator, which has not run",
    ]


@both
def test_a_wish_that_makes_no_sense_fails_the_job(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)
    wishes: list[Callable[[], BaseException]] = [
        lambda: Retry("x", delay=-1),
        lambda: Retry("x", delay=float("nan")),
        lambda: GiveBack(delay=float("inf")),
        lambda: Retry(7),  # type: ignore[arg-type]
        lambda: Bury(None),  # type: ignore[arg-type]
    ]

    @worker.job("jobs", settings=QueueSettings(attempts=1))
    def work(value: int) -> None:
        raise wishes[value]()

    for number in range(len(wishes)):
        client.queue("jobs").put(number)
    with running(worker, how, 1):
        told.await_count("failed", len(wishes))
    assert len(client.queue("jobs").peek(9, state=State.BURIED)) == len(wishes)


@both
def test_a_hook_that_ends_the_program_ends_nothing(
    client: Client, server: Server, how: str
) -> None:
    ended = threading.Event()

    def hook(event: Event) -> None:
        if event.kind == "end":
            ended.set()
        raise SystemExit

    worker = Worker(server.url, on_event=hook)
    worker.job("jobs")(lambda value: None)
    client.queue("jobs").put("x")
    with running(worker, how, 1):
        assert ended.wait(30)
    assert client.queue("jobs").stats()["present"] == 0


@both
def test_a_failing_task_leaves_the_queue_to_the_others(
    client: Client, server: Server, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue says nothing about failures, so the worker does, as `take --exec` does."""
    told = Told()
    worker = Worker(server.url, on_event=told)

    @worker.job("jobs")
    def work(value: str) -> None:
        if value == "bad":
            raise LookupError("no such thing")

    queue = client.queue("jobs")
    bad = queue.put("bad", priority=-1).id
    for number in range(5):
        queue.put(f"good {number}")
    with caplog.at_level(logging.INFO), running(worker, how, 1):
        told.await_count("end", 5)
        told.await_count("failed", 1)
    task = queue.get(bad)
    assert task is not None
    assert (task.state, task.failures) in [(State.WAITING, 1), (State.READY, 1), (State.WAITING, 2)]
    lines = [record.getMessage() for record in caplog.records]
    failure = f"the job {bad} of jobs failed at attempt 1: LookupError: no such thing: "
    assert f"{failure}comes back in 1 s" in lines
    first = next(line for line in lines if line.startswith("serving"))
    assert first.startswith(f"serving jobs of 127.0.0.1:{server.port}, as worker:")
    assert any(line.startswith("stopping") for line in lines)
    assert lines[-1] == "stopped"


@both
def test_the_fifth_failure_buries(client: Client, server: Server, how: str) -> None:
    told = Told()
    worker = Worker(server.url, on_event=told)

    @worker.job("jobs", settings=QueueSettings(backoff=0.001))
    def work(value: str) -> None:
        raise LookupError(value)

    client.queue("jobs").put("bad")
    with running(worker, how, 1):
        told.await_count("failed", 5)
    states = [event.state for event in told.events if event.kind == "failed"]
    assert states == [State.WAITING] * 4 + [State.BURIED]
    [task] = client.queue("jobs").peek(state=State.BURIED)
    assert task.reason == "LookupError: bad"


@both
def test_a_task_that_killed_its_workers_is_not_run_again(
    client: Client, server: Server, how: str
) -> None:
    queue = client.queue("jobs")
    queue.configure(QueueSettings(backoff=0.001))
    put = queue.put("deadly")
    for _ in range(5):
        job = queue.take(ttr=60, wait=30)
        assert job is not None
        job.fail("its worker died")
    told = Told()
    worker = Worker(server.url, on_event=told)
    worker.job("jobs")(lambda value: None)
    with running(worker, how, 1):
        told.await_count("failed", 1)
    assert told.count("start") == 0
    task = queue.get(put.id)
    assert task is not None
    assert task.state is State.BURIED
    assert task.reason == (
        "failed 5 times, while 5 are allowed: not run again; the last time: its worker died"
    )


def test_back_offs_double_up_to_a_day_and_leave_the_rest_to_the_queue() -> None:
    usual = Policy()
    assert [usual.delay_s(failures) for failures in (1, 2, 4)] == [1, 2, 8]
    assert usual.delay_s(10**6) == 86_400
    assert not usual.gives_up(4)
    assert usual.gives_up(5)
    strict = Policy(attempts=3, backoff_s=0.0, dead_letter="dead")
    assert strict.delay_s(2) is None
    assert not strict.gives_up(9)
    assert strict.next_step(State.GONE, 3, None) == "moved to dead, as a dead letter"
    assert strict.next_step(State.GONE, 2, None) == "its time to live is over, or it was cancelled"


@both
def test_a_worker_has_a_name(client: Client, server: Server, how: str) -> None:
    told, go = Told(), threading.Event()
    worker = Worker(server.url, on_event=told)
    worker.job("jobs")(lambda value: go.wait(30))
    client.queue("jobs").put("x")
    with running(worker, how, 1):
        told.await_count("start", 1)
        [lease] = client.queue("jobs").leases().items
        assert lease.name is not None
        assert lease.name.startswith("worker:")
        assert lease.name.endswith(f":{os.getpid()}")
        assert lease.name in client.client_list()
        go.set()
    named = Worker(server.url, client_name="mine")
    with named.client() as own:
        assert "name=mine" in own.client_list()


async def test_a_worker_that_is_cancelled_works_no_more(client: Client, server: Server) -> None:
    began = asyncio.Event()
    broken_off: list[str] = []
    worker = Worker(server.url)

    @worker.job("jobs")
    async def work(value: str) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.append(value)

    queue = client.queue("jobs")
    put = queue.put("x")
    running_worker = asyncio.create_task(worker.run_async(tasks=2))
    await began.wait()
    running_worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_worker
    assert broken_off == ["x"]
    task = queue.get(put.id)
    assert task is not None
    assert (task.state, task.failures) == (State.READY, 0)


def test_a_reason_is_there_whatever_was_raised() -> None:
    assert reason_of(Unreadable()) == "Unreadable, whose message cannot be read"
    assert reason_of(Mute()) == "Mute, whose message cannot be read"
    assert reason_of(SystemExit()) == "SystemExit"


def test_a_plan_says_what_it_serves() -> None:
    worker = Worker()
    assert worker.plan.described() == "nothing"
    worker.job("jobs")(print)
    worker.member("news", "mailer")(print)
    assert worker.plan.described() == "jobs and the topics news as mailer"
    assert isinstance(worker.plan, Plan)
