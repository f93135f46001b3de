"""Every command of a queue, without asyncio."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from pinpriq import (
    NO_PRIORITY,
    BadArgument,
    Changed,
    Client,
    Exists,
    Full,
    IdRequired,
    NoQueue,
    NotFound,
    Outcome,
    QueueSettings,
    Refused,
    SerialisationError,
    Stale,
    State,
    Taken,
    WrongState,
    commands,
)
from pinpriq.commands import BulkOptions


def test_put_take_and_ack(client: Client) -> None:
    queue = client.queue("jobs")
    put = queue.put({"to": "ada"}, priority=3, key="k", ttl=timedelta(hours=1))
    assert put.new
    assert put.outcome is None
    job = queue.take(ttr=60)
    assert job is not None
    assert (job.id, job.value, job.attempts) == (put.id, {"to": "ada"}, 1)
    task = job.task
    assert (task.priority, task.key, task.state) == (3, b"k", State.TAKEN)
    assert task.lease_until is not None
    assert task.lease_until > datetime.now(timezone.utc) + timedelta(seconds=50)
    job.ack()
    assert queue.get(put.id) is None
    with pytest.raises(Stale) as refused:
        job.ack()
    assert (refused.value.kind, refused.value.repeated) == ("STALE", False)


def test_held_task_waits_until_it_is_freed(client: Client) -> None:
    queue = client.queue("approvals")
    put = queue.put("order", held=True)
    task = queue.get(put.id)
    assert task is not None
    assert (task.held, task.state, task.ready_at) == (True, State.WAITING, None)
    assert queue.take(ttr=60) is None
    assert queue.restart(put.id) is State.READY
    other = queue.put("order", held=True)
    job = queue.take(ttr=60, id=other.id)
    assert job is not None
    assert (job.id, job.task.held) == (other.id, False)
    assert queue.take(ttr=60, id=other.id) is None
    job.ack()


def test_task_has_attempts_of_its_own(client: Client) -> None:
    queue = client.queue("fragile")
    put = queue.put("once", attempts=1, backoff="none", backoff_max=timedelta(seconds=2))
    task = queue.get(put.id)
    assert task is not None
    assert (task.attempts_max, task.backoff, task.backoff_max) == (1, "none", 2.0)
    job = queue.take(ttr=60)
    assert job is not None
    assert job.fail("no") is State.BURIED
    other = queue.get(queue.put("more", attempts="none", backoff=5).id)
    assert other is not None
    assert (other.attempts_max, other.backoff, other.backoff_max) == ("none", 5.0, None)


def test_headers_travel_with_the_task(client: Client) -> None:
    queue = client.queue("jobs")
    put = queue.put("x", headers={"tenant": "acme", "raw": b"\xff"})
    job = queue.take(ttr=60)
    assert job is not None
    assert job.task.headers == {"tenant": "acme", "raw": "\udcff"}
    job.release()
    queue.update(put.id, headers={"a": "1"})
    queue.update(put.id, priority=2)
    task = queue.get(put.id)
    assert task is not None
    assert task.headers == {"a": "1"}
    queue.update(put.id, headers={})
    task = queue.get(put.id)
    assert task is not None
    assert task.headers == {}
    queue.put("y", headers={})
    with pytest.raises(BadArgument, match="'Tenant'"):
        queue.put("z", headers={"Tenant": "acme"})


def test_lower_priorities_come_first(client: Client) -> None:
    queue = client.queue("jobs")
    for priority in (5, -1, 3):
        queue.put(priority, priority=priority)
    assert [task.value for task in queue.peek(9)] == [-1, 3, 5]
    assert [task.value for task in queue.peek(9, from_="max")] == [5, 3, -1]
    assert [job.value for job in queue.take_many(9, ttr=60)] == [-1, 3, 5]


def test_delay_and_moment(client: Client) -> None:
    queue = client.queue("jobs")
    put = queue.put("later", delay=3600)
    task = queue.get(put.id)
    assert task is not None
    assert task.state is State.WAITING
    assert task.ready_at is not None
    at = datetime.now(timezone.utc) + timedelta(hours=2)
    task = queue.get(queue.put("at", at=at).id)
    assert task is not None
    assert task.ready_at is not None
    assert abs(task.ready_at - at) < timedelta(seconds=1)
    assert queue.restart(put.id) is State.READY
    with pytest.raises(ValueError, match="time zone"):
        queue.put("no zone", at=datetime(2030, 1, 1))
    with pytest.raises(ValueError, match="negative"):
        queue.put("no span", delay=-1)


def test_given_ids(client: Client) -> None:
    queue = client.queue("orders")
    queue.create(QueueSettings(ids="given"))
    assert queue.put(1, id="order-1").id == "order-1"
    with pytest.raises(Exists):
        queue.put(1, id="order-1")
    with pytest.raises(IdRequired):
        queue.put(1)


def test_unique_keys(client: Client) -> None:
    queue = client.queue("uploads")
    first = queue.put("cat", unique="cat")
    second = queue.put("cat 2", unique="cat")
    assert (second.id, second.new) == (first.id, False)
    with pytest.raises(Exists):
        queue.put("cat", unique="cat", on_duplicate="reject")
    assert not queue.put("cat 3", unique="cat", on_duplicate="replace").new
    job = queue.take(ttr=60)
    assert job is not None
    assert job.value == "cat 3"
    with pytest.raises(Taken):
        queue.put("cat 4", unique="cat", on_duplicate="replace")
    assert queue.put("a", unique=None).id != queue.put("a", unique=None).id


def test_put_that_waits(client: Client) -> None:
    queue = client.queue("calls")
    taker = threading.Thread(target=lambda: queue.pop(wait=30))
    taker.start()
    assert queue.put_and_wait("ring", 30).outcome is Outcome.ACKED
    taker.join()
    put = queue.put_and_wait("x", 0.01)
    assert put.outcome is Outcome.TIMEOUT
    assert queue.wait_for(put.id).state is State.READY
    queue.kill(put.id)
    # What became of it is remembered.
    assert queue.wait_for(put.id, wait=1).outcome is Outcome.KILLED
    with pytest.raises(NotFound):
        queue.wait_for("99", wait=1)


def test_long_waits_are_several_requests(client: Client) -> None:
    client.link.options.__dict__["socket_timeout_s"] = 0.05
    queue = client.queue("jobs")
    assert queue.take(wait=0.1, ttr=60) is None
    assert queue.put_and_wait("x", 0.1).outcome is Outcome.TIMEOUT
    started = threading.Event()

    def put() -> None:
        started.wait(30)
        client.queue("other").put("late")

    thread = threading.Thread(target=put)
    thread.start()
    started.set()
    assert client.queue("other").pop(wait=None) is not None
    thread.join()


def test_room_in_a_full_queue(client: Client) -> None:
    queue = client.queue("small")
    queue.create(QueueSettings(capacity=1))
    queue.put(1)
    with pytest.raises(Full):
        queue.put(2)
    with pytest.raises(Full):
        queue.put(2, room=0.05)
    putter = threading.Thread(target=lambda: queue.put(2, room=30))
    putter.start()
    assert queue.pop(wait=30) is not None
    task = queue.pop(wait=30)
    assert task is not None
    assert task.value == 2
    putter.join()


def test_buried_put_and_back(client: Client) -> None:
    queue = client.queue("jobs")
    put = queue.put("old", buried=True, reason="from elsewhere")
    task = queue.get(put.id)
    assert task is not None
    assert (task.state, task.reason) == (State.BURIED, "from elsewhere")
    assert queue.dig(put.id, priority=7, value="new") is State.READY
    with pytest.raises(WrongState):
        queue.dig(put.id)
    for name in "abc":
        queue.put(name, buried=True)
    assert queue.plow(1) == 1
    assert queue.kick(1) == 1
    [last] = queue.peek(state=State.BURIED)
    assert queue.kick_id(last.id) is State.READY


def test_history_tells_who_has_tried_a_task(client: Client) -> None:
    queue = client.queue("tried")
    queue.create(QueueSettings(history=2))
    assert queue.show().history == 2
    put = queue.put("x")
    for reason in ("one", "two", None):
        job = queue.take(ttr=60)
        assert job is not None
        if reason:
            job.fail(reason, delay=0)
        else:
            job.release()
    task = queue.get(put.id)
    assert task is not None
    assert [(it.how, it.reason) for it in task.history] == [("failed", "two"), ("released", None)]
    last = task.history[-1]
    assert last.client is not None
    assert last.address is not None
    assert last.address.startswith("127.0.0.1:")
    assert last.taken_at is not None
    assert last.ended_at is not None
    assert last.taken_at <= last.ended_at


def test_release_bury_fail_and_touch(client: Client) -> None:
    queue = client.queue("jobs")
    queue.configure(QueueSettings(attempts=2, dead_letter="{jobs}-dead", backoff=3600))
    queue.put("x")
    job = queue.take(ttr=60)
    assert job is not None
    before = job.task.lease_until
    after = job.touch(by=10)
    assert after is not None
    assert before is not None
    assert after - before == timedelta(seconds=10)
    assert job.touch() is not None
    assert job.release(priority=NO_PRIORITY) is State.READY
    assert queue.take() is None
    queue.update(job.id, priority=1, value="y", ttl=100)
    queue.update(job.id, ttl="none")
    job = queue.take(ttr=60)
    assert job is not None
    assert job.fail("no", delay=0) is State.READY
    job = queue.take(ttr=60)
    assert job is not None
    job.bury("set aside")
    assert queue.plow() == 1
    for state in (State.READY, State.GONE):
        job = queue.take(ttr=60)
        assert job is not None
        assert job.fail("x" * 5000, delay=0) is state
    dead = client.queue("{jobs}-dead")
    [letter] = dead.peek()
    assert letter.reason == "x" * 1024
    assert letter.origin is not None
    assert (letter.origin.queue, letter.origin.failures) == ("jobs", 2)
    assert dead.redrive() == 1
    assert queue.move("{jobs}-other", count=5) == 1
    assert client.queue("{jobs}-other").truncate() == 1


def test_a_filter_chooses_what_changes(client: Client) -> None:
    queue = client.queue("{jobs}")
    for number in range(30):
        key = "a" if number % 3 == 0 else "b"
        queue.put("x", key=key, priority=number, headers={"from": "w" + key})
    some: BulkOptions = {"move": "{jobs}-other", "key": "a", "priorities": (0, 8), "dry": True}
    assert queue.bulk(**some) == Changed(changed=3, looked=30)
    some["dry"] = False
    assert queue.bulk(**some) == Changed(3, 30)
    assert queue.bulk(priority=NO_PRIORITY, header=("from", "w*"), older=0, count=5).changed == 27
    assert queue.bulk(delay=60, share="b", failures=0).changed == 20
    assert queue.bulk(cancel=True, state=State.WAITING).changed == 20
    other = client.queue("{jobs}-other")
    job = other.take()
    assert job is not None
    job.bury("no connection")
    assert other.bulk(restart=True, reason="no *").changed == 1
    assert other.bulk(redrive=True).changed == 0
    assert other.bulk(kill=True).changed == 3
    with pytest.raises(BadArgument):
        other.bulk()


def test_bare_ids_on_one_connection(server_client_of_one: Client) -> None:
    queue = server_client_of_one.queue("jobs")
    queue.put("x", ttr=60)
    job = queue.take()
    assert job is not None
    assert queue.touch(id=job.id) is not None
    assert queue.release(id=job.id, tail=True) is State.READY
    assert queue.take() is not None
    assert queue.fail(id=job.id, reason="r") is State.READY
    assert queue.take() is not None
    queue.bury(id=job.id, reason="b")
    queue.dig(job.id)
    assert queue.take() is not None
    queue.ack(id=job.id)
    with pytest.raises(NotFound):
        queue.ack(id=job.id)
    with pytest.raises(ValueError, match="either"):
        queue.release()


@pytest.fixture
def server_client_of_one(client: Client) -> Client:
    """A client whose requests all go over one connection, since they come one by one."""
    return client


def test_several_receipts(client: Client) -> None:
    queue = client.queue("jobs")
    for number in range(3):
        queue.put(number)
    first, second, third = queue.take_many(3, ttr=60)
    first.ack()
    replies = queue.ack(first.receipt, second.receipt)
    assert isinstance(replies[0], Stale)
    assert replies[1] is None
    queue.put("next")
    [job] = queue.take_many(1, ttr=60, done=[third])
    assert third.settled
    assert job.value == "next"
    with pytest.raises(Stale):
        queue.take_many(1, ttr=60, done=[third])
    assert queue.stats()["acked"] == 3


def test_groups(client: Client) -> None:
    queue = client.queue("mail")
    queue.put("letter", key="7", priority=5)
    queue.put("enclosure", key="7", priority=NO_PRIORITY)
    assert [job.value for job in queue.take_many(1, group=True, ttr=60)] == ["letter", "enclosure"]


def test_snatch_switch_and_kill(client: Client) -> None:
    queue = client.queue("jobs")
    queue.put("x")
    job = queue.take(ttr=60)
    assert job is not None
    assert queue.snatch(job.id) is State.READY
    assert queue.switch(job.id, State.WAITING, delay=100) is State.WAITING
    assert queue.switch(job.id, State.BURIED) is State.BURIED
    assert queue.kill(job.id, "77") == 1


def test_kept_tasks(client: Client) -> None:
    queue = client.queue("reports")
    queue.configure(QueueSettings(after_ack="zombie", zombie=3600))
    queue.put("17")
    job = queue.take(ttr=60)
    assert job is not None
    job.ack("done", payload="17.pdf")
    [task] = queue.peek(state=State.ZOMBIE)
    assert (task.value, task.result) == ("17.pdf", b'"done"')
    assert task.purge_at is not None
    assert queue.restart(task.id) is State.READY


def test_looking(client: Client) -> None:
    queue = client.queue("jobs")
    for number in range(5):
        queue.put(number, key=str(number % 2))
    assert [task.value for task in queue.tasks(key="1")] == [1, 3]
    page = queue.scan(count=2)
    assert len(page.items) == 2
    assert page.cursor != "0"
    assert len(queue.scan(page.cursor).items) == 3
    explained = queue.explain(page.items[1].id)
    assert [reason.code for reason in explained.reasons] == ["behind", "no-consumer"]
    job = queue.take(ttr=60)
    assert job is not None
    [lease] = queue.leases().items
    assert (lease.queue, lease.id) == ("jobs", job.id)
    assert lease.until is not None
    assert client.leases().items == (lease,)
    explained = queue.explain(job.id)
    assert explained.state is State.TAKEN
    assert isinstance(explained.reasons[0].details["until"], datetime)
    stats = queue.stats()
    assert stats.counts[State.TAKEN] == 1
    assert stats.transitions["R-T"] == 1
    assert stats["put"] == 5
    assert client.stats()["present"] == 5


def test_settings_come_back_as_they_went(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create(
        QueueSettings(
            ttl=60, ttr=1.5, capacity=9, attempts=3, backoff=0.25, backoff_max=10, limit=4,
            dead_letter="{jobs}-dead", on_expiry="deadletter", rate=(5, 2), capacity_bytes=1000,
            overflow="evict", release_fails=True,
        )
    )  # fmt: skip
    shown = queue.show()
    assert (shown.ttl, shown.ttr, shown.rate, shown.backoff) == (60.0, 1.5, (5, 2.0), 0.25)
    assert (shown.capacity, shown.attempts, shown.limit) == (9, 3, 4)
    assert shown.dead_letter == "{jobs}-dead"
    assert (shown.on_expiry, shown.overflow) == ("deadletter", "evict")
    assert shown.release_fails
    queue.configure(QueueSettings(ttl="none", rate="none", dead_letter="none", limit="none"))
    shown = queue.show()
    assert (shown.ttl, shown.rate, shown.dead_letter, shown.limit) == (None, None, None, None)
    queue.pause("in", for_=3600)
    assert queue.show().paused_in_until is not None
    queue.resume()
    queue.pause()
    assert queue.show().paused == "both"
    queue.resume()
    with pytest.raises(Exists):
        queue.create()
    with pytest.raises(NoQueue):
        client.queue("nothing").show()
    assert list(client.queue_names("jo")) == ["jobs"]
    assert queue.drop() == 0


def test_export_and_import(client: Client) -> None:
    queue = client.queue("old")
    queue.put("x", priority=4)
    page = queue.export()
    assert page.cursor == "0"
    other = client.queue("new")
    for record in page.items:
        other.import_record(record)
    [task] = other.peek()
    assert (task.value, task.priority) == ("x", 4)


def test_context_manager_acks_fails_or_gives_back(client: Client) -> None:
    queue = client.queue("jobs")
    put = queue.put("x")

    def taken_and(error: BaseException | None) -> None:
        job = queue.take(ttr=60)
        assert job is not None
        with job:
            if error is not None:
                raise error

    with pytest.raises(LookupError):
        taken_and(LookupError("no such thing"))
    task = queue.get(put.id)
    assert task is not None
    assert (task.reason, task.failures) == ("LookupError: no such thing", 1)
    with pytest.raises(KeyboardInterrupt):
        taken_and(KeyboardInterrupt())
    task = queue.get(put.id)
    assert task is not None
    assert (task.state, task.failures) == (State.READY, 1)
    taken_and(None)
    assert queue.get(put.id) is None


def test_jobs_end_when_none_comes(client: Client) -> None:
    queue = client.queue("jobs")
    for number in range(3):
        queue.put(number)
    seen = []
    for job in queue.jobs(ttr=60, wait=0):
        with job:
            seen.append(job.value)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("which", ["json", "msgpack", "bytes"])
def test_serialisers(client: Client, which: str) -> None:
    queue = client.queue("jobs", serialiser=which)
    value = b"\x00\xff" if which == "bytes" else {"a": [1, 2.5, None, "ä"]}
    queue.put(value)
    task = queue.pop()
    assert task is not None
    assert task.value == value
    with pytest.raises(SerialisationError):
        queue.put(object())


def test_a_payload_that_cannot_be_read_still_fails_its_job(client: Client) -> None:
    client.queue("jobs", serialiser="bytes").put("{not json")
    queue = client.queue("jobs")
    job = queue.take(ttr=60)
    assert job is not None
    with pytest.raises(SerialisationError), job:
        _ = job.value
    task = client.queue("jobs", serialiser="bytes").get(job.id)
    assert task is not None
    assert task.failures == 1


def test_any_bytes_are_names(client: Client) -> None:
    queue = client.queue(b"\xff\x00 strange")
    queue.put("x")
    job = queue.take(ttr=60)
    assert job is not None
    job.ack()
    with pytest.raises(Refused):
        client.command("NOSUCH")
    with pytest.raises(BadArgument):
        queue.ack("not a receipt")


def test_server_commands(client: Client) -> None:
    client.ping()
    assert client.info("server")["pinpriq_version"]
    assert client.whoami() == "default"
    assert "id=" in client.client_list()
    assert client.client_kill(999_999) == 0
    assert client.command("ECHO", "hi") == b"hi"


def test_waiting_take_gets_a_task_at_once(client: Client) -> None:
    queue = client.queue("jobs")
    taken: list[float] = []

    def take() -> None:
        job = queue.take(wait=30, ttr=60)
        assert job is not None
        taken.append(time.monotonic())
        job.ack()

    taker = threading.Thread(target=take)
    taker.start()
    put_at = time.monotonic()
    queue.put("x")
    taker.join()
    assert taken[0] - put_at < 10


def test_any_command_of_the_table_can_be_sent(client: Client) -> None:
    queue = client.queue("jobs")
    task = queue.put("a", priority=3)
    assert queue.command(commands.update, task.id, priority=4) == "OK"
    assert queue.command(commands.kill, task.id) == 1
    assert client.command(*commands.publish("news", b"b", ttl=5)) == 0
