"""Fan-out: members of a topic, each with a lane of its own and a lease that it renews."""

import os
import threading

import redis

LEASE_MS = 2_000  # how long a member lives without a sign of life

url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
# With RESP3 a reply that is a map becomes a dictionary.
pinpriq = redis.Redis.from_url(url, decode_responses=True, protocol=3)


class Member:
    """A member that prints what is published, until it has read a certain word."""

    def __init__(self, topic, name, last):
        self.topic, self.name, self.last = topic, name, last
        self.seen = []
        self.done = threading.Event()
        self.join()

    def join(self):
        pinpriq.execute_command("JOIN", self.topic, self.name, "LEASE", LEASE_MS)

    def beat(self):
        """Gives signs of life. Being blocked in a TAKE is not one."""
        while not self.done.wait(LEASE_MS / 3 / 1000):
            try:
                pinpriq.execute_command("BEAT", self.name)
            except redis.ResponseError as error:
                if not str(error).startswith("NOTFOUND"):
                    raise
                self.join()  # away for too long: what was in the lane is gone

    def take(self):
        try:
            return pinpriq.execute_command(
                "TAKE", self.topic, "WAIT", LEASE_MS, "TTR", 30_000, "WITHMETA", "MEMBER", self.name
            )
        except redis.ResponseError as error:
            if not str(error).startswith("NOTFOUND"):
                raise
            self.join()
            return []

    def run(self):
        beats = threading.Thread(target=self.beat)
        beats.start()
        while self.last not in self.seen:
            for task in self.take():
                self.seen.append(task["payload"])
                print(task["member"], "got", task["payload"])
                # The receipt names the lane.
                pinpriq.execute_command("ACK", self.topic, task["receipt"])
        self.done.set()
        beats.join()


# Nobody has joined, so this goes nowhere.
assert pinpriq.publish("news", "nobody listens") == 0

members = [Member("news", name, "the end") for name in ("mailer", "archive", "screen")]
listed = pinpriq.execute_command("MEMBERS", "news")
assert [member["member"] for member in listed] == ["archive", "mailer", "screen"], listed

# What is published before a member reads waits in its lane.
assert pinpriq.publish("news", "early") == 3
threads = [threading.Thread(target=member.run) for member in members]
for thread in threads:
    thread.start()
for number in range(5):
    # The reply means that each lane has it, on disk.
    assert pinpriq.publish("news", f"news {number}") == 3
# For a task that is useless later: a TTL, or a DEADLINE as a moment of the wall clock.
assert pinpriq.execute_command("PUBLISH", "news", "the end", "TTL", 60_000) == 3
for thread in threads:
    thread.join()

expected = ["early", *(f"news {number}" for number in range(5)), "the end"]
assert all(member.seen == expected for member in members), [member.seen for member in members]

# LEAVE ends the lanes of this member, with what is in them. Other lanes stay.
pinpriq.publish("news", "unread")
assert pinpriq.execute_command("LEAVE", "mailer") == 1
assert [task[3] for task in pinpriq.execute_command("POP", "news", "MEMBER", "screen")] == ["unread"]

# A dead member ends with its lease, and so do its lanes.
pinpriq.execute_command("JOIN", "news", "dead", "LEASE", 1)
while pinpriq.publish("news", "is anybody there?") > 2:
    pass
for name in ("archive", "screen"):
    assert pinpriq.execute_command("LEAVE", name) == 1
assert pinpriq.execute_command("MEMBERS", "news") == []
print("fan_out: ok")
