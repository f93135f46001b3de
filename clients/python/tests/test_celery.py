"""An ordinary Celery application on pinpriq."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue, pools

from pinpriq import Client, State
from servers import LossyProxy, Server

TESTS = Path(__file__).resolve().parent


def await_that(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until something is so that no event tells."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


class Application:
    """The application for one server, and what its tasks wrote."""

    def __init__(self, server: Server, place: Path) -> None:
        self.place = place
        self.environment = os.environ | {
            "SHOP_BROKER": server.url,
            "SHOP_PLACE": str(place),
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")]),
        }
        import celery_app

        self.app = celery_app.app
        self.app.conf.broker_url = server.url
        self.forget_connections()
        self.tasks = celery_app

    def forget_connections(self) -> None:
        """Close the connections to the broker of the last test."""
        pools.reset()
        self.app._pool = None
        self.app.amqp._producer_pool = None

    def lines(self, name: str) -> list[str]:
        path = self.place / name
        return path.read_text().split() if path.exists() else []

    def await_done(self, *names: str) -> None:
        await_that(lambda: set(names) <= set(self.lines("done")), f"{names}: {self.lines('done')}")

    def await_present(self, count: int) -> None:
        """Wait until so many tasks are left in the queue.

        A worker with processes gives back what it has not noticed to have begun when it stops.
        """
        with Client(self.environment["SHOP_BROKER"]) as client:
            queue = client.queue("celery")
            await_that(lambda: queue.stats()["present"] == count, f"{count} are not left")

    @contextmanager
    def worker(
        self, *arguments: str, app: str = "celery_app", **environment: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a worker while the block lasts. It stops in order, unless it is gone already."""
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", app, "worker", "--concurrency=2",
             "--loglevel=WARNING", "--without-gossip", "--without-mingle", *arguments],
            env=self.environment | environment, cwd=self.place, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def application(server: Server, tmp_path: Path) -> Iterator[Application]:
    application = Application(server, tmp_path)
    yield application
    application.forget_connections()


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_tasks_are_done_once(application: Application, pool: str) -> None:
    tasks = application.tasks
    names = [str(number) for number in range(60)]
    for name in names:
        (tasks.work if int(name) % 2 else tasks.work_late).delay(name)
    with application.worker("--pool", pool):
        application.await_done(*names)
        application.await_present(0)
    assert Counter(application.lines("done")) == Counter(names)


def test_higher_priorities_come_first(application: Application) -> None:
    for priority in (1, 9, 5):
        application.tasks.work.apply_async((str(priority),), priority=priority)
    with application.worker("--pool", "solo"):
        application.await_done("1", "5", "9")
    assert application.lines("done") == ["9", "5", "1"]


def test_a_share_by_header_or_option(application: Application, client: Client) -> None:
    application.tasks.work.apply_async(("a",), headers={"share": "ann", "cost": 3})
    application.tasks.work.apply_async(("b",), share="ben")
    application.tasks.work.apply_async(("c",))
    tasks = client.queue("celery", serialiser="bytes").peek(count=3)
    assert [(task.share, task.cost) for task in tasks] == [(b"ann", 3), (b"ben", 1), (None, 1)]
    with application.worker("--pool", "solo"):
        application.await_done("a", "b", "c")


def test_a_share_stays_with_a_task_that_is_tried_again(
    application: Application, client: Client
) -> None:
    queue = client.queue("celery", serialiser="bytes")
    application.tasks.put_off.apply_async(headers={"share": "ann"})
    with application.worker("--pool", "solo"):
        await_that(lambda: bool(queue.peek(state=State.WAITING)), "it is not tried again")
    [task] = queue.peek(state=State.WAITING)
    assert task.share == b"ann"


def test_the_convention_of_the_redis_transport(server: Server) -> None:
    options = {"lowest_priority_first": True, "queue_prefix": "app."}
    with Connection(server.url, transport_options=options) as connection:
        queue = connection.SimpleQueue("jobs")
        for priority in (5, 0, 9):
            queue.put(priority, priority=priority)
        got = [queue.get(timeout=10) for _ in range(3)]
        assert [message.payload for message in got] == [0, 5, 9]
        for message in got:
            message.ack()
        queue.close()
    with Client(server.url) as client:
        await_that(lambda: client.queue("app.jobs").stats()["present"] == 0, "not acknowledged")


