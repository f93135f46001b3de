"""Puts and takes with a cluster client, which finds the node of each queue by itself.

Goes on until its input ends, whatever happens to single nodes. Then every task that it has put must
have been done."""

import itertools
import os
import sys
import threading
import time

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import ClusterError

QUEUES = [f"cluster-python-{number}" for number in range(50)]
PATIENCE_S = 60

# Where any nodes listen for cluster clients: --resp-cluster.
known = os.environ.get("PINPRIQ_CLUSTER", "127.0.0.1:7254").split(",")
nodes = [ClusterNode(*address.rsplit(":", 1)) for address in known]
pinpriq = RedisCluster(startup_nodes=nodes, decode_responses=True, socket_timeout=10)

# Refusals after which nothing has happened, or the outcome is unknown: TRYAGAIN, CLUSTERDOWN, UNKNOWN.
AGAIN = ("TRYAGAIN", "CLUSTERDOWN", "UNKNOWN")


def ask(*words):
    """Asks until a node answers. Each of these requests may happen twice without harm."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return pinpriq.execute_command(*words)
        except (redis.ConnectionError, redis.TimeoutError, redis.RedisClusterException) as error:
            problem = error
            # redis-py asks one node, always the same, where the names of a TAKE are. If that node is
            # gone, it does not choose another by itself.
            pinpriq.replace_default_node()
        except redis.ResponseError as error:
            if not isinstance(error, ClusterError) and not str(error).startswith(AGAIN):
                raise
            problem = error
        if time.monotonic() > end:
            raise problem
        time.sleep(0.1)


def take_all(queue):
    """Takes what is ready in a queue, and acknowledges it. Returns the payloads."""
    taken = ask("TAKE", queue, "COUNT", 100, "TTR", 3_000)
    for _, _, receipt, _ in taken:
        try:
            ask("ACK", queue, receipt)
        except redis.ResponseError as error:
            # It was acknowledged the first time, or its lease has ended and it comes again.
            if not str(error).startswith("STALE"):
                raise
    return [payload for _, _, _, payload in taken]


goes_on = threading.Event()
goes_on.set()
threading.Thread(target=lambda: (sys.stdin.read(), goes_on.clear()), daemon=True).start()

# Another run puts other tasks.
run = os.getpid()
put, done = set(), set()
for round_number in itertools.count(1):
    if not goes_on.is_set():
        break
    for queue in QUEUES:
        payload = f"{queue} {run} {round_number}"
        # The key lets a repeated PUT put the task once.
        ask("PUT", queue, payload, "UNIQUE", payload, "WINDOW", 600_000)
        put.add(payload)
        done.update(take_all(queue))
    print("round", round_number, flush=True)

end = time.monotonic() + PATIENCE_S
while not put <= done:
    assert time.monotonic() < end, "some tasks were not taken"
    for queue in QUEUES:
        done.update(take_all(queue))

# Several queues in one request: the part in braces decides where they are.
ask("PUT", "{cluster-python}a", "x")
ask("PUT", "{cluster-python}b", "y")
ask("TAKE", "QUEUES", 2, "{cluster-python}a", "{cluster-python}b", "COUNT", 2)
try:
    pinpriq.execute_command("TAKE", "QUEUES", 50, *QUEUES)
    raise AssertionError("queues of several slots in one request")
except (redis.RedisError, redis.RedisClusterException) as error:
    print("refused:", error)
print("cluster: ok", len(put), "tasks")
