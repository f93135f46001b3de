"""Fan-out, schedules, push and transactions, without asyncio."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

import pytest

from pinpriq import (
    Aborted,
    Client,
    Disconnected,
    Job,
    NotFound,
    QueueSettings,
    Stale,
    State,
    Subscription,
)


def test_each_member_gets_its_copy(client: Client) -> None:
    topic = client.topic("news")
    assert topic.publish("unheard") == 0
    with topic.member("mailer") as mailer, topic.member("archive", lease=600) as archive:
        assert [member.member for member in topic.members()] == ["archive", "mailer"]
        assert topic.publish("open", priority=1, key="k") == 2
        for member in (mailer, archive):
            job = member.lane.take(wait=5, ttr=60)
            assert job is not None
            assert (job.value, job.task.member) == ("open", member.name)
            job.ack()
        mailer.lane.configure(QueueSettings(capacity=1))
        assert topic.publish("1", ttl=60) == 2
        assert topic.publish("2", deadline=datetime.now(timezone.utc) + timedelta(hours=1)) == 1
        assert mailer.lane.stats()["missed"] == 1
        assert mailer.lane.truncate() == 1
    assert topic.members() == []


def test_a_member_that_stays_misses_nothing(client: Client) -> None:
    topic = client.topic("news")
    member = topic.member("mailer")
    member.stay = True
    with member:
        pass
    topic.publish("meanwhile")
    with member:
        task = member.lane.pop()
        assert task is not None
        assert task.value == "meanwhile"
    assert client.leave("mailer") == 1
    with pytest.raises(NotFound):
        client.beat("mailer")
    member.beat_or_join()
    assert member.leave() == 1
    client.leave("mailer")


def test_signs_of_life_keep_a_member(client: Client) -> None:
    """The lease is far shorter than the test, and a blocked take is no sign of life."""
    topic = client.topic("news")
    with topic.member("short", lease=1) as member:
        first = member.join()
        assert member.lane.take(wait=2.5, ttr=60) is None
        assert member.join() == first


def test_schedules(client: Client) -> None:
    schedules = client.schedules
    next_at = schedules.set(
        "{reports}-nightly",
        "reports",
        {"day": 1},
        cron="30 2 * * *",
        zone="Europe/Berlin",
        priority=4,
        overlap="skip",
        missed="all",
    )
    assert next_at is not None
    assert next_at > datetime.now(timezone.utc)
    shown = schedules.show("{reports}-nightly")
    assert (shown.queue, shown.cron, shown.zone) == ("reports", "30 2 * * *", "Europe/Berlin")
    assert (shown.priority, shown.overlap, shown.on_missed) == (4, "skip", "all")
    assert shown.next_at == next_at
    schedules.pause("{reports}-nightly")
    assert schedules.show("{reports}-nightly").paused
    schedules.resume("{reports}-nightly")
    id_ = schedules.fire("{reports}-nightly")
    task = client.queue("reports").get(id_)
    assert task is not None
    assert (task.value, task.schedule, task.slot) == ({"day": 1}, "{reports}-nightly", None)
    assert list(schedules.names("{re")) == ["{reports}-nightly"]
    assert schedules.drop("{reports}-nightly")
    assert not schedules.drop("{reports}-nightly")
    with pytest.raises(NotFound):
        schedules.show("{reports}-nightly")


def test_a_schedule_puts_its_tasks(client: Client) -> None:
    client.schedules.set("often", "ticks", "tick", every=0.1)
    queue = client.queue("ticks")
    tasks = [queue.pop(wait=30) for _ in range(2)]
    slots = [task.slot for task in tasks if task is not None]
    assert slots[0] is not None
    assert slots[1] is not None
    assert slots[1] > slots[0]
    client.schedules.drop("often")


def test_transactions_do_all_or_nothing(client: Client) -> None:
    queue = client.queue("in")
    for number in range(3):
        queue.put(number)
    first, second, third = queue.take_many(3, ttr=60)
    with client.transaction() as steps:
        steps.ack(first)
        steps.release(second, delay=3600)
        steps.fail(third, "no")
        steps.put("{in}-out", "x", priority=3)
        steps.publish("{in}-news", "x")
        steps.kill("in", "77")
    assert first.settled
    assert steps.results[1:3] == [State.WAITING, State.READY]
    assert steps.results[4:] == [0, 0]
    with pytest.raises(Aborted) as refused, client.transaction() as steps:
        steps.put("{in}-out", "y")
        steps.ack(first)
    assert refused.value.position == 2
    assert isinstance(refused.value.cause, Stale)
    assert len(client.queue("{in}-out").peek(9)) == 1

    def forgotten() -> None:
        with client.transaction() as steps:
            steps.put("{in}-out", "z")
            raise LookupError

    with pytest.raises(LookupError):
        forgotten()
    assert len(client.queue("{in}-out").peek(9)) == 1


def test_deliveries(client: Client) -> None:
    queue = client.queue("jobs")
    queue.create()
    with client.subscription() as subscription:
        assert subscription.subscribe("jobs", "more", ttr=60) == 2
        assert subscription.credit(1) == 1
        queue.put("a")
        queue.put("b")
        first = subscription.next()
        assert first is not None
        assert first.value == "a"
        subscription.ready()
        second = subscription.next()
        assert second is not None
        with first, second:
            pass
        assert subscription.unsubscribe("more") == 1
    assert queue.stats()["acked"] == 2


def test_popped_deliveries_have_no_lease(client: Client) -> None:
    with client.subscription() as subscription:
        subscription.subscribe("jobs", pop=True)
        subscription.ready()
        client.queue("jobs").put("a")
        job = subscription.next()
        assert job is not None
        with job:
            assert job.value == "a"


def started(subscription: Subscription) -> Job:
    """Return the next job that is not called back."""
    while (job := subscription.next()) is not None:
        if subscription.start(job):
            return job
    raise AssertionError("there is no job")


def test_a_job_that_was_not_started_is_called_back(client: Client) -> None:
    jobs = client.queue("jobs")
    with client.subscription() as subscription:
        subscription.subscribe("jobs", ttr=60, recall=True)
        subscription.credit(2)
        jobs.put("late", priority=5)
        jobs.put("later", priority=5)
        late = started(subscription)
        assert late.value == "late"
        jobs.put("urgent", priority=1)
        jobs.put("more urgent", priority=0)
        urgent = started(subscription)
        assert urgent.value == "more urgent"
        urgent.ack()
        late.ack()
        subscription.ready()
        back = subscription.next()
        assert back is not None
        assert back.value == "urgent"
        # It comes back when the subscription ends.
        assert subscription.unsubscribe() == 0
        assert not subscription.start(back)
    assert [job.value for job in jobs.take_many(5)] == ["urgent", "later"]


def test_a_subscription_that_breaks_says_so(client: Client) -> None:
    with client.subscription() as subscription:
        subscription.subscribe("jobs", ttr=60)
        subscription.ready()
        numbers = [
            int(line.split()[0].removeprefix("id=")) for line in client.client_list().splitlines()
        ]
        killer = threading.Thread(target=lambda: client.client_kill(min(numbers)))
        killer.start()
        with pytest.raises(Disconnected):
            while subscription.next() is None:
                pass
        killer.join()