def test_an_eta_is_a_delay(application: Application, client: Client) -> None:
    eta = datetime.now(timezone.utc) + timedelta(hours=1)
    application.tasks.work.apply_async(("later",), eta=eta)
    [task] = client.queue("celery", serialiser="bytes").peek(state=State.WAITING)
    assert task.ready_at is not None
    assert abs(task.ready_at - eta) < timedelta(seconds=1)
    application.tasks.work.apply_async(("soon",), countdown=0.3)
    with application.worker():
        application.await_done("soon")
        application.await_present(1)
    assert client.queue("celery").stats().counts[State.WAITING] == 1
    assert application.app.control.purge() == 1


def test_retries(application: Application) -> None:
    application.tasks.flaky.delay("x")
    with application.worker():
        application.await_done("x")
    assert application.lines("tries") == ["x", "x", "x"]


def test_a_long_task_keeps_its_lease(application: Application, client: Client) -> None:
    """It runs for longer than three leases, which are renewed meanwhile."""
    application.tasks.slow.delay("x")
    with application.worker(SHOP_LEASE="0.5"):
        await_that(lambda: bool(application.lines("began-x")), "it has not begun")
        [lease] = client.queue("celery").leases().items
        first = lease.until
        assert first is not None

        def renewed() -> bool:
            [lease] = client.queue("celery").leases().items
            return lease.until is not None and lease.until - first > timedelta(seconds=1.5)

        await_that(renewed, "the lease was not renewed")
        (application.place / "go-x").touch()
        application.await_done("x")
    assert len(application.lines("began-x")) == 1


def test_a_worker_that_stops_gives_back_what_it_holds(
    application: Application, client: Client
) -> None:
    for name in "abcdef":
        application.tasks.slow.delay(name)
    with application.worker("--prefetch-multiplier=2") as process:
        inspect = application.app.control.inspect(timeout=5, limit=1)
        begun = {"a", "b"}
        await_that(lambda: begun == set(_active(inspect)), "they have not begun")
        await_that(lambda: client.queue("celery").stats().counts[State.TAKEN] == 4, "not taken")
        process.terminate()
        for name in "ab":
            (application.place / f"go-{name}").touch()
        process.wait(timeout=60)
    assert sorted(application.lines("done")) == ["a", "b"]
    tasks = list(client.queue("celery", serialiser="bytes").tasks())
    assert [(task.state, task.failures) for task in tasks] == [(State.READY, 0)] * 4


def test_a_cancelled_task_is_not_begun_and_one_that_runs_can_be_done(
    application: Application, client: Client
) -> None:
    queue = client.queue("celery")
    queue.create()
    for name in "abc":
        application.tasks.slow.delay(name)
    ids = [task.id for task in queue.tasks()]
    arguments = ("--concurrency=1", "--prefetch-multiplier=2")
    with application.worker(*arguments, SHOP_LEASE="9"):
        inspect = application.app.control.inspect(timeout=5, limit=1)
        await_that(lambda: _active(inspect) == ["a"], "it has not begun")
        await_that(lambda: _count(inspect.reserved()) == 1, "the next one does not wait")
        states = [queue.cancel(id_) for id_ in ids]
        assert states == [State.TAKEN, State.TAKEN, State.GONE]
        await_that(lambda: _count(inspect.revoked()) == 2, "the worker has not heard of it")
        (application.place / "go-a").touch()
        application.await_done("a")
        application.await_present(0)
    assert application.lines("done") == ["a"]
    stats = queue.stats()
    assert (stats["acked"], stats["cancelled"], stats["failures"]) == (2, 1, 0)


def _count(tasks: Any) -> int:
    """Return how many tasks the workers tell of."""
    return sum(map(len, (tasks or {}).values()))


def _active(inspect: Any) -> list[str]:
    """Return the arguments of what the workers know to run."""
    active = inspect.active() or {}
    return [task["args"][0] for tasks in active.values() for task in tasks]


def test_tasks_of_a_killed_worker_come_again(application: Application, client: Client) -> None:
    application.tasks.slow.delay("x")
    with application.worker(SHOP_LEASE="1") as process:
        await_that(lambda: bool(application.lines("began-x")), "it has not begun")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    (application.place / "go-x").touch()
    with application.worker():
        application.await_done("x")
    assert len(application.lines("began-x")) == 2


def test_a_task_whose_process_dies_comes_again(application: Application) -> None:
    application.tasks.die_once.delay("x")
    with application.worker():
        application.await_done("x")


