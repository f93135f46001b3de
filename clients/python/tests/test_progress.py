"""Jobs that tell how far they have come, and go on from there at the next attempt."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pinpriq import AsyncClient, Busy, Client, Job, QueueSettings, Retry, State, Worker
from pinpriq.job import CHECKPOINT_BYTES_MAX, PROGRESS_BYTES_MAX, Telling, Told
from servers import Server
from test_worker import Told as Events
from test_worker import both, running


def test_what_is_newer_counts_and_what_is_too_long_does_not() -> None:
    job = Telling()
    assert not job.has_untold()
    job.progress("one")
    job.checkpoint(b"1")
    former = job.take_untold()
    assert (former, job.has_untold()) == (Told(b"one", b"1"), False)
    job.checkpoint("2")
    job.keep_untold(former)
    assert job.take_untold() == Told(b"one", b"2")
    with pytest.raises(ValueError, match="at most 256"):
        job.progress("é" * 129)
    with pytest.raises(ValueError, match="at most 65536"):
        job.checkpoint(bytes(CHECKPOINT_BYTES_MAX + 1))
    job.progress("p" * PROGRESS_BYTES_MAX)
    job.checkpoint(bytes(CHECKPOINT_BYTES_MAX))
    assert job.has_untold()


def test_a_checkpoint_comes_with_the_next_take(client: Client) -> None:
    queue = client.queue("jobs")
    queue.put("x")
    job = queue.take(ttr=60)
    assert job is not None
    assert job.last_checkpoint is None
    job.progress("a third")
    job.checkpoint(b"\xff\x00row 1")
    task = queue.get(job.id)
    assert task is not None
    assert (task.progress, task.checkpoint) == (None, None)
    job.touch()
    task = queue.get(job.id)
    assert task is not None
    assert (task.progress, task.checkpoint) == ("a third", b"\xff\x00row 1")
    assert [lease.progress for lease in queue.leases().items] == ["a third"]
    assert job.release() is State.READY
    job = queue.take(ttr=60)
    assert job is not None
    assert (job.last_checkpoint, job.task.progress) == (b"\xff\x00row 1", None)
    job.checkpoint("row 2")
    assert job.fail("broken") is State.READY
    job = queue.take(ttr=60)
    assert job is not None
    assert job.last_checkpoint == b"row 2"
    job.checkpoint("row 3")
    job.bury("enough")
    task = queue.get(job.id)
    assert task is not None
    assert (task.state, task.checkpoint) == (State.BURIED, b"row 3")


async def test_an_acknowledgement_removes_it(aclient: AsyncClient) -> None:
    queue = aclient.queue("jobs")
    await queue.create(QueueSettings(after_ack="keep"))
    await queue.put("x")
    job = await queue.take(ttr=60)
    assert job is not None
    job.checkpoint("row 1")
    await job.touch()
    await queue.touch(job.receipt, progress="half", checkpoint="row 2")
    task = await queue.get(job.id)
    assert task is not None
    assert (task.progress, task.checkpoint) == ("half", b"row 2")
    await job.ack()
    task = await queue.get(job.id)
    assert task is not None
    assert (task.state, task.checkpoint) == (State.DONE, None)


@both
@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_next_attempt_of_a_worker_goes_on(
    client: Client, server: Server, how: str, prefetch: int
) -> None:
    queue = client.queue("jobs")
    queue.create(QueueSettings(attempts=3))
    id = queue.put("x").id
    seen, events = threading.Event(), Events()
    found: list[bytes | None] = []
    worker = Worker(server.url, ttr=3600, prefetch=prefetch, on_event=events)

    @worker.job("jobs", with_job=True)
    def work(job: Job) -> None:
        found.append(job.last_checkpoint)
        if job.attempts > 1:
            return
        for row in range(1000):
            job.progress(f"row {row}")
            job.checkpoint(f"row {row}")
        assert seen.wait(30)
        job.checkpoint("row 1000")
        raise Retry("broken", delay=0)

    with running(worker, how):
        while True:
            task = queue.get(id)
            if task is not None and task.checkpoint is not None:
                break
        assert (task.progress, task.checkpoint) == ("row 999", b"row 999")
        seen.set()
        events.await_count("end", 1)
    assert found == [None, b"row 1000"]


def test_a_lease_is_renewed_where_a_checkpoint_has_no_room(program: str, tmp_path: Path) -> None:
    server = Server(
        program, tmp_path / "data", "--task-bytes-max", "20000", "--payload-bytes-max", "1000"
    )
    server.start()
    with Client(server.url) as client:
        queue = client.queue("jobs")
        queue.put("x")
        job = queue.take(ttr=60)
        assert job is not None
        with pytest.raises(Busy):
            queue.touch(job.receipt, checkpoint=bytes(60_000))
        job.checkpoint(bytes(60_000))
        assert job.touch() is not None
        assert job.has_untold()
        assert job.fail("broken") is State.READY
        task = queue.get(job.id)
        assert task is not None
        assert (task.checkpoint, task.failures) == (None, 1)
    server.stop()
