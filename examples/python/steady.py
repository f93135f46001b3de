"""A worker that outlives restarts of the server: it connects again, and waits longer each time."""

import os
import sys
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PAUSE_S, PAUSE_MAX_S = 0.1, 5

url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
queue = sys.argv[1] if len(sys.argv) > 1 else "steady"
# This worker decides itself when to try again. The socket must wait longer than WAIT.
pinpriq = redis.Redis.from_url(
    url, decode_responses=True, socket_timeout=15, retry=Retry(NoBackoff(), 0)
)


def tasks():
    """Yields tasks for ever, whatever becomes of the connection. Each take acknowledges the task
    before it."""
    pause, done = PAUSE_S, []
    while True:
        try:
            taken = pinpriq.execute_command("TAKE", queue, "WAIT", 10_000, "TTR", 30_000, *done)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            print(f"no server, next try in {pause} s: {error}", flush=True)
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX_S)
        except redis.ResponseError:
            # Nothing was taken or acknowledged, so acknowledge by itself.
            if not done:
                raise
            acknowledge(done[-1])
            done = []
        else:
            pause, done = PAUSE_S, []
            for _, _, receipt, payload in taken:
                yield receipt, payload
                done = ["DONE", queue, receipt]


def acknowledge(receipt):
    """Without the acknowledgement the lease ends, and the task comes again."""
    try:
        pinpriq.execute_command("ACK", queue, receipt)
    except redis.RedisError as error:
        print("not acknowledged:", error, flush=True)


for receipt, payload in tasks():
    print("done:", payload, flush=True)
    if payload == "stop":
        # No take follows.
        acknowledge(receipt)
        break
print("steady: ok")
