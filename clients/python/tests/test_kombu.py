"""The transport of kombu: foreign tasks, lost bindings, temporary queues, order, options."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Exchange, Producer, Queue

import pinpriq.celery  # noqa: F401
from pinpriq import Client, State, Task
from servers import Server
from test_celery import Application, application, await_that  # noqa: F401

MESSAGE = {"body": "eA==", "properties": {"body_encoding": "base64"}}

CHANGES: list[dict[str, Any]] = [
    {"properties": None},
    {"properties": []},
    {"properties": {"delivery_info": None}},
    {"properties": {"body_encoding": "rot13"}},
    {"properties": {"body_encoding": 7}},
    {"headers": None},
    {"headers": "x"},
    {"body": None},
    {"body": {"x": 1}},
    {"body": "not base64"},
    {"content-type": 7},
    {"content-encoding": []},
]

FOREIGN = [
    *(b"", b"text", b"\xff\xfe", b"null", b"7", b"[]", b'["body"]', b"{}", b'{"body": "eA=="}'),
    b"[" * 100_000,
    *(json.dumps({**MESSAGE, **change}).encode() for change in CHANGES),
]


@contextmanager
def connections(server: Server, count: int, **options: Any) -> Iterator[list[Connection]]:
    """Connect as several processes would."""
    made = [Connection(server.url, transport_options=options) for _ in range(count)]
    try:
        yield made
    finally:
        for connection in made:
            connection.release()


def receive_all(connection: Connection, *queues: Queue) -> list[Any]:
    """Return the bodies of all messages that are there, acknowledged."""
    got = []
    for queue in queues:
        bound = queue(connection.default_channel)
        while (message := bound.get()) is not None:
            got.append(message.payload)
            message.ack()
    return got


def tasks_of(client: Client, queue: str) -> list[Task]:
    return list(client.queue(queue, serialiser="bytes").tasks())


@pytest.mark.parametrize("how", ["get", "consume"])
def test_what_is_no_message_is_buried(server: Server, client: Client, how: str) -> None:
    queue = client.queue("jobs", serialiser="bytes")
    for payload in FOREIGN:
        queue.put(payload)
    got: list[Any] = []

    def receive(body: Any, message: Any) -> None:
        got.append(body)
        message.ack()

    with connections(server, 1) as [connection]:
        Producer(connection).publish({"x": 1}, routing_key="jobs")
        if how == "get":
            got = receive_all(connection, Queue("jobs"))
        else:
            with connection.Consumer([Queue("jobs")], callbacks=[receive]):
                while not got:
                    connection.drain_events(timeout=10)
    assert got == [{"x": 1}]
    await_that(lambda: queue.stats().counts[State.TAKEN] == 0, "not buried")
    buried = queue.peek(99, state=State.BURIED)
    assert sorted(task.payload for task in buried) == sorted(FOREIGN)
    assert all(str(task.reason).startswith("the payload is not a message: ") for task in buried)


def test_a_celery_worker_outlives_what_is_no_message(
    application: Application,  # noqa: F811
    client: Client,
) -> None:
    queue = client.queue("celery", serialiser="bytes")
    for payload in FOREIGN:
        queue.put(payload)
    application.tasks.work.delay("good")
    with application.worker() as process:
        application.await_done("good")
        await_that(lambda: queue.stats().counts[State.BURIED] == len(FOREIGN), "not buried")
        application.tasks.work.delay("better")
        application.await_done("better")
        assert process.poll() is None


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout"])
@pytest.mark.parametrize("loss", ["drop", "truncate", "others"])
def test_bindings_that_are_lost_are_made_again(
    server: Server, client: Client, kind: str, loss: str
) -> None:
    exchange = Exchange("news", type=kind)
    mine, theirs = (Queue(name, exchange, routing_key="news.a") for name in ("mine", "theirs"))
    with connections(server, 2) as [here, there]:
        mine(here.default_channel).declare()
        theirs(there.default_channel).declare()
        table = client.queue("kombu.bindings.news")
        if loss == "truncate":
            table.truncate()
        else:
            table.drop()
        if loss == "others":
            # The other process makes the table again, without the binding of this one.
            there.transport.bindings.table("news", 0.0)
        here.transport.bindings.forget("news")
        producer = Producer(here, exchange=exchange)
        producer.publish("x", routing_key="news.a")
        # Who only consumes makes its bindings again from time to time.
        there.transport.bindings.table("news", 0.0)
        here.transport.bindings.forget("news")
        producer.publish("y", routing_key="news.a")
        assert receive_all(here, mine) == ["x", "y"]
        assert "y" in receive_all(there, theirs)


def test_a_consumer_renews_what_it_finds_missing(server: Server, client: Client) -> None:
    exchange = Exchange("news", type="topic")
    lasting = Queue("lasting", exchange, routing_key="news.#")
    temporary = Queue("temporary", exchange, routing_key="news.#", auto_delete=True)
    with connections(server, 2) as [here, there]:
        with here.Consumer([lasting, temporary]):
            client.queue("kombu.bindings.news").drop()
            client.queue("kombu.bindings.").drop()
            here.transport.keeper._refresh()
            exchange(there.default_channel).declare()
            Producer(there, exchange=exchange).publish("x", routing_key="news.a")
            for name in ("lasting", "temporary"):
                assert len(tasks_of(client, name)) == 1
        here.release()


def test_remote_control_outlives_a_server_that_keeps_nothing(program: str, tmp_path: Path) -> None:
    server = Server(program, tmp_path / "data", "--durability", "memory")
    server.start()
    own = Application(server, tmp_path)
    with own.worker("--hostname=one@test"):
        control = own.app.control
        await_that(lambda: bool(control.ping(timeout=1, limit=1)), "no answer")
        server.kill()
        server.start()
        await_that(lambda: bool(control.ping(timeout=1, limit=1)), "no answer again")
        own.tasks.work.delay("x")
        own.await_done("x")
    own.forget_connections()
    server.stop()


def test_a_foreign_task_in_a_table_harms_nothing(server: Server, client: Client) -> None:
    exchange = Exchange("news", type="topic")
    queue = Queue("news", exchange, routing_key="news.#")
    with connections(server, 1) as [connection]:
        queue(connection.default_channel).declare()
        table = client.queue("kombu.bindings.news", serialiser="bytes")
        for number, payload in enumerate(
            [b"text", b"{}", b"[1, 2]", b'["a", "(", "q"]', b'["a", null, "q", 1, "odd"]']
        ):
            table.put(payload, id=f"foreign-{number}")
        connection.transport.bindings.forget("news")
        Producer(connection, exchange=exchange).publish("x", routing_key="news.a")
        assert receive_all(connection, queue) == ["x"]


def test_unbind_from_ends_a_binding(server: Server) -> None:
    exchange = Exchange("news", type="direct")
    queue = Queue("jobs", exchange, routing_key="a")
    with connections(server, 2) as [here, there]:
        mine, theirs = queue(here.default_channel), queue(there.default_channel)
        mine.declare()
        mine.bind_to(exchange, routing_key="b")
        theirs.declare()
        theirs.unbind_from(exchange, routing_key="a")
        for connection in (here, there):
            # It stays so for those that have made the binding too.
            connection.transport.bindings.forget("news")
            for key in ("a", "b"):
                Producer(connection, exchange=exchange).publish(key, routing_key=key)
        assert receive_all(here, queue) == ["b", "b"]
        # Until one of them makes it again.
        mine.bind_to(exchange, routing_key="a")
        Producer(here, exchange=exchange).publish("a", routing_key="a")
        assert receive_all(here, queue) == ["a"]


def test_a_queue_that_others_have_bound_is_deleted(server: Server, client: Client) -> None:
    exchange = Exchange("news", type="fanout")
    queue = Queue("jobs", exchange)
    with connections(server, 2) as [here, there]:
        queue(here.default_channel).declare()
        Producer(here, exchange=exchange).publish("x")
        there.default_channel.queue_delete("jobs")
        here.transport.bindings.forget("news")
        Producer(here, exchange=exchange).publish("y")
        assert tasks_of(client, "jobs") == []
        queue(here.default_channel).declare()
        here.default_channel.exchange_delete("news")
        assert "kombu.bindings.news" not in list(client.queue_names())


def test_applications_with_prefixes_share_nothing(server: Server, client: Client) -> None:
    exchange = Exchange("news", type="fanout")
    with (
        connections(server, 1, queue_prefix="one.") as [one],
        connections(server, 1, queue_prefix="two.") as [two],
    ):
        for connection in (one, two):
            Queue("jobs", exchange)(connection.default_channel).declare()
        Producer(one, exchange=exchange).publish("x")
        assert receive_all(two, Queue("jobs")) == []
        assert receive_all(one, Queue("jobs")) == ["x"]
        assert all(name.startswith(("one.", "two.")) for name in client.queue_names())


@pytest.mark.parametrize(
    ("arguments", "ttl_s"),
    [
        ({"auto_delete": True}, 3600),
        ({"exclusive": True}, 3600),
        ({"expires": 600.0}, 600),
        ({"expires": 1.0}, 60),
        ({"auto_delete": True, "expires": 60.0, "message_ttl": 5.0}, 5),
        ({"message_ttl": 7.0}, 7),
    ],
)
@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", ""])
def test_messages_of_queues_that_may_be_dead_end(
    server: Server, client: Client, arguments: dict[str, Any], ttl_s: float, kind: str
) -> None:
    """From any publisher, over any exchange."""
    exchange = Exchange("news" if kind else "", type=kind or "direct")
    with connections(server, 2) as [owner, publisher]:
        Queue("jobs", exchange, routing_key="jobs", **arguments)(owner.default_channel).declare()
        if kind:
            exchange(publisher.default_channel).declare()
        Producer(publisher, exchange=exchange).publish("x", routing_key="jobs")
        [task] = tasks_of(client, "jobs")
    assert task.ttl_at is not None
    left = task.ttl_at - datetime.now(timezone.utc)
    assert timedelta(seconds=ttl_s - 10) < left <= timedelta(seconds=ttl_s)


def test_a_queue_that_lasts_has_messages_that_last(server: Server, client: Client) -> None:
    with connections(server, 2) as [owner, publisher]:
        Queue("jobs")(owner.default_channel).declare()
        for connection in (owner, publisher):
            Producer(connection).publish("x", routing_key="jobs")
        assert [task.ttl_at for task in tasks_of(client, "jobs")] == [None, None]


def test_a_temporary_queue_goes_with_its_consumer(server: Server, client: Client) -> None:
    with connections(server, 2) as [owner, publisher]:
        queue = Queue("reply", auto_delete=True)
        owner.Consumer([queue]).consume()
        Producer(publisher).publish("x", routing_key="reply")
        owner.release()
        assert "reply" not in list(client.queue_names())
        assert tasks_of(client, "kombu.bindings.")[0].id == "mark"


def test_events_of_workers_for_a_dead_monitor_end(
    application: Application,  # noqa: F811
    client: Client,
) -> None:
    """`celery events` and Flower leave a queue behind when they are killed."""
    monitor = application.app.connection_for_read()
    receiver = application.app.events.Receiver(monitor, handlers={})
    receiver.queue(monitor.default_channel).declare()
    with application.worker("-E"):
        application.tasks.work.delay("x")
        application.await_done("x")
        await_that(lambda: bool(tasks_of(client, receiver.queue.name)), "no event")
    assert all(task.ttl_at is not None for task in tasks_of(client, receiver.queue.name))
    bindings = tasks_of(client, "kombu.bindings.celeryev")
    assert [task.ttl_at for task in bindings if receiver.queue.name.encode() in task.payload] != []
    for task in bindings:
        assert task.id == "mark" or task.ttl_at is not None
    monitor.release()


@pytest.mark.parametrize("how", ["requeue", "reject"])
def test_what_is_given_back_is_there_for_what_follows(
    server: Server, client: Client, how: str
) -> None:
    with connections(server, 1) as [connection]:
        channel = connection.default_channel
        queue = Queue("jobs")(channel)
        queue.declare()
        for number in range(20):
            Producer(connection).publish(number, routing_key="jobs")

            def give_back() -> None:
                message = queue.get()
                assert message is not None
                message.requeue() if how == "requeue" else message.reject(requeue=True)

            give_back()
            assert channel._size("jobs") == 1
            give_back()
            assert queue.queue_declare().message_count == 1
            give_back()
            message = queue.get()
            assert message is not None
            assert (message.payload, message.delivery_info["redelivered"]) == (number, True)
            message.ack()
        Producer(connection).publish("x", routing_key="jobs")
        give_back()
        assert queue.purge() == 1
    assert client.queue("jobs").stats()["present"] == 0


def test_a_simple_queue_sees_what_was_rejected(server: Server) -> None:
    with connections(server, 1) as [connection]:
        queue = connection.SimpleQueue("jobs")
        queue.put("x")
        for _ in range(20):
            queue.get_nowait().reject(requeue=True)
        queue.get_nowait().ack()
        with pytest.raises(Empty):
            queue.get_nowait()
        queue.close()


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("{}/1", {}, "no path such as '1'"),
        ("{}//x", {}, "no path such as"),
        ("{}", {"visibility_timeout": 3600}, "visibility_timeout"),
        ("{}", {"global_keyprefix": "x"}, "global_keyprefix"),
    ],
)
def test_what_makes_no_difference_is_refused(
    server: Server, url: str, options: dict[str, Any], words: str
) -> None:
    connection = Connection(url.format(server.url), transport_options=options)
    with pytest.raises(ValueError, match=words):
        connection.connect()


@pytest.mark.parametrize(
    "arguments", [{"max_length": 2}, {"queue_arguments": {"x-dead-letter-exchange": "dead"}}]
)
def test_arguments_of_queues_that_make_no_difference_are_refused(
    server: Server, arguments: dict[str, Any]
) -> None:
    with connections(server, 1) as [connection]:
        with pytest.raises(ValueError, match=r"\['x-"):
            Queue("a", **arguments)(connection.default_channel).declare()
        fulfilled = {"x-queue-type": "quorum"}
        queue = Queue("b", max_priority=9, queue_arguments=fulfilled)
        queue(connection.default_channel).declare()


@pytest.mark.parametrize("priority", [1.5, float("inf")])
def test_a_priority_is_a_whole_number(server: Server, priority: float) -> None:
    with (
        connections(server, 1) as [connection],
        pytest.raises((ValueError, OverflowError)),
    ):
        Producer(connection).publish("x", routing_key="jobs", priority=priority)


def test_the_latest_eta_is_as_good_as_any(
    application: Application,  # noqa: F811
    client: Client,
) -> None:
    for eta in (datetime.max, datetime.max.replace(tzinfo=timezone.utc)):
        application.tasks.work.apply_async(("never",), eta=eta)
    tasks = tasks_of(client, "celery")
    assert [task.state for task in tasks] == [State.WAITING] * 2
    application.app.control.purge()


def test_connections_have_a_name(server: Server, client: Client) -> None:
    with connections(server, 1) as [connection]:
        Producer(connection).publish("x", routing_key="jobs")
        message = Queue("jobs")(connection.default_channel).get()
        [lease] = client.queue("jobs").leases().items
        assert lease.name is not None
        assert lease.name.startswith("kombu:")
        message.ack()


def test_celery_knows_the_scheme_by_itself(server: Server) -> None:
    script = (
        "import sys, celery\n"
        "app = celery.Celery(broker=sys.argv[1])\n"
        "app.send_task('x')\n"
        "assert 'pinpriq.dramatiq' not in sys.modules\n"
        "assert app.connection_for_write().transport.driver_name == 'pinpriq'\n"
    )
    subprocess.run([sys.executable, "-c", script, server.url], check=True)


def test_a_second_address_is_used(server: Server) -> None:
    url = f"pinpriq://127.0.0.1:1;{server.url}"
    with Connection(url, transport_options={"retry_for": 0}) as connection:
        connection.ensure_connection(max_retries=3)
        assert connection.port == server.port
