"""Trials of servers that archive by themselves, for scripts/archive_check.py.

Numbers go one after the other into a queue, then into a second one, which is in another shard if
there are two. Nothing is taken there, so a server tells what it had at any moment before. The store
goes away and comes back; servers are killed between an object and its mark, and while compaction
removes what is not archived yet; copies of a directory are started. Whatever is restored is held
against what the server has that goes on. Kills at random are up to archive_crash.py.
"""

import datetime
import json
import re
import shutil
import threading
import time

from archive_store import Failure, ending, expect
from archive_trial import (
    PATIENCE, SLACK_MS, Lost, Server, Trial, await_that, go_on, moment, now_ms,
)

EVERY = "200ms"
# What suffices for everything here, and what does not.
BACKLOG, SMALL_BACKLOG = "4GiB", "64MiB"
# From how many bytes on a server keeps what is not archived yet, rather than what goes in a moment.
KEPT = 96 << 20
# What is put and popped again until it keeps so much, and how often at most.
CHURN_BYTES, CHURN_MOST = 700 << 10, 3_000
# How soon a server must archive again after its place has come back, in seconds.
SOON = 45


class Work(threading.Thread):
    """Puts numbers into the queues. Goes on with the next server when one has ended.

    What was asked for and never confirmed may have happened or not. It is never asked for again.
    """

    def __init__(self, server, queues):
        super().__init__(daemon=True)
        self.server, self.queues = server, queues
        self.stopping = threading.Event()
        self.trouble = None
        self.number = self.losses = 0

    def run(self):
        try:
            alive = time.monotonic()
            while not self.stopping.is_set() and not ending.is_set():
                expect(time.monotonic() < alive + PATIENCE, "there is no server")
                try:
                    with self.server.client() as client:
                        alive = self.work_with(client)
                except (Lost, ConnectionError):
                    # The next server is not there yet.
                    self.stopping.wait(0.02)
        except Exception as error:  # The main thread tells it.
            self.trouble = error

    def work_with(self, client):
        """Works until it is over or the connection is lost, and returns when that was."""
        try:
            while not self.stopping.wait(0.01) and not ending.is_set():
                self.number += 1
                for queue in self.queues:
                    client.call("PUT", queue, self.number)
        except (Lost, ConnectionError):
            self.losses += 1
        return time.monotonic()

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE)
        if self.trouble:
            raise self.trouble
        expect(self.number > 50, "nearly nothing was put")

    def await_more(self, count):
        """Waits until so many more numbers were confirmed."""
        until = self.number + count + 1
        await_that(lambda: self.trouble or self.number > until, "numbers are put")
        if self.trouble:
            raise self.trouble


