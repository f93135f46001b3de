"""Jobs for pinpriq's package for Python, which do nothing.

Use: pinpriq_python.py fill PORT JOBS, or
pinpriq_python.py threads|asyncio PORT JOBS CONCURRENCY
"""

import asyncio
import sys

from pinpriq import AsyncClient, Client, Worker
from tally import Tally

QUEUE = "jobs"
PUTS_AT_ONCE = 50


async def fill(url, jobs):
    async with AsyncClient(url) as client:
        queue, numbers = client.queue(QUEUE), iter(range(jobs))

        async def put():
            for number in numbers:
                await queue.put(number)

        await asyncio.gather(*(put() for _ in range(PUTS_AT_ONCE)))


def work(mode, url, jobs, concurrency):
    worker = Worker(url)
    tally = Tally(jobs, worker.stop)
    if mode == "threads":
        worker.job(QUEUE)(tally.note)
        worker.run(threads=concurrency)
    else:

        @worker.job(QUEUE)
        async def nothing(number):
            tally.note(number)

        worker.run_asyncio(tasks=concurrency)
    with Client(url) as client:
        tally.tell(client.queue(QUEUE).stats()["present"])


def main():
    mode, port, *numbers = sys.argv[1:]
    url = f"pinpriq://127.0.0.1:{port}"
    if mode == "fill":
        asyncio.run(fill(url, *map(int, numbers)))
    else:
        work(mode, url, *map(int, numbers))


if __name__ == "__main__":
    main()
