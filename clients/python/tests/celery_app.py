"""An ordinary Celery application. Only its broker URL says pinpriq."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery, Task

PLACE = Path(os.environ.get("SHOP_PLACE", "."))

app = Celery("app", broker=os.environ.get("SHOP_BROKER", "pinpriq://127.0.0.1:7251"))
app.conf.update(
    broker_transport_options={"lease_seconds": float(os.environ.get("SHOP_LEASE", "60"))},
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


def note(name: str, text: str = "") -> None:
    """Add a line to a file."""
    with (PLACE / name).open("a") as file:
        file.write(f"{text or os.getpid()}\n")


@app.task
def work(name: str) -> None:
    note("done", name)


@app.task(acks_late=True)
def work_late(name: str) -> None:
    note("done", name)


@app.task(bind=True, max_retries=3)
def flaky(self: Task, name: str) -> None:
    note("tries", name)
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    note("done", name)


@app.task(bind=True)
def overtaken(self: Task, name: str) -> None:
    """End the first try when the second has begun."""
    if self.request.retries > 0:
        note("done", name)
        return
    try:
        self.retry(countdown=0)
    finally:
        while not (PLACE / "done").exists():
            time.sleep(0.01)


@app.task(acks_late=True)
def fail(name: str) -> None:
    note("done", name)
    raise LookupError("no such thing")


@app.task(bind=True)
def put_off(self: Task) -> None:
    raise self.retry(countdown=3600)


@app.task(acks_late=True)
def slow(name: str) -> None:
    """Run until the test lets it go on."""
    note(f"began-{name}")
    while not (PLACE / f"go-{name}").exists():
        time.sleep(0.01)
    note("done", name)


@app.task(acks_late=True, reject_on_worker_lost=True)
def die_once(name: str) -> None:
    """Take its process along, the first time."""
    if not (PLACE / f"died-{name}").exists():
        note(f"died-{name}")
        os.kill(os.getpid(), 9)
    note("done", name)
