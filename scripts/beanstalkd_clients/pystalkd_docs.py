"""Does what the documentation of pystalkd shows, and compares what comes back: its README, and the
tutorial of beanstalkc, which it refers to since it has the same API.

Called by scripts/beanstalkd-clients with the port of a server of its own: ids begin with 1, as in
the documentation.
"""

import contextlib
import sys
from datetime import timedelta

from pystalkd.Beanstalkd import CommandFailed, Connection, DeadlineSoon

PORT = int(sys.argv[1])


@contextlib.contextmanager
def raises(error):
    try:
        yield
    except error:
        return
    raise AssertionError(f"there was no {error.__name__}")


def state(job):
    return job.stats()["state"]


def using(c):
    assert c.put("hey!") == 1
    job = c.reserve(0)
    assert job.body == "hey!"
    job.delete()
    assert c.reserve(timeout=0) is None
    # Strings with characters of any size.
    assert c.put("台灣繁體字") == 2
    job = c.reserve()
    assert job.body == "台灣繁體字"
    job.delete()


def timedeltas(c):
    number = c.put("hey!", delay=timedelta(minutes=1), ttr=timedelta(days=1))
    assert c.stats_job(number)["ttr"] == 86_400
    assert 58 <= c.stats_job(number)["time-left"] <= 60
    c.kick_job(number)
    job = c.reserve(timedelta(seconds=1))
    job.release(delay=timedelta(minutes=2))
    assert c.stats_job(number)["delay"] == 120
    job.delete()


def temporary_tubes(c):
    assert c.using() == "default"
    with c.temporary_use("test"):
        assert c.using() == "test"
    assert c.using() == "default"

    assert c.watching() == ["default"]
    with c.temporary_watch("test"):
        assert c.watching() == ["default", "test"]
    assert c.watching() == ["default"]


def bytes_api(c):
    # The client takes white space at both ends of a body for its own, so this has none there.
    body = bytes(range(256)).strip()
    c.put_bytes(body)
    job = c.reserve_bytes(0)
    assert job.body == body
    job.delete()
    c.put("string")
    job = c.reserve_bytes(0)
    assert job.body == b"string"
    job.delete()


def tube_management(c):
    assert c.tubes() == ["default"]
    assert c.use("foo") == "foo"
    assert c.using() == "foo"
    assert c.tubes() == ["default", "foo"]
    assert c.use("default") == "default"
    assert c.tubes() == ["default"]
    assert c.watch("bar") == 2
    assert c.watching() == ["default", "bar"]
    assert c.tubes() == ["default", "bar"]
    assert c.ignore("bar") == 1
    assert c.watching() == ["default"]
    with raises(CommandFailed):
        c.ignore("default")
    assert c.watching() == ["default"]


def statistics(c):
    number = c.put("ho?")
    job = c.reserve()
    stats = job.stats()
    assert (stats["id"], stats["age"], stats["state"]) == (number, 0, "reserved")
    assert (stats["tube"], stats["pri"], stats["ttr"]) == ("default", 2**31, 120)
    job.delete()
    with raises(CommandFailed):
        job.stats()
    stats = c.stats_tube("default")
    assert stats["name"] == "default"
    for name in ("ready", "reserved", "urgent", "delayed", "buried"):
        assert stats[f"current-jobs-{name}"] == 0
        assert c.stats()[f"current-jobs-{name}"] == 0
    assert c.stats()["max-job-size"] == 65_535


def advanced_operation(c):
    c.put("yes!", delay=1)
    assert c.reserve(timeout=0) is None
    job = c.reserve(timeout=10)
    assert job.body == "yes!"
    job.release()
    assert state(job) == "ready"
    job = c.reserve()
    job.bury()
    assert state(job) == "buried"
    assert c.reserve(timeout=0) is None
    assert c.kick() == 1
    assert c.kick(42) == 0
    job = c.reserve()
    job.bury()
    assert state(job) == "buried"
    job.kick()
    assert state(job) == "ready"


def inspecting_jobs(c):
    # The job of the section before is still there.
    number = c.peek_ready().job_id
    job = c.peek(number)
    assert job.body == "yes!"
    assert state(job) == "ready"
    assert c.peek(4_200) is None
    job = c.peek_ready()
    assert job.body == "yes!"
    job.delete()
    with raises(CommandFailed):
        job.stats()

    c.put("o tempores", delay=120)
    job = c.peek_delayed()
    assert state(job) == "delayed"
    job.delete()
    c.put("o mores!")
    c.reserve().bury()
    job = c.peek_buried()
    assert state(job) == "buried"
    job.delete()


def job_priorities(c):
    for body in ("1", "2"):
        c.put(body)
    for body in ("1", "2"):
        job = c.reserve()
        assert job.body == body
        job.delete()
    for body, priority in (("foo", 42), ("bar", 21), ("qux", 21)):
        c.put(body, priority=priority)
    for body in ("bar", "qux", "foo"):
        job = c.reserve()
        assert job.body == body
        job.delete()


def touching(c):
    c.put("slow", ttr=1)
    job = c.reserve()
    with raises(DeadlineSoon):
        c.reserve(timeout=10)
    job.touch()
    assert state(job) == "reserved"
    job.delete()


def pausing(c):
    c.put("paused")
    c.pause_tube("default", timedelta(seconds=1))
    assert c.stats_tube("default")["pause"] == 1
    assert c.reserve(0) is None
    job = c.reserve(10)
    assert job.body == "paused"
    job.delete()


def without_yaml(_):
    c = Connection("127.0.0.1", PORT, parse_yaml=False)
    # The client takes the end of the last line away.
    assert c.tubes() == "---\n- default"
    # Since version 1.13 of beanstalkd, texts have quotes.
    assert c.stats_tube("default").startswith('---\nname: "default"\ncurrent-jobs-urgent: 0\n')
    c.close()


connection = Connection("127.0.0.1", PORT)
for section in (
    using,
    timedeltas,
    temporary_tubes,
    bytes_api,
    tube_management,
    statistics,
    advanced_operation,
    inspecting_jobs,
    job_priorities,
    touching,
    pausing,
    without_yaml,
):
    section(connection)
    print(f"pystalkd: {section.__name__.replace('_', ' ')}")
connection.close()
