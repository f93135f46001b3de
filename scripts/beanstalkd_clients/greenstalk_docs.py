"""Does what the documentation of greenstalk shows, and compares what comes back.

Called by scripts/beanstalkd-clients with the port of a server of its own: ids begin with 1, as in
the documentation. Each function is a section of it, or the methods that only the reference of the
API describes.
"""

import contextlib
import json
import os
import signal
import sys
import time

import greenstalk

ADDRESS = ("127.0.0.1", int(sys.argv[1]))


@contextlib.contextmanager
def raises(error):
    try:
        yield
    except error:
        return
    raise AssertionError(f"there was no {error.__name__}")


@contextlib.contextmanager
def takes(seconds):
    """At least so long, and not much longer. The machine does other work."""
    begun = time.monotonic()
    yield
    passed = time.monotonic() - begun
    assert seconds - 0.01 <= passed < seconds + 2, f"{passed:.3f} s instead of {seconds} s"


def quickstart():
    client = greenstalk.Client(ADDRESS)
    assert client.put("hello") == 1
    job = client.reserve()
    assert job.id == 1
    assert job.body == "hello"
    client.delete(job)
    client.close()


def producers_and_consumers():
    with greenstalk.Client(ADDRESS) as client:
        client.put("hello")

    with greenstalk.Client(ADDRESS) as client:
        job = client.reserve()
        assert job.body == "hello"
        client.delete(job)


def body_serialization():
    with greenstalk.Client(ADDRESS) as client:
        body = json.dumps({"user_id": 17})
        client.put(body)
        job = client.reserve()
        assert json.loads(job.body) == {"user_id": 17}
        client.delete(job)


def body_encoding():
    every_byte = bytes(range(256)) + b"\r\n"
    with greenstalk.Client(ADDRESS, encoding=None) as client:
        for body in (every_byte, b"", b"\r\n", bytes(65_535)):
            client.put(body)
            job = client.reserve()
            assert job.body == body
            client.delete(job)
        with raises(greenstalk.JobTooBigError):
            client.put(bytes(65_536))
    with greenstalk.Client(ADDRESS, encoding="utf-16") as client:
        client.put("crème brûlée")
        job = client.reserve()
        assert job.body == "crème brûlée"
        client.delete(job)


def inserting_and_consuming():
    with greenstalk.Client(ADDRESS) as client:
        assert client.using() == "default" and client.watching() == ["default"]
        client.use("emails")
        assert client.using() == "emails"
        email = client.put("to ana")
        # The watch list is another matter than the tube that is used.
        with raises(greenstalk.TimedOutError):
            client.reserve(timeout=0)
        assert client.watch("emails") == 2
        assert client.watching() == ["default", "emails"]
        assert client.ignore("default") == 1
        with raises(greenstalk.NotIgnoredError):
            client.ignore("emails")
        assert client.tubes() == ["default", "emails"]
        job = client.reserve(timeout=0)
        assert (job.id, job.body) == (email, "to ana")
        client.delete(job)

    with greenstalk.Client(ADDRESS, use="static", watch=["static", "dynamic"]) as client:
        assert client.using() == "static"
        assert sorted(client.watching()) == ["dynamic", "static"]
        # The tubes of the connection before are gone with it.
        assert sorted(client.tubes()) == ["default", "dynamic", "static"]
        with takes(1), raises(greenstalk.TimedOutError):
            client.reserve(timeout=1)


def one_consumer_at_a_time():
    with greenstalk.Client(ADDRESS) as client, greenstalk.Client(ADDRESS) as other:
        number = client.put("for one only")
        job = client.reserve()
        with raises(greenstalk.TimedOutError):
            other.reserve(timeout=0)
        for refused in (other.delete, other.release, other.bury, other.touch):
            with raises(greenstalk.NotFoundError):
                refused(job)
        with raises(greenstalk.NotFoundError):
            other.reserve_job(number)
        client.delete(job)

    # What a connection has reserved is ready again when it ends.
    with greenstalk.Client(ADDRESS) as client:
        number = client.put("left behind")
        client.reserve()
    with greenstalk.Client(ADDRESS) as client:
        job = client.reserve(timeout=10)
        assert job.id == number
        client.delete(job.id)
        with raises(greenstalk.NotFoundError):
            client.delete(job.id)


def job_priorities():
    with greenstalk.Client(ADDRESS) as client:
        for priority in (2**32 - 1, 2, 0, 1, 2):
            client.put(f"priority {priority}", priority=priority)
        numbers = []
        for priority in (0, 1, 2, 2, 2**32 - 1):
            job = client.reserve(timeout=0)
            assert job.body == f"priority {priority}"
            numbers.append(job.id)
            client.delete(job)
        # Within a priority the oldest is the first.
        assert numbers[2] < numbers[3]
        # Releasing gives the default priority unless told otherwise.
        client.put("x", priority=5)
        client.release(client.reserve())
        job = client.reserve()
        assert client.stats_job(job.id)["pri"] == 2**16
        client.release(job, priority=7)
        job = client.reserve()
        assert client.stats_job(job.id)["pri"] == 7
        client.delete(job)
        with raises(greenstalk.BadFormatError):
            client.put("x", priority=2**32)
        # The body of a refused put is a command line to the server.
        with raises(greenstalk.UnknownCommandError):
            client.kick(1)


def delaying_a_job():
    with greenstalk.Client(ADDRESS) as client:
        with takes(1):
            number = client.put("later", delay=1)
            assert client.stats_job(number)["state"] == "delayed"
            assert client.peek_delayed().id == number
            with raises(greenstalk.TimedOutError):
                client.reserve(timeout=0)
            job = client.reserve(timeout=10)
        with takes(1):
            client.release(job, delay=1)
            assert client.stats_job(number)["state"] == "delayed"
            job = client.reserve(timeout=10)
        assert job.id == number
        client.delete(job)


