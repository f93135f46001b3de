"""Counts the jobs of a worker in Python, and measures from its first job to its last one.

Each job has a number, so that one that is lost or comes twice is noticed.
"""

import json
import os
import resource
import tempfile
import threading
import time


def tell(jobs, done, repeated, left, elapsed_s, worker_cpu_s):
    """Prints the result of a run, which the benchmark reads."""
    print(json.dumps({
        "jobs": jobs, "done": done, "repeated": repeated, "left": left, "elapsed_s": elapsed_s,
        "worker_cpu_s": worker_cpu_s,
    }), flush=True)


class Tally:
    """The jobs of one process. `when_all` is called when the last of them is done."""

    def __init__(self, jobs, when_all=lambda: None):
        self.jobs = jobs
        self.when_all = when_all
        self.seen = bytearray(jobs)
        self.done = self.repeated = 0
        self.first = self.last = None
        self.lock = threading.Lock()

    def note(self, number):
        """All that a job does."""
        with self.lock:
            if self.first is None:
                self.first = self.moment()
            if self.seen[number]:
                self.repeated += 1
                return
            self.seen[number] = 1
            self.done += 1
            if self.done < self.jobs:
                return
            self.last = self.moment()
        self.when_all()

    def moment(self):
        return time.monotonic(), time.process_time()

    def tell(self, left):
        first, last = self.first or self.moment(), self.last or self.moment()
        spans = [late - early for early, late in zip(first, last)]
        tell(self.jobs, self.done, self.repeated, left, *spans)


class TallyOfForks:
    """Jobs that run in forks of the worker: each writes a line to a file that all of them share.

    The processor time is that of the worker and its forks in the whole block.
    """

    def __init__(self, jobs):
        self.jobs = jobs
        self.file = tempfile.TemporaryFile()
        self.cpu_s = 0

    def __enter__(self):
        self.cpu_s = -self.spent_s()
        return self

    def __exit__(self, *_):
        self.cpu_s += self.spent_s()

    @staticmethod
    def spent_s():
        all_of_them = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in all_of_them)

    def note(self, number):
        """All that a job does."""
        os.write(self.file.fileno(), f"{number} {time.monotonic()}\n".encode())

    def tell(self, left):
        self.file.seek(0)
        lines = [tuple(map(float, line.split())) for line in self.file]
        done = len({number for number, _ in lines})
        elapsed_s = lines[-1][1] - lines[0][1] if lines else 0
        tell(self.jobs, done, len(lines) - done, left, elapsed_s, self.cpu_s)
