"""Puts tasks: plain, with a priority, with a time to live, and one whose end it awaits."""

import os
import threading

import redis

# Any Redis client will do. decode_responses turns bytes into text.
url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
pinpriq = redis.Redis.from_url(url, decode_responses=True)

# PUT returns the id of the new task. The first task creates the queue.
task_id = pinpriq.execute_command("PUT", "python-mails", "to: ann")
print("put task", task_id)

# A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
pinpriq.execute_command("PUT", "python-mails", "to: bob", "PRIORITY", -1)
pinpriq.execute_command("PUT", "python-mails", "to: eve", "PRIORITY", 9, "TTL", 60_000)

# Looking changes nothing: each task is [queue, id, receipt, payload].
seen = [task[3] for task in pinpriq.execute_command("PEEK", "python-mails", "COUNT", 10)]
assert seen == ["to: bob", "to: ann", "to: eve"], seen

# A pipeline puts many tasks in one round trip: all of them, or none if one is refused.
with pinpriq.pipeline() as pipeline:
    for number in range(100):
        pipeline.execute_command("PUT", "numbers", number)
    assert len(pipeline.execute()) == 100
assert len(pinpriq.execute_command("POP", "numbers", "COUNT", 1000)) == 100


def worker():
    """Takes one task, waiting for it if need be, and acknowledges it."""
    own = redis.Redis.from_url(url, decode_responses=True)
    [[queue, _, receipt, _]] = own.execute_command("TAKE", "urgent", "WAIT", -1)
    own.execute_command("ACK", queue, receipt)


# With WAIT the producer learns how its task ended.
thread = threading.Thread(target=worker)
thread.start()
_, outcome = pinpriq.execute_command("PUT", "urgent", "now!", "WAIT", 30_000)
thread.join()
assert outcome == "acked", outcome

assert pinpriq.execute_command("QUEUE", "DROP", "python-mails") == 3
print("producer: ok")
