"""A worker that renews its leases, retries failed tasks later, and buries those that always fail."""

import os
import threading

import redis

TTR_MS = 300  # how long a lease lasts unless it is renewed
ATTEMPTS_MAX = 3

url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
# With RESP3 a reply that is a map becomes a dictionary.
pinpriq = redis.Redis.from_url(url, decode_responses=True, protocol=3)
renewals = threading.Semaphore(0)


def keep(queue, receipt, done):
    """Renews a lease until the work is done. A receipt is good on any connection."""
    while not done.wait(TTR_MS / 3 / 1000):
        try:
            pinpriq.execute_command("TOUCH", queue, receipt)
            renewals.release()
        except redis.ResponseError as error:
            print("the lease is lost:", error)
            return


def handle(payload, attempts):
    """The work itself. It fails by raising an exception."""
    if payload == "slow":
        for _ in range(5):  # longer than the lease would last by itself
            assert renewals.acquire(timeout=60)
    if payload == "broken" or (payload == "flaky" and attempts < 2):
        raise ValueError(f"cannot do {payload}")


def work_on(task):
    queue, receipt, attempts = task["queue"], task["receipt"], task["attempts"]
    done = threading.Event()
    keeper = threading.Thread(target=keep, args=(queue, receipt, done))
    keeper.start()
    try:
        handle(task["payload"], attempts)
    except ValueError as error:
        if attempts >= ATTEMPTS_MAX:
            # It stays until somebody looks at it: DIG or PLOW brings it back.
            pinpriq.execute_command("BURY", queue, receipt, "REASON", str(error))
            return "buried"
        # Try again later, with a longer delay each time.
        pinpriq.execute_command("RELEASE", queue, receipt, "DELAY", 20 * attempts)
        return "released"
    else:
        pinpriq.execute_command("ACK", queue, receipt)
        return "acked"
    finally:
        done.set()
        keeper.join()


for payload in ["fine", "flaky", "slow", "broken"]:
    pinpriq.execute_command("PUT", "python-jobs", payload)

ended = []
while len([end for end in ended if end[1] != "released"]) < 4:
    # Blocks until there is a task, and holds it under a lease. After a crash of the worker the
    # lease ends by itself and another worker gets the task.
    taken = pinpriq.execute_command("TAKE", "python-jobs", "WAIT", 30_000, "TTR", TTR_MS, "WITHMETA")
    for task in taken:
        ended.append((task["payload"], work_on(task)))
        print(*ended[-1])

assert ended.count(("broken", "released")) == 2 and ("broken", "buried") in ended, ended
assert ended.count(("flaky", "released")) == 1 and ("flaky", "acked") in ended, ended
assert ("fine", "acked") in ended and ("slow", "acked") in ended, ended

[buried] = pinpriq.execute_command("PEEK", "python-jobs", "STATE", "B", "WITHMETA")
assert buried["reason"] == "cannot do broken" and buried["attempts"] == 3, buried
stats = pinpriq.execute_command("STATS", "python-jobs")
assert stats["put"] == 4 and stats["acked"] == 3 and stats["counts"]["B"] == 1, stats

# A receipt of a lease that has ended is refused.
assert pinpriq.execute_command("DIG", "python-jobs", buried["id"]) == "R"
[[_, _, old, _]] = pinpriq.execute_command("TAKE", "python-jobs")
pinpriq.execute_command("SNATCH", "python-jobs", buried["id"])
try:
    pinpriq.execute_command("ACK", "python-jobs", old)
    raise AssertionError("an old receipt was accepted")
except redis.ResponseError as error:
    assert str(error).startswith("STALE"), error

pinpriq.execute_command("QUEUE", "DROP", "python-jobs")
print("worker: ok")
