"""A task with a delay, a task with a time to live, and a task whose lease ends."""

import os
import time

import redis

url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
pinpriq = redis.Redis.from_url(url, decode_responses=True)

# Nobody gets the task before the delay is over.
began = time.monotonic()
task_id = pinpriq.execute_command("PUT", "reminders", "tea", "DELAY", 200)
assert pinpriq.execute_command("TAKE", "reminders") == []
assert pinpriq.execute_command("PEEK", "reminders", "STATE", "W")[0][1] == task_id

# A blocking take is woken when the time has come.
[[_, _, receipt, payload]] = pinpriq.execute_command("TAKE", "reminders", "WAIT", 30_000)
assert payload == "tea" and time.monotonic() - began >= 0.2
pinpriq.execute_command("ACK", "reminders", receipt)

# A task that nobody took in time is dropped, and clients that wait for it are told.
_, outcome = pinpriq.execute_command("PUT", "reminders", "too late", "TTL", 50, "WAIT", 30_000)
assert outcome == "expired", outcome

# A worker that dies gives its task back when the lease ends: here after 100 ms.
pinpriq.execute_command("PUT", "reminders", "again", "TTR", 100)
[[_, _, lost, _]] = pinpriq.execute_command("TAKE", "reminders")
[[_, _, receipt, payload]] = pinpriq.execute_command("TAKE", "reminders", "WAIT", 30_000)
assert payload == "again" and receipt != lost
pinpriq.execute_command("ACK", "reminders", receipt)

print("delayed: ok")