def time_to_run():
    with greenstalk.Client(ADDRESS) as client, greenstalk.Client(ADDRESS) as other:
        number = client.put("slow", ttr=2)
        job = client.reserve()
        with takes(1), raises(greenstalk.DeadlineSoonError):
            client.reserve()
        with raises(greenstalk.DeadlineSoonError):
            client.reserve(timeout=0)
        with takes(1):
            client.touch(job)
            with raises(greenstalk.DeadlineSoonError):
                client.reserve(timeout=10)
        # It is not touched again, so it times out.
        again = other.reserve(timeout=10)
        assert again.id == number
        with raises(greenstalk.NotFoundError):
            client.delete(job)
        stats = other.stats_job(number)
        assert (stats["reserves"], stats["timeouts"], stats["ttr"]) == (2, 1, 2), stats
        other.delete(again)


def bury_and_kick():
    with greenstalk.Client(ADDRESS) as client:
        for body in ("first", "second", "third"):
            client.put(body)
            client.bury(client.reserve(), priority=3)
        with raises(greenstalk.TimedOutError):
            client.reserve(timeout=0)
        buried = client.peek_buried()
        assert buried.body == "first"
        assert client.stats_job(buried)["state"] == "buried"
        client.put("later", delay=3_600)
        # Delayed jobs are only kicked if there are no buried ones.
        assert client.kick(2) == 2
        assert client.kick(10) == 1
        assert client.kick(10) == 1
        assert client.kick(10) == 0
        for body in ("first", "second", "third", "later"):
            job = client.reserve(timeout=0)
            assert job.body == body
            assert client.stats_job(job)["kicks"] == 1
            client.delete(job)

        number = client.put("later", delay=3_600)
        client.kick_job(number)
        with raises(greenstalk.NotFoundError):
            client.kick_job(number)
        client.delete(client.reserve(timeout=0))


def peeking_and_reserving_by_id():
    with greenstalk.Client(ADDRESS) as client:
        number = client.put("look")
        assert client.peek(number).body == "look"
        assert client.peek_ready().id == number
        job = client.reserve_job(number)
        assert (job.id, job.body) == (number, "look")
        with raises(greenstalk.NotFoundError):
            client.reserve_job(number)
        client.delete(job)
        for nothing in (client.peek_ready, client.peek_delayed, client.peek_buried):
            with raises(greenstalk.NotFoundError):
                nothing()
        with raises(greenstalk.NotFoundError):
            client.peek(number)


def statistics():
    with greenstalk.Client(ADDRESS, use="figures", watch="figures") as client:
        number = client.put("x", priority=1_023, ttr=60)
        assert client.stats_job(number) == {
            "id": number,
            "tube": "figures",
            "state": "ready",
            "pri": 1_023,
            "age": 0,
            "delay": 0,
            "ttr": 60,
            "time-left": 0,
            "file": 0,
            "reserves": 0,
            "timeouts": 0,
            "releases": 0,
            "buries": 0,
            "kicks": 0,
        }
        before = client.stats()
        assert before.keys() == greenstalk.Stats.__annotations__.keys()
        job = client.reserve()
        assert client.stats_job(number)["time-left"] in (58, 59)
        client.delete(job)
        assert client.stats_tube("figures") == {
            "name": "figures",
            "current-jobs-urgent": 0,
            "current-jobs-ready": 0,
            "current-jobs-reserved": 0,
            "current-jobs-delayed": 0,
            "current-jobs-buried": 0,
            "total-jobs": 1,
            "current-using": 1,
            "current-watching": 1,
            "current-waiting": 0,
            "cmd-delete": 1,
            "cmd-pause-tube": 0,
            "pause": 0,
            "pause-time-left": 0,
        }
        after = client.stats()
        for name in ("cmd-reserve", "cmd-delete", "cmd-stats", "cmd-stats-tube"):
            assert after[name] == before[name] + 1, name
        assert after["draining"] == "false"
        with raises(greenstalk.NotFoundError):
            client.stats_tube("not-in-use")
        with raises(greenstalk.NotFoundError):
            client.stats_job(number)


def pausing_a_tube():
    with greenstalk.Client(ADDRESS) as client:
        client.put("paused")
        with takes(1):
            client.pause_tube("default", 1)
            assert client.stats_tube("default")["pause"] == 1
            with raises(greenstalk.TimedOutError):
                client.reserve(timeout=0)
            job = client.reserve(timeout=10)
        client.delete(job)
        with raises(greenstalk.NotFoundError):
            client.pause_tube("not-in-use", 1)


def drain_mode():
    with greenstalk.Client(ADDRESS) as client:
        number = client.put("before")
        turn_draining(client, "true")
        with raises(greenstalk.DrainingError):
            client.put("after")
        # Everything else goes on.
        client.delete(client.reserve_job(number))
        turn_draining(client, "false")
        client.delete(client.put("after"))


def turn_draining(client, wanted):
    """Makes the server drain or ends that, which is the same signal."""
    os.kill(client.stats()["pid"], signal.SIGUSR2)
    until = time.monotonic() + 30
    while client.stats()["draining"] != wanted:
        assert time.monotonic() < until


for section in (
    quickstart,
    producers_and_consumers,
    body_serialization,
    body_encoding,
    inserting_and_consuming,
    one_consumer_at_a_time,
    job_priorities,
    delaying_a_job,
    time_to_run,
    bury_and_kick,
    peeking_and_reserving_by_id,
    statistics,
    pausing_a_tube,
    drain_mode,
):
    section()
    print(f"greenstalk: {section.__name__.replace('_', ' ')}")
