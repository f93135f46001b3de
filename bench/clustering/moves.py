"""How long a shard is not served: when its owner is killed, and when it is stopped in order."""

import signal
import threading
import time
from itertools import cycle

from .engines import Etcd, Missing, Postgres
from .nodes import Client, Nodes, Refused, queue_in
from .processes import Processes, Trouble
from .tables import number, quantile, table

# Between two requests of a probe.
PAUSE_S = 0.002

# An answer that comes this long after a process has ended cannot be its own.
ECHO_S = 0.1

NAMES = ["n1", "n2"]


def with_standby(processes):
    return Postgres(processes, has_standby=True)


ENGINES = {"etcd": Etcd, "PostgreSQL with a standby": with_standby}


class Probe(threading.Thread):
    """Asks for one thing after the other, and again where it is refused. Notes how long it took."""

    def __init__(self, port, *requests):
        super().__init__(daemon=True)
        self.client, self.requests = Client(port), cycle(requests)
        # When each was sent first, and when it was done.
        self.done, self.refusals, self.broken = [], {}, None
        self.stopping = threading.Event()
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                words, began = next(self.requests), time.monotonic()
                while not self.is_done(words) and not self.stopping.is_set():
                    self.stopping.wait(PAUSE_S)
                self.done.append((began, time.monotonic()))
                self.stopping.wait(PAUSE_S)
        except OSError as error:
            self.broken = error

    def is_done(self, words):
        try:
            self.client.ask(*words)
            return True
        except Refused as refusal:
            word = str(refusal).split()[0]
            self.refusals[word] = self.refusals.get(word, 0) + 1
            return False

    def first_after(self, moment):
        """When something was done that only the owner after this moment can have done."""
        for began, done in list(self.done):
            if done > moment and (began > moment or done > moment + ECHO_S):
                return done
        return None

    def finish(self):
        self.stopping.set()
        self.join()
        self.client.close()
        if self.broken:
            raise Trouble(f"a probe has lost its connection: {self.broken}")


class Pair:
    """Two nodes, of which one serves all shards. The one is ended, and started again as the other
    one. So shards never move by themselves, which they do only after two sessions."""

    def __init__(self, processes, program, engine, session_s, load):
        shards, tasks, size = load
        url = ENGINES[engine](processes).url("moves")
        self.processes = processes
        self.nodes = Nodes(processes, program, url, shards, session_s)
        self.owner, self.other = NAMES
        self.nodes.start(self.owner)
        self.nodes.await_owners(self.owner)
        self.nodes.await_member(self.owner)
        for shard in range(shards):
            self.nodes.fill(shard, tasks // shards, size)
        self.join()

    def join(self):
        self.nodes.start(self.other)
        self.nodes.await_member(self.other)

    def probes(self, *requests):
        queues = [queue_in(shard, self.nodes.shards) for shard in range(self.nodes.shards)]
        filled = [[[word.format(queue=it) for word in words] for words in requests]
                  for it in queues]
        probes = [Probe(self.nodes.ports[self.other], *it) for it in filled]
        self.processes.await_that("no probe is answered", lambda: all(it.done for it in probes))
        if set(self.nodes.owners().values()) != {self.owner}:
            raise Trouble(f"{self.owner} no longer serves all shards")
        return probes

    def swap(self):
        """Goes on the other way round."""
        self.processes.forget(self.owner)
        self.owner, self.other = self.other, self.owner
        self.join()

    def kill(self):
        """Kills the owner. Returns how long it took until each shard has answered a take."""
        probes = self.probes(["TAKE", "{queue}", "TTR", "60000"])
        process, began = self.processes.by_name[self.owner], time.monotonic()
        process.kill()
        process.wait()
        dead, until = time.monotonic(), time.monotonic() + 60
        pause = threading.Event()
        while not all(probe.first_after(dead) for probe in probes):
            if time.monotonic() > until:
                raise Trouble(f"no take is answered after {self.owner} was killed")
            pause.wait(0.01)
        gaps = [probe.first_after(dead) - began for probe in probes]
        for probe in probes:
            probe.finish()
        self.swap()
        return gaps

    def stop(self):
        """Stops the owner in order, once it has seen that there is another node, which it looks
        for five times in a session. Returns the longest time that a request took, how long the
        node took to end, and what was refused."""
        threading.Event().wait(0.3 * self.nodes.session_s)
        probes = self.probes(["PUT", "{queue}", "x"], ["TAKE", "{queue}", "TTR", "60000"])
        process, began = self.processes.by_name[self.owner], time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        took, pause = time.monotonic() - began, threading.Event()
        if code != 0:
            raise Trouble(f"{self.owner} has ended with {code}")
        pause.wait(0.3)
        refused = {}
        for probe in probes:
            probe.finish()
            for word, count in probe.refusals.items():
                refused[word] = refused.get(word, 0) + count
        longest = max(done - sent for probe in probes for sent, done in probe.done if done > began)
        self.swap()
        return longest, took, refused


def run_kills(program, engine, session_s, count, load, note):
    """Kills owners. Returns the longest gap of each time."""
    gaps = []
    with Processes() as processes:
        pair = Pair(processes, program, engine, session_s, load)
        for at in range(count):
            of_shards = pair.kill()
            gaps.append(max(of_shards))
            note({"section": "failover", "engine": engine, "session_s": session_s, "round": at,
                  "gaps_s": of_shards})
    return gaps


def run_stops(program, engine, count, load, note):
    """Stops owners. Returns what each of them has shown."""
    shown = []
    with Processes() as processes:
        pair = Pair(processes, program, engine, 5, load)
        for at in range(count):
            longest, took, refused = pair.stop()
            shown.append((longest, took, refused))
            note({"section": "drain", "engine": engine, "round": at, "longest_s": longest,
                  "took_s": took, "refused": refused})
    return shown


def report_kills(results, load):
    shards, tasks, size = load
    rows = []
    for (engine, session_s), gaps in results.items():
        if isinstance(gaps, Missing):
            rows.append([engine, f"{session_s} s", f"NOT RUN: {gaps}", "", "", ""])
            continue
        rows.append([engine, f"{session_s} s", str(len(gaps)), number(quantile(gaps, 0.5)),
                     number(quantile(gaps, 0.99)), number(2 * session_s)])
    titles = ["engine", "`--session-ttl`", "kills", "gap, p50 in s", "p99 in s", "aim in s"]
    return (f"{tasks:,} tasks of {size} bytes in {shards} shards, all of one node, which is killed "
            f"with kill -9. Until each shard has answered a take.\n\n{table(titles, rows)}")


def report_stops(results, load):
    shards, tasks, size = load
    rows = []
    for engine, shown in results.items():
        if isinstance(shown, Missing):
            rows.append([engine, f"NOT RUN: {shown}", "", "", "", ""])
            continue
        longest = [1000 * it[0] for it in shown]
        refused = {word for it in shown for word in it[2]}
        rows.append([engine, str(len(shown)), number(quantile(longest, 0.5)),
                     number(quantile(longest, 0.99)), number(quantile([it[1] for it in shown], 0.5)),
                     ", ".join(sorted(refused)) or "nothing"])
    titles = ["engine", "SIGTERMs", "longest wait, p50 in ms", "p99 in ms",
              "the node took, p50 in s", "refused with"]
    return (f"{tasks:,} tasks of {size} bytes in {shards} shards, all of one node, which has to "
            f"stop. For each shard a client puts and takes, at the other node; the longest time "
            f"from sending a request for the first time until it was done.\n\n{table(titles, rows)}")
