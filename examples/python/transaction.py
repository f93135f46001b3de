"""A transaction: a task is done and what follows from it is put, all at one moment or not at all."""

import os

import redis

url = os.environ.get("PINPRIQ_URL", "redis://127.0.0.1:7251")
pinpriq = redis.Redis.from_url(url, decode_responses=True)


# The common part in braces keeps all queues of a transaction in one shard.
def finish(receipt, order):
    """Acknowledges an order, and puts an invoice and a parcel."""
    # A pipeline of redis-py is a transaction: it sends MULTI before its commands, and EXEC after.
    with pinpriq.pipeline() as steps:
        steps.execute_command("ACK", "python-orders", receipt)
        steps.execute_command("PUT", "{python-orders}-invoices", order)
        steps.execute_command("PUT", "{python-orders}-parcels", order, "PRIORITY", 1)
        return steps.execute()


def payloads(queue):
    return [task[3] for task in pinpriq.execute_command("PEEK", queue, "COUNT", 10)]


pinpriq.execute_command("PUT", "python-orders", "order 17")
[[_, _, receipt, order]] = pinpriq.execute_command("TAKE", "python-orders", "TTR", 30_000)

# The replies come in the order of the commands.
acked, invoice, parcel = finish(receipt, order)
print("acknowledged the order, put invoice", invoice, "and parcel", parcel)
assert acked == "OK"

# The lease has ended. So the first command is refused, and none of the others happens.
try:
    finish(receipt, order)
    raise AssertionError("an old receipt was accepted")
except redis.exceptions.ExecAbortError as error:
    # The position of the command, and its refusal.
    assert str(error).startswith("1 STALE"), error
assert payloads("{python-orders}-invoices") == ["order 17"]
assert payloads("{python-orders}-parcels") == ["order 17"]

# What cannot be part of a transaction is refused at once, and then nothing happens either.
with pinpriq.pipeline() as steps:
    steps.execute_command("PUT", "{python-orders}-invoices", "order 18")
    steps.execute_command("TAKE", "python-orders")
    try:
        steps.execute()
        raise AssertionError("a TAKE was accepted")
    except redis.ResponseError as error:
        assert "TAKE cannot be part of a transaction" in str(error), error
assert payloads("{python-orders}-invoices") == ["order 17"]

assert pinpriq.execute_command("QUEUE", "DROP", "{python-orders}-invoices") == 1
assert pinpriq.execute_command("QUEUE", "DROP", "{python-orders}-parcels") == 1
print("transaction: ok")
