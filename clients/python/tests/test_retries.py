"""What happens when replies are lost and servers go away."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pinpriq import AsyncClient, Client, Disconnected, QueueSettings, Stale, State, Unknown
from pinpriq.attempts import Again, Attempts
from pinpriq.errors import refusal, refusal_from
from pinpriq.requests import tasks as about_tasks
from servers import LossyProxy, Server


@pytest.fixture
def proxy(server: Server) -> Iterator[LossyProxy]:
    proxy = LossyProxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def lossy(proxy: LossyProxy) -> Iterator[Client]:
    with Client(proxy.url) as client:
        yield client


def test_a_put_whose_reply_is_lost_makes_one_task(
    client: Client, lossy: Client, proxy: LossyProxy
) -> None:
    proxy.lose(3, about=b"PUT")
    put = lossy.queue("jobs").put("x")
    assert proxy.lost == 3
    assert put.new
    assert [task.id for task in client.queue("jobs").peek(9)] == [put.id]


def test_even_if_the_task_is_done_before_it_is_sent_again(
    client: Client, lossy: Client, proxy: LossyProxy
) -> None:
    """The window of the unique key outlives the task."""
    client.queue("jobs").create()
    popped = threading.Event()

    def pop() -> None:
        assert client.queue("jobs").pop(wait=30) is not None
        popped.set()

    popper = threading.Thread(target=pop)
    popper.start()
    proxy.lose(4, about=b"PUT")
    lossy.queue("jobs").put("x")
    assert popped.wait(30)
    popper.join()
    assert client.queue("jobs").stats()["put"] == 1


async def test_a_put_with_asyncio_too(client: Client, proxy: LossyProxy) -> None:
    async with AsyncClient(proxy.url) as lossy:
        proxy.lose(3, about=b"PUT")
        await lossy.queue("jobs").put("x")
    assert proxy.lost == 3
    assert len(client.queue("jobs").peek(9)) == 1


def test_a_put_with_a_given_id_is_found_again(lossy: Client, proxy: LossyProxy) -> None:
    queue = lossy.queue("orders")
    queue.create(QueueSettings(ids="given"))
    proxy.lose(1, about=b"PUT")
    put = queue.put("x", id="order-1", unique="order-1")
    assert put.id == "order-1"
    assert len(queue.peek(9)) == 1


def test_a_put_without_key_is_not_sent_again(lossy: Client, proxy: LossyProxy) -> None:
    queue = lossy.queue("jobs")
    proxy.lose(1, about=b"PUT")
    with pytest.raises(Disconnected):
        queue.put("x", unique=None)
    assert len(queue.peek(9)) == 1


def test_a_pop_is_not_sent_again(lossy: Client, proxy: LossyProxy) -> None:
    queue = lossy.queue("jobs")
    queue.put(1)
    queue.put(2)
    proxy.lose(1, about=b"POP")
    with pytest.raises(Disconnected):
        queue.pop()
    task = queue.pop()
    assert task is not None
    assert task.value == 2


def test_an_ack_whose_reply_is_lost_is_done(lossy: Client, proxy: LossyProxy) -> None:
    queue = lossy.queue("jobs")
    queue.create()
    for number in range(3):
        queue.put(number)
    first, second, third = queue.take_many(3, ttr=60)
    proxy.lose(1, about=b"ACK")
    first.ack()
    proxy.lose(1, about=b"ACK")
    assert queue.ack(second.receipt, third.receipt) == [None, None]
    assert queue.stats()["acked"] == 3


def test_a_repeated_refusal_says_so(lossy: Client, proxy: LossyProxy) -> None:
    queue = lossy.queue("jobs")
    queue.put("x")
    job = queue.take(ttr=60)
    assert job is not None
    proxy.lose(1, about=b"FAIL")
    with pytest.raises(Stale) as refused:
        job.fail("no")
    assert refused.value.repeated


def test_a_take_whose_reply_is_lost_leaves_its_task_to_the_lease(
    lossy: Client, proxy: LossyProxy
) -> None:
    queue = lossy.queue("jobs")
    queue.put(1)
    queue.put(2)
    proxy.lose(1, about=b"TAKE")
    job = queue.take(ttr=60)
    assert job is not None
    assert job.value == 2
    assert queue.stats().counts[State.TAKEN] == 2


def test_requests_outlast_a_restart_of_the_server(own_server: Server) -> None:
    with Client(own_server.url) as client:
        queue = client.queue("jobs")
        queue.put(1)
        job = queue.take(ttr=60)
        assert job is not None
        # A server that is killed may forget a lease that is not on disk yet. A renewal is.
        job.touch()
        own_server.kill()
        starter = threading.Thread(target=own_server.start)
        starter.start()
        put = queue.put(2)
        job.ack()
        starter.join()
        assert [task.id for task in queue.tasks()] == [put.id]


def test_without_a_server_it_gives_up(own_server: Server) -> None:
    own_server.stop()
    with Client(own_server.url, retry_for=0.2) as client, pytest.raises(Disconnected):
        client.ping()


def test_unknown_is_sent_again_only_where_that_is_safe() -> None:
    from redis.exceptions import ResponseError

    error = ResponseError("UNKNOWN the owner has changed")
    safe = Attempts(about_tasks.take(["jobs"]), 10)
    assert isinstance(safe.judge(error), Again)
    never = Attempts(about_tasks.take(["jobs"], done=[("jobs", "1-1-1")]), 10)
    assert isinstance(never.judge(error), Unknown)
    late = Attempts(about_tasks.take(["jobs"]), 0)
    assert isinstance(late.judge(error), Unknown)


def test_try_again_is_always_sent_again() -> None:
    from redis.exceptions import ClusterDownError, TryAgainError

    never = Attempts(about_tasks.take(["jobs"], done=[("jobs", "1-1-1")]), 10)
    for error in (TryAgainError("the owner is changing"), ClusterDownError("silent")):
        assert isinstance(never.judge(error), Again)
    assert refusal_from(TryAgainError("x")).kind == "TRYAGAIN"


def test_refusals_can_be_pickled() -> None:
    import pickle

    first = refusal("FULL", "the queue is full", True)
    again = pickle.loads(pickle.dumps(first))
    assert (type(again), again.kind, again.repeated) == (type(first), "FULL", True)


def test_the_window_must_outlast_all_attempts() -> None:
    with pytest.raises(ValueError, match="window"):
        Client(retry_for=30)
    with pytest.raises(ValueError, match="pinpriq://"):
        Client("http://127.0.0.1")
    with pytest.raises(ValueError, match="either"):
        Client("pinpriq://127.0.0.1", port=1)
    assert Client(host="::1").options.urls == ("redis://[::1]:7251",)
    assert Client("pinpriqs://ada:secret@host").options.urls == ("rediss://ada:secret@host:7261",)
