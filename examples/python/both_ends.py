"""A priority queue with two ends: push, pop_min, pop_max, peek_min, peek_max."""

import os

import redis


class PriorityQueue:
    """The five operations of a double-ended priority queue, over one connection."""

    def __init__(self, url, name):
        self.redis = redis.Redis.from_url(url, decode_responses=True)
        self.name = name

    def push(self, value, priority):
        return self.redis.execute_command("PUT", self.name, value, "PRIORITY", priority)

    def pop(self, end):
        return self.first(self.redis.execute_command("POP", self.name, "FROM", end))

    def peek(self, end):
        return self.first(self.redis.execute_command("PEEK", self.name, "FROM", end))

    @staticmethod
    def first(tasks):
        return tasks[0][3] if tasks else None


queue = PriorityQueue(os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251"), "both-ends")
pushed = [("a1", 1), ("a2", 1), ("a3", 1), ("a4", 1), ("c", 2), ("e", 3), ("d", 4), ("b", 5)]
for value, priority in pushed:
    queue.push(value, priority)

assert queue.peek("MIN") == "a1" and queue.peek("MAX") == "b"
# From the top the highest number comes first, and within it the newest.
assert [queue.pop("MAX") for _ in range(6)] == ["b", "d", "e", "c", "a4", "a3"]
# From the bottom the lowest number comes first, and within it the oldest.
assert [queue.pop("MIN") for _ in range(3)] == ["a1", "a2", None]
assert queue.peek("MIN") is None and queue.peek("MAX") is None

# Numbers may be negative.
queue.push("far below", -(2**63))
queue.push("below", -1)
assert queue.pop("MAX") == "below" and queue.pop("MIN") == "far below"
print("both_ends: ok")
