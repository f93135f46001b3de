"""Counts the jobs of a worker in Python, and measures from its first job to its last one.

Each job has a number, so that one that is lost or comes twice is noticed. The processor time of
the server is read at the same two moments as that of the worker.
"""

import json
import os
import resource
import tempfile
import threading
import time

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def server_cpu_s(pid):
    """Processor time of all threads. The name of a process may hold anything but is in brackets."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def tell(jobs, done, repeated, left, elapsed_s, worker_cpu_s, server_cpu_s):
    """Prints the result of a run, which the benchmark reads."""
    print(json.dumps({
        "jobs": jobs, "done": done, "repeated": repeated, "left": left, "elapsed_s": elapsed_s,
        "worker_cpu_s": worker_cpu_s, "server_cpu_s": server_cpu_s,
    }), flush=True)


class Tally:
    """The jobs of one process. `when_all` is called when the last of them is done."""

    def __init__(self, jobs, server_pid, when_all=lambda: None):
        self.jobs = jobs
        self.server_pid = server_pid
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
        return time.monotonic(), time.process_time(), server_cpu_s(self.server_pid)

    def tell(self, left):
        first, last = self.first or self.moment(), self.last or self.moment()
        spans = [late - early for early, late in zip(first, last)]
        tell(self.jobs, self.done, self.repeated, left, *spans)


class TallyOfForks:
    """Jobs that run in forks of the worker: each writes a line to a file that all of them share.

    The processor time is that of the worker and its forks in the whole block.
    """

    def __init__(self, jobs, server_pid):
        self.jobs = jobs
        self.server_pid = server_pid
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
        line = f"{number} {time.monotonic()} {server_cpu_s(self.server_pid)}\n"
        os.write(self.file.fileno(), line.encode())

    def tell(self, left):
        self.file.seek(0)
        lines = [tuple(map(float, line.split())) for line in self.file]
        done = len({number for number, _, _ in lines})
        moments = [moment for _, *moment in lines] or [(0, 0)]
        elapsed_s, server_s = (late - early for early, late in zip(moments[0], moments[-1]))
        tell(self.jobs, done, len(lines) - done, left, elapsed_s, self.cpu_s, server_s)
