"""The broker of Dramatiq."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq.errors import BrokerConnectionError, QueueJoinTimeout, QueueNotFound
from dramatiq.middleware import CurrentMessage

from pinpriq import Client, State
from pinpriq.dramatiq import PinpriqBroker
from servers import LossyProxy, Server


@pytest.fixture
def broker(server: Server) -> Iterator[PinpriqBroker]:
    broker = PinpriqBroker(server.url, lease=30)
    yield broker
    broker.close()


def declared(function: Callable[..., Any], broker: PinpriqBroker, name: str, **options: Any) -> Any:
    """Return an actor."""
    return dramatiq.actor(broker=broker, actor_name=name, **options)(function)


@pytest.fixture
def workers(broker: PinpriqBroker) -> Iterator[dramatiq.Worker]:
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
    worker.start()
    yield worker
    worker.stop()


def test_messages_are_worked_on(broker: PinpriqBroker, workers: dramatiq.Worker) -> None:
    seen: list[int] = []
    actor = declared(seen.append, broker, "work")
    for number in range(50):
        actor.send(number)
    broker.join("default", timeout=30_000)
    assert sorted(seen) == list(range(50))


def test_more_urgent_messages_come_first(broker: PinpriqBroker) -> None:
    seen: list[str] = []
    low = declared(lambda: seen.append("low"), broker, "low", priority=100)
    high = declared(lambda: seen.append("high"), broker, "high", priority=1)
    low.send()
    high.send()
    low.send_with_options(broker_priority=0)
    client = Client(broker.client.options.urls[0].replace("redis://", "pinpriq://"))
    with client:
        tasks = client.queue(broker.server_queue("default"), serialiser="bytes").peek(9)
    assert [task.priority for task in tasks] == [0, 1, 100]
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    broker.join("default", timeout=30_000)
    worker.stop()
    assert sorted(seen) == ["high", "low", "low"]


def test_a_delay_is_one_of_the_server(broker: PinpriqBroker, workers: dramatiq.Worker) -> None:
    ran = threading.Event()
    actor = declared(ran.set, broker, "work")
    sent_at = time.monotonic()
    actor.send_with_options(delay=300)
    queue = broker.client.queue(broker.server_queue("default"))
    assert queue.stats().counts[State.WAITING] == 1
    assert ran.wait(30)
    assert time.monotonic() - sent_at > 0.25


def test_what_is_given_up_is_a_dead_letter(broker: PinpriqBroker, workers: dramatiq.Worker) -> None:
    tries: list[int] = []

    def work(number: int) -> None:
        tries.append(number)
        if len(tries) <= 3:
            raise LookupError("no such thing")

    actor = declared(work, broker, "work", max_retries=2, min_backoff=10, max_backoff=20)
    actor.send(7)
    broker.join("default", timeout=30_000)
    assert tries == [7, 7, 7]
    [letter] = broker.dead_letters("default")
    assert (letter.actor_name, letter.args) == ("work", (7,))
    assert broker.redrive("default") == 1
    broker.join("default", timeout=30_000)
    assert len(tries) == 4
    assert broker.dead_letters("default") == []


def test_unknown_actors_are_dead_letters(broker: PinpriqBroker, workers: dramatiq.Worker) -> None:
    actor = declared(lambda: None, broker, "work")
    del broker.actors["work"]
    actor.send()
    broker.join("default", timeout=30_000)
    assert len(broker.dead_letters("default")) == 1
    broker.flush_all()
    assert broker.dead_letters("default") == []


def test_a_long_message_keeps_its_lease(server: Server) -> None:
    broker = PinpriqBroker(server.url, lease=2)
    runs: list[float] = []
    ended = threading.Event()

    def work() -> None:
        runs.append(time.monotonic())
        queue = broker.client.queue(broker.server_queue("default"))
        [first] = queue.leases().items
        while True:
            [lease] = queue.leases().items
            assert lease.until is not None
            assert first.until is not None
            if (lease.until - first.until).total_seconds() > 2:
                ended.set()
                return
            time.sleep(0.05)

    declared(work, broker, "work").send()
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    assert ended.wait(30)
    broker.join("default", timeout=30_000)
    worker.stop()
    broker.close()
    assert len(runs) == 1


def test_a_worker_that_stops_gives_back_what_it_holds(broker: PinpriqBroker) -> None:
    began, go = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        assert go.wait(30)

    actor = declared(work, broker, "work")
    for _ in range(4):
        actor.send()
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    assert began.wait(30)
    stopper = threading.Thread(target=worker.stop)
    stopper.start()
    go.set()
    stopper.join()
    counts = broker.client.queue(broker.server_queue("default")).stats().counts
    assert counts[State.TAKEN] == 0
    assert counts[State.READY] >= 1


def test_a_lost_reply_makes_no_second_message(server: Server) -> None:
    proxy = LossyProxy(server.port)
    broker = PinpriqBroker(proxy.url)
    actor = declared(lambda: None, broker, "work")
    proxy.lose(2, about=b"PUT")
    actor.send()
    assert proxy.lost == 2
    queue = broker.client.queue(broker.server_queue("default"))
    assert queue.stats()["present"] == 1
    broker.close()
    proxy.close()


def test_a_payload_that_is_no_message_is_set_aside(
    broker: PinpriqBroker, workers: dramatiq.Worker
) -> None:
    declared(lambda: None, broker, "work")
    queue = broker.client.queue(broker.server_queue("default"))
    queue.put(b"\xff not a message")
    broker.join("default", timeout=30_000)
    [task] = queue.peek(state=State.BURIED)
    assert task.reason is not None
    assert task.reason.startswith("the payload is not a message")


CHANGES: list[dict[str, Any]] = [
    {"options": None}, {"args": 7}, {"kwargs": []}, {"actor_name": None},
    {"queue_name": 7}, {"message_id": []}, {"message_timestamp": "x"}, {"odd": 1},
]  # fmt: skip

FOREIGN: list[dict[str, Any] | list[Any] | None] = [
    None,
    [],
    {},
    *(
        {
            "queue_name": "default", "actor_name": "work", "args": [], "kwargs": {},
            "options": {}, "message_id": "x", "message_timestamp": 1, **change,
        }
        for change in CHANGES
    ),
]  # fmt: skip


def test_what_no_worker_can_read_is_buried_and_the_rest_is_done(
    broker: PinpriqBroker, workers: dramatiq.Worker
) -> None:
    done = threading.Event()
    actor = declared(lambda: done.set(), broker, "work")
    queue = broker.client.queue(broker.server_queue("default"))
    payloads = [json.dumps(each).encode() for each in FOREIGN]
    for payload in [b"", b"text", b"\xff", b"[" * 100_000, *payloads]:
        queue.put(payload)
    actor.send()
    assert done.wait(30)
    broker.join("default", timeout=30_000)
    assert queue.stats().counts[State.BURIED] == len(FOREIGN) + 4


def test_a_dead_letter_has_the_priority_of_its_message(
    broker: PinpriqBroker, workers: dramatiq.Worker
) -> None:
    """Also one whose options say nonsense about it, and one for an actor that is not there."""
    declared(lambda: None, broker, "work")
    queue = broker.client.queue(broker.server_queue("default"))
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name="elsewhere", actor_name="none", args=(), kwargs={},
        options={"broker_priority": "x"},
    )  # fmt: skip
    queue.put(message.encode(), priority=7)
    broker.join("default", timeout=30_000)
    [letter] = broker.client.queue(broker.dead_queue("default")).peek()
    assert letter.priority == 7


def test_priorities_as_with_rabbitmq(server: Server) -> None:
    """There, a higher number is more urgent, and the priority of an actor is not sent."""
    broker = PinpriqBroker(server.url, highest_priority_first=True)
    actor = declared(lambda: None, broker, "work", priority=3)
    for priority in (0, 5, None, 2):
        options = {} if priority is None else {"broker_priority": priority}
        actor.send_with_options(kwargs={}, **options)
    tasks = broker.client.queue(broker.server_queue("default")).peek(9)
    assert [task.priority for task in tasks] == [-5, -2, 0, 0]
    with pytest.raises(ValueError, match="whole number"):
        actor.send_with_options(broker_priority=1.5)
    broker.close()


def test_connections_have_a_name(broker: PinpriqBroker) -> None:
    assert "name=dramatiq:" in broker.client.client_list()


def test_errors_are_those_of_dramatiq(own_server: Server) -> None:
    broker = PinpriqBroker(own_server.url, retry_for=0.2)
    actor = declared(lambda: None, broker, "work")
    with pytest.raises(QueueNotFound):
        broker.consume("nothing")
    with pytest.raises(QueueNotFound):
        broker.flush("nothing")
    actor.send()
    with pytest.raises(QueueJoinTimeout):
        broker.join("default", timeout=50)
    own_server.stop()
    with pytest.raises(BrokerConnectionError):
        actor.send()
    broker.close()


def test_messages_that_are_cancelled(server: Server) -> None:
    """One that runs is not tried again, and one that waits in the worker is not run."""
    broker = PinpriqBroker(server.url, lease=3)
    broker.add_middleware(CurrentMessage())
    queue = broker.client.queue(broker.server_queue("default"))
    queue.create()
    seen: list[tuple[int, bool]] = []

    def work(number: int) -> None:
        while sum(job.cancel_reason == "by ann" for job in broker.keeper.held()) < 2:
            for task in queue.tasks(state=State.TAKEN):
                queue.cancel(task.id, reason="by ann")
            time.sleep(0.01)
        message: Any = CurrentMessage.get_current_message()
        seen.append((number, message.job.cancelled.is_set()))
        raise LookupError("half done")

    actor = declared(work, broker, "work", min_backoff=10, max_backoff=20)
    for number in range(2):
        actor.send(number)
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=1)
    worker.start()
    broker.join("default", timeout=30_000)
    worker.stop()
    assert seen == [(0, True)]
    assert broker.dead_letters("default") == []
    assert (queue.stats()["cancelled"], queue.stats()["acked"]) == (2, 0)
    broker.close()