def test_remote_control(application: Application) -> None:
    application.tasks.slow.delay("x")
    control = application.app.control
    with application.worker("--hostname=one@test"):
        await_that(lambda: bool(application.lines("began-x")), "it has not begun")
        inspect = control.inspect(timeout=5, limit=1)
        assert inspect.ping() == {"one@test": {"ok": "pong"}}
        active = inspect.active()
        assert [task["name"] for task in active["one@test"]] == ["celery_app.slow"]
        assert "celery_app.work" in inspect.registered()["one@test"]
        assert inspect.reserved() == {"one@test": []}
        assert inspect.stats()["one@test"]["broker"]["transport"] == "pinpriq"
        command = [sys.executable, "-m", "celery", "-A", "celery_app", "inspect", "ping"]
        printed = subprocess.run(
            command, env=application.environment, cwd=TESTS, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert "one@test: OK" in printed.stdout
        (application.place / "go-x").touch()
        application.await_done("x")


def test_events_of_workers_arrive(application: Application) -> None:
    seen: list[str] = []
    with application.app.connection_for_read() as connection:
        receiver = application.app.events.Receiver(
            connection, handlers={"*": lambda event: seen.append(event["type"])}
        )
        with (
            receiver.consumer_context(wakeup=False) as (own_connection, _, _consumers),
            application.worker("-E"),
        ):
            application.tasks.work.delay("x")
            application.await_done("x")
            await_that(lambda: _drain(own_connection, seen), "no event of the task")


def _drain(connection: Any, seen: list[str]) -> bool:
    try:
        connection.drain_events(timeout=0.1)
    except OSError:
        return False
    return "task-succeeded" in seen


def test_two_workers_with_mingle_and_gossip(application: Application) -> None:
    with (
        application.worker("--hostname=one@test"),
        application.worker("--hostname=two@test"),
    ):
        control = application.app.control
        await_that(lambda: len(control.ping(timeout=1, limit=2)) == 2, "two workers", 60)
        for number in range(20):
            application.tasks.work.delay(str(number))
        application.await_done(*map(str, range(20)))
    assert len(application.lines("done")) == 20


def test_a_worker_outlasts_its_broker(own_server: Server, tmp_path: Path) -> None:
    application = Application(own_server, tmp_path)
    with application.worker() as process:
        application.tasks.work.delay("before")
        application.await_done("before")
        application.tasks.slow.delay("during")
        await_that(lambda: bool(application.lines("began-during")), "it has not begun")
        own_server.stop()
        own_server.start()
        application.tasks.work.delay("after")
        application.await_done("after")
        (application.place / "go-during").touch()
        application.await_done("during")
        own_server.kill()
        own_server.start()
        application.tasks.work.delay("again")
        application.await_done("again")
        assert process.poll() is None
    assert sorted(application.lines("done")) == ["after", "again", "before", "during"]
    assert len(application.lines("began-during")) == 1
    application.forget_connections()


def test_a_lost_reply_makes_no_second_message(application: Application, server: Server) -> None:
    proxy = LossyProxy(server.port)
    with Connection(proxy.url) as connection:
        queue = connection.SimpleQueue("jobs")
        proxy.lose(2, about=b"PUT\r\n$4\r\njobs")
        queue.put("x")
        queue.close()
    assert proxy.lost == 2
    proxy.close()
    with Client(server.url, serialiser="bytes") as client:
        assert client.queue("jobs").stats()["present"] == 1


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout"])
def test_exchanges_of_other_processes(server: Server, kind: str) -> None:
    """The publisher knows the exchange, and learns the queues from the server."""
    exchange = Exchange("news", type=kind)
    queues = [
        Queue("a", exchange, routing_key="news.a"),
        Queue("b", exchange, routing_key="news.*" if kind == "topic" else "news.b"),
    ]
    with Connection(server.url) as reader, Connection(server.url) as writer:
        got: list[tuple[str, str]] = []
        for queue in queues:
            queue(reader.channel()).declare()
        producer = writer.Producer(exchange=exchange)
        producer.publish("x", routing_key="news.a")

        def receive(body: str, message: Any) -> None:
            got.append((message.delivery_info["routing_key"], body))
            message.ack()

        with reader.Consumer(queues, callbacks=[receive]):
            expected = 1 if kind == "direct" else 2
            while len(got) < expected:
                reader.drain_events(timeout=10)
            with pytest.raises(TimeoutError):
                reader.drain_events(timeout=0.1)
    assert got == [("news.a", "x")] * expected
