"""Jobs for rq, which do nothing. Like those of the others, they leave no results behind.

Use: rq_worker.py fill PORT JOBS, or rq_worker.py simple|forking PORT JOBS CONCURRENCY
"""

import sys

import rq_jobs
from redis import Redis
from rq import Queue, SimpleWorker, Worker
from tally import Tally, TallyOfForks

JOBS_AT_ONCE = 500


def fill(queue, jobs):
    for first in range(0, jobs, JOBS_AT_ONCE):
        numbers = range(first, min(first + JOBS_AT_ONCE, jobs))
        queue.enqueue_many(
            Queue.prepare_data("rq_jobs.nothing", (number,), result_ttl=0) for number in numbers
        )


def work(mode, connection, queue, jobs, _concurrency):
    if mode == "simple":
        rq_jobs.tally = Tally(jobs)
        SimpleWorker([queue], connection=connection).work(burst=True, logging_level="WARNING")
    else:
        rq_jobs.tally = TallyOfForks(jobs)
        with rq_jobs.tally:
            Worker([queue], connection=connection).work(burst=True, logging_level="WARNING")
    registries = [queue.started_job_registry, queue.failed_job_registry]
    rq_jobs.tally.tell(len(queue) + sum(map(len, registries)))


def main():
    mode, port, *numbers = sys.argv[1:]
    connection = Redis(host="127.0.0.1", port=int(port))
    queue = Queue("jobs", connection=connection)
    if mode == "fill":
        fill(queue, *map(int, numbers))
    else:
        work(mode, connection, queue, *map(int, numbers))


if __name__ == "__main__":
    main()
