"""Jobs for arq, which do nothing. Like those of the others, they leave no results behind.

By default a worker looks for jobs twice a second, and then for five times as many as it may run at
once. An eager one looks each 10 ms.

Use: arq_worker.py fill PORT JOBS, or
arq_worker.py asyncio|eager PORT JOBS CONCURRENCY
"""

import asyncio
import sys

from arq import create_pool
from arq.connections import RedisSettings
from arq.constants import default_queue_name
from arq.worker import Worker, func
from tally import Tally

JOBS_AT_ONCE = 50
EAGER_S = 0.01


async def fill(settings, jobs):
    pool, numbers = await create_pool(settings), iter(range(jobs))

    async def enqueue():
        for number in numbers:
            await pool.enqueue_job("nothing", number)

    await asyncio.gather(*(enqueue() for _ in range(JOBS_AT_ONCE)))
    await pool.aclose()


async def work(mode, settings, jobs, concurrency):
    tally = Tally(jobs)

    async def nothing(_context, number):
        tally.note(number)

    polling = {"poll_delay": EAGER_S} if mode == "eager" else {}
    worker = Worker(
        functions=[func(nothing, name="nothing")], redis_settings=settings, max_jobs=concurrency,
        keep_result=0, burst=True, **polling,
    )
    await worker.async_run()
    tally.tell(await worker.pool.zcard(default_queue_name))
    await worker.close()


def main():
    mode, port, *numbers = sys.argv[1:]
    settings = RedisSettings(host="127.0.0.1", port=int(port))
    if mode == "fill":
        asyncio.run(fill(settings, *map(int, numbers)))
    else:
        asyncio.run(work(mode, settings, *map(int, numbers)))


if __name__ == "__main__":
    main()