class Archiving(Trial):
    """A server that archives by itself."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.moments = []

    def steps(self):
        self.step("what is refused")
        self.refuse_nonsense()
        self.step("a server under load")
        self.begin()
        self.step("kills between an object and its mark")
        self.kill_at_marks()
        if self.proxy:
            self.step("the mark of a server that was killed comes late")
            self.delay_mark()
            self.step("what a mark costs")
            self.count_requests()
        self.step("the disk is lost")
        self.lose_disk()
        self.step("the place is away, while there is compaction and a kill")
        self.lose_place()
        self.step("a stop under load")
        self.stop_under_load()
        self.step("moments of a mark, and of when the place was away")
        self.restore_moments()
        self.step("the place is away for longer than the backlog suffices")
        self.overrun_backlog()
        self.step("two servers on copies of one directory")
        self.start_copies()
        self.step("an older copy")
        self.start_older_copy()
        self.conclude()

    # The server.

    def start(self, data=None, backlog=BACKLOG):
        settings = ["--archive", self.place.url, "--archive-every", EVERY]
        settings += ["--archive-backlog", backlog]
        return Server(self.runner, data or self.data, self.shards, *settings)

    def go_on_with(self, server):
        self.server = self.work.server = server

    def kill(self):
        self.server.kill()
        self.check_quiet(self.server)

    def kill_and_start(self):
        self.kill()
        self.go_on_with(self.start())

    def check_quiet(self, server):
        """No trouble that passes is an error."""
        expect(not server.errors, f"an error is logged: {server.errors[:1]}")

    def put(self, server, name):
        with server.client() as client:
            client.call("PUT", name, "x")

    def begin(self):
        self.server = self.start()
        with self.server.client() as client:
            names = [(at % self.shards, f"numbers-{at}") for at in range(2)]
            self.queues = [self.queue_in(client, *name) for name in names]
            # One shard has enough to do with it.
            self.churned = self.queue_in(client, 0, "churn")
        self.work = Work(self.server, self.queues)
        self.work.start()
        self.work.await_more(20)
        self.await_archived()
        self.line = self.newest_mark()["line"]
        expect(self.newest_mark()["by"] == "serve", "a mark is not by a server")
        # It has a place of its own, in which nobody else may write.
        self.runner.run("backup", self.place.url, "--address", self.server.http, status=2)

    def refuse_nonsense(self):
        place = self.place.url
        data = self.folder / "nonsense"
        for words in (
            ("--archive", "gs://bucket/prefix"),
            ("--archive", place, "--durability", "memory"),
            ("--archive", place, "--archive-every", "5ms"),
            ("--archive", place, "--archive-keep", "7"),
            ("--archive", place, "--scrub-every", "1s"),
            ("--archive", data / "place"),
            ("--archive-every", "1s"),
        ):
            doors = ["--pinpriq", "off", "--resp", "127.0.0.1:0", "--http", "off"]
            self.runner.run("serve", "--data", data, *doors, *words, status=2)
        expect(not self.place.names(), "a server that does not start has written something")

    # What the archive has.

    def await_archived(self, server=None, within=PATIENCE):
        """Waits until everything that is confirmed now is in the archive, by a mark that says so,
        and the server says that too. Returns the moment of the call.
        """
        server, asked = server or self.server, now_ms()

        def is_there():
            # There is no mark where there is nothing new.
            client.call("PUT", "probes", "x")
            mark = self.newest_mark()
            return mark and mark["at_ms"] > asked + SLACK_MS

        with server.client() as client:
            await_that(is_there, f"all until {moment(asked)} is archived", within)
        self.await_figures(server, lambda it: it["state"] == "ok" and it["behind_ms"] < 10_000)
        return asked

    def figures(self, server):
        """Returns what INFO tells about the archive."""
        told = server.figures()
        names = ("behind_bytes", "behind_ms", "failures")
        numbers = {name: int(told[f"archive_{name}"]) for name in names}
        return {"state": told["archive_state"], "segments": int(told["journal_segments"])} | numbers

    def await_figures(self, server, hold, within=PATIENCE):
        last = {}

        def do_hold():
            last.update(self.figures(server))
            return hold(last)

        try:
            await_that(do_hold, "the archive is as it should be", within)
        except Failure as error:
            raise Failure(f"{error}: {last}") from error

    def await_rest(self):
        """Waits until the server says that it has archived everything."""
        names = ("state", "behind_bytes", "behind_ms")
        rest = ["ok", 0, 0]
        self.await_figures(self.server, lambda it: [it[name] for name in names] == rest)

    def kept(self):
        """Returns how many bytes of segments are there that the journal does not need. Only that of
        the first shard is ever emptied here.
        """
        first = self.data if self.shards == 1 else self.data / "shard-00"
        count = sum(1 for _ in self.data.rglob("segment-*.log"))
        count -= self.figures(self.server)["segments"]
        try:
            oldest = sorted(first.glob("segment-*.log"))[:max(count, 0)]
            return sum(path.stat().st_size for path in oldest)
        except FileNotFoundError:
            # One has gone meanwhile.
            return 0

    def ranges(self):
        """Returns from when to when there is everything, as the program tells."""
        lines = self.runner.json("archive", "list", self.place.url)
        [line] = [line for line in lines if line["line"] == self.line]
        expect(line["by"] == "serve", "the line is not by a server")
        return line["ranges"]

    def expect_ranges(self, count):
        ranges = self.ranges()
        told = [f"{it['from']} to {it['to']}" for it in ranges]
        expect(len(ranges) == count, f"not {count} stretches without a gap: {told}")
        return ranges

    def compare(self, at, *words, until_gap=False):
        """Restores a moment, and compares what a server has then with the one that goes on."""
        return self.hold_against(self.restored(*words), at, until_gap)

    def hold_against(self, restored, at=None, until_gap=False):
        """Compares what was restored with what the server has of that moment, and returns it."""
        data, said = restored
        why = ["before-gap"] if until_gap else ["exact", "latest"]
        expect(said["why"] in why and said["from"] == self.line, f"{said}")
        at = said["at_ms"] if at is None else at
        expect(said["at_ms"] == at, f"{moment(at)} was asked for, and not restored: {said}")
        server = Server(self.runner, data, self.shards)
        found = [self.exported(server, queue) for queue in self.queues]
        expect(self.figures(server)["state"] == "off", "a restored server archives")
        server.stop()
        shutil.rmtree(data)
        for queue, numbers in zip(self.queues, found):
            self.check_truth(numbers, self.exported(self.server, queue), at)
        first, second = map(set, found)
        expect(second <= first, "no cut: a queue has more than the one before")
        is_cut = len(first - second) <= 1 + self.work.losses
        expect(is_cut, "no cut: a queue has less than the next")
        return at

    def check_truth(self, numbers, truth, at):
        """Compares numbers with those that were put until then, as the server tells."""
        count = len(numbers)
        expect(sorted(numbers) == sorted(truth)[:count], f"{moment(at)} is no beginning")
        is_same = all(truth[number] == put for number, put in numbers.items())
        expect(is_same, "the moment of a put has changed")
        least = sum(put <= at - SLACK_MS for put in truth.values())
        most = sum(put <= at for put in truth.values())
        expect(least <= count <= most, f"{count} numbers are there instead of {least} to {most}")

    # Kills and troubles.

    def kill_at_marks(self):
        for _ in range(2):
            self.await_archived()
            newest = max(self.mark_names())
            if self.proxy:
                hold = self.proxy.hold_back("PUT", "/marks/")
                await_that(hold.reached.is_set, "a mark is put")
                self.kill()
                # The object is there, and the mark comes as if it had been under way.
                hold.released.set()
            else:
                await_that(
                    lambda: max(self.mark_names()) > newest, "there is a new mark", pace=0.001
                )
                self.kill()
            self.go_on_with(self.start())
        self.await_archived()
        self.check_quiet(self.server)

    def delay_mark(self):
        """A start meets with the number of its first mark taken, by the one before."""
        first = self.proxy.hold_back("PUT", "/marks/")
        await_that(first.reached.is_set, "a mark is put")
        self.kill()
        second = self.proxy.hold_back("PUT", "/marks/")
        self.go_on_with(self.start())
        await_that(second.reached.is_set, "a mark is put after the start")
        expect(first.paths == second.paths, f"other marks: {first.paths}, {second.paths}")
        [block, last] = re.search(r"/(\d{9})/(\d{3})$", *first.paths).groups()
        number = int(block) * 1_000 + int(last)
        first.released.set()
        await_that(lambda: number in self.mark_names(), f"mark {number} is there")
        second.released.set()
        self.await_archived()
        self.check_quiet(self.server)

    def count_requests(self):
        """A mark costs three requests: an object with what is new in all shards, the mark before, and
        itself. Besides, a server that has started reads the last marks of the one before, some with
        each of its own."""
        self.await_archived()
        await_that(self.costs_only_puts, "a mark costs three requests")

    def costs_only_puts(self):
        before, first = self.proxy.asked.copy(), max(self.mark_names())
        await_that(lambda: max(self.mark_names()) >= first + 8, "there are more marks")
        marks, asked = max(self.mark_names()) - first, self.proxy.asked - before
        puts = asked.pop("PUT")
        expect(puts <= 2 * marks + 4, f"{puts} objects were put for {marks} marks")
        # Once a minute it looks for its newest mark, and whether that is the newest of all.
        return asked.total() <= marks + 4

    def lose_disk(self):
        """What is archived is there without the data directory."""
        asked = self.await_archived()
        self.work.await_more(5)
        self.kill()
        restored = self.restored()
        self.go_on_with(self.start())
        at = self.hold_against(restored)
        expect(at >= asked, f"{moment(at)} is restored, and {moment(asked)} was archived")

    # The place is away.

    def churn(self, holds):
        """Puts and pops, so that segments hold nothing that counts, until something holds."""
        with self.server.client() as client:
            for number in range(CHURN_MOST):
                go_on()
                payload = b"%020d" % number * (CHURN_BYTES // 20)
                client.call("PUT", self.churned, payload)
                [task] = client.call("POP", self.churned)
                expect(task[3] == payload, "a payload has changed")
                if number % 10 == 0 and holds():
                    return
        raise Failure("compaction does not come about")

    def await_away(self):
        """Waits until the server says that it cannot archive, and why."""
        def is_told(it):
            is_late = it["behind_bytes"] > 0 and it["behind_ms"] > 0
            return it["state"] not in ("ok", "starting") and it["failures"] > 0 and is_late

        self.await_figures(self.server, is_told)

    def lose_place(self):
        self.await_archived()
        begun = now_ms()
        self.place.go_away()
        self.churn(lambda: self.kept() >= KEPT)
        self.await_away()
        self.kill_and_start()
        expect(self.kept() >= KEPT, "a start has removed what was not archived")
        self.churn(lambda: self.kept() >= KEPT + (32 << 20))
        self.work.await_more(5)
        ended = now_ms()
        self.moments += [self.dice.randrange(begun, ended) for _ in range(2)]
        self.place.come_back()
        self.await_archived(within=SOON)
        await_that(lambda: self.kept() < KEPT, "what was archived is let go")
        self.expect_ranges(1)
        self.check_quiet(self.server)

    def overrun_backlog(self):
        self.server.stop()
        self.go_on_with(self.start(backlog=SMALL_BACKLOG))
        self.await_archived()
        self.await_rest()
        self.place.go_away()
        known = len(self.server.warnings)

        def is_told():
            return any("backlog" in line for line in self.server.warnings[known:])

        self.churn(lambda: self.kept() >= KEPT or is_told())
        await_that(is_told, "it is said that more stays than the backlog")
        await_that(lambda: self.kept() < KEPT, "more than the backlog is let go")
        self.place.come_back()
        self.await_archived(within=SOON)
        self.check_quiet(self.server)
        # What a compaction needed may be too much once it is over, also after the place is back.
        told = [line for line in self.server.warnings[known:] if "--archive-backlog" in line]
        ended = datetime.datetime.fromisoformat(json.loads(told[-1])["timestamp"]).timestamp()
        before, after, *others = self.ranges()
        expect(len(others) < len(told), f"more gaps than warnings: {others}")
        is_soon = [after, *others][-1]["from_ms"] <= ended * 1_000
        expect(is_soon, f"more was let go than was told: {[after, *others]}")
        gap = (before["to_ms"] + after["from_ms"]) // 2
        self.compare(before["to_ms"], "--until", str(gap), until_gap=True)
        self.compare(None)

    # What is compared.

    def tasks(self, server):
        """Returns all that is exported of each task."""
        printed, _ = self.runner.run("export", "--all", "--address", server.resp)
        lines = [line for line in printed.splitlines() if json.loads(line)["type"] == "task"]
        expect(len(lines) > 50, "nearly nothing is there")
        return sorted(lines)

    def stop_under_load(self):
        """What a server had that was stopped is in the archive, no more and no less."""
        if self.proxy:
            self.proxy.share = 0.1
        self.work.await_more(20)
        self.server.stop()
        stopped = now_ms()
        self.work.stop()
        if self.proxy:
            self.proxy.share = 0.0
        self.check_quiet(self.server)
        data, said = self.restored()
        expect(said["why"] == "latest" and said["at_ms"] <= stopped, f"{said}")
        restored = Server(self.runner, data, self.shards)
        self.go_on_with(self.start())
        there, here = self.tasks(restored), self.tasks(self.server)
        other = sorted(set(there) ^ set(here))
        expect(there == here, f"after a stop {len(other)} tasks differ, from {other[:1]}")
        restored.stop()
        shutil.rmtree(data)

    def restore_moments(self):
        [whole] = self.expect_ranges(1)
        puts = self.exported(self.server, self.queues[0]).values()
        is_whole = whole["from_ms"] <= min(puts) and whole["to_ms"] >= max(puts)
        expect(is_whole, f"not all is there: {whole}")
        marks = self.mark_names()
        number = self.dice.choice(sorted(marks)[1:])
        if self.proxy:
            self.proxy.share = 0.1
        for at in (self.mark(number, marks[number])["at_ms"], *self.moments):
            self.compare(at, "--until", str(at))
        if self.proxy:
            self.proxy.share = 0.0

    # Copies.

    def await_refused(self, servers):
        """Waits until one of the servers has given up archiving, and returns it. It serves on."""
        await_that(lambda: any(server.errors for server in servers), "a copy is refused")
        refused, *others = [server for server in servers if server.errors]
        expect(not others, "both servers have given up archiving")
        expect("archiv" in refused.errors[0], f"the error is another one: {refused.errors[0]}")
        self.await_figures(refused, lambda it: it["state"] not in ("ok", "starting", "off"))
        self.put(refused, "refused")
        return refused

    def start_copies(self):
        self.server.stop()
        copy = self.folder / "copy"
        shutil.copytree(self.data, copy)
        # Both have seen the same marks before either writes.
        hold = self.proxy.hold_back("PUT", "/parts/", parties=2) if self.proxy else None
        servers = [self.start(), self.start(copy)]
        if hold:
            await_that(hold.reached.is_set, "both servers put their first objects")
            hold.released.set()
        else:
            for server in servers:
                self.put(server, "probes")
        refused = self.await_refused(servers)
        servers.remove(refused)
        [self.server] = servers
        self.data = self.server.data
        self.put(self.server, "winner")
        self.await_archived()
        # Nor does it go on after another start, whatever it has by then.
        refused.stop()
        refused = self.start(refused.data)
        self.await_refused([refused])
        self.await_archived()
        self.check_quiet(self.server)
        refused.stop()
        shutil.rmtree(refused.data)
        names = self.queues_of_latest("winner", "refused")
        expect(names == ["winner"], f"of two copies {names} are in the archive")

    def queues_of_latest(self, *names):
        """Returns which of these queues the newest moment has."""
        data, _ = self.restored()
        server = Server(self.runner, data, self.shards)
        with server.client() as client:
            found = [name for name in names if client.call("PEEK", name)]
        server.stop()
        shutil.rmtree(data)
        return found

    def start_older_copy(self):
        self.server.stop()
        older = self.folder / "older"
        shutil.copytree(self.data, older)
        for _ in range(2):
            self.server = self.start()
            self.put(self.server, "newer")
            self.await_archived()
            self.server.stop()
        names = self.place.names()
        copy = self.start(older)
        self.await_refused([copy])
        copy.stop()
        expect(self.place.names() == names, "an older copy has written something")
        shutil.rmtree(older)

    def conclude(self):
        self.server = self.start()
        self.await_archived()
        self.await_rest()
        count = len(self.mark_names())
        self.check_quiet(self.server)
        self.server.stop()
        self.runner.run("archive", "verify", self.place.url)
        expect(self.queues_of_latest("newer", "refused") == ["newer"], "the end is not archived")
        if not self.proxy:
            self.place.check_modes()
        print(f"    {self.name}: {count} marks, {self.restores} restores")
