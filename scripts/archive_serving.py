"""Trials of servers that archive by themselves, for scripts/archive_check.py.

Numbers go one after the other into a queue, then into a second one, which is in another shard if
there are two, then into a third one, of which some are taken and finished. What was asked for and
what was confirmed is noted with its moments, over kills too. The store makes trouble, goes away and
comes back; servers are killed, also between an object and its mark, and while compaction removes
what is not archived yet; copies of a directory are started. Whatever is restored is held against
what was noted.
"""

import json
import re
import shutil
import threading
import time

from archive_store import TROUBLES, Failure, ending, expect
from archive_trial import (
    MOMENTS, PATIENCE, SLACK_MS, Lost, Server, Trial, await_that, go_on, moment, now_ms,
)

EVERY = "200ms"
# What suffices for everything here, and what does not.
BACKLOG, SMALL_BACKLOG = "4GiB", "64MiB"
# From how many bytes on a server keeps what is not archived yet, rather than what goes in a moment.
KEPT = 96 << 20
# What is put and popped again until it keeps so much, and how often at most.
CHURN_BYTES, CHURN_MOST = 700 << 10, 3_000
# How long a lease lasts, in milliseconds: longer than any of this.
TTR_MS = 3_600_000
# How soon a server must archive again after its place has come back, in seconds.
SOON = 45


class Work(threading.Thread):
    """Puts numbers into the queues, and takes and finishes those of the last one. Goes on with the
    next server when one has ended.

    What was asked for and never confirmed may have happened or not. It is never asked for again,
    except that a task which was taken is finished.
    """

    def __init__(self, server, queues):
        super().__init__(daemon=True)
        self.server, self.queues = server, queues
        self.stopping = threading.Event()
        self.trouble = None
        self.number = self.losses = 0
        # When each was asked for, and when it was confirmed, if it was.
        self.put = [{} for _ in queues]
        self.finished = {}
        # A task that was taken, and may be finished or not.
        self.unsure = None

    def run(self):
        try:
            alive = time.monotonic()
            while not self.is_over():
                expect(time.monotonic() < alive + PATIENCE, "there is no server")
                try:
                    with self.server.client() as client:
                        self.settle(client)
                        alive = self.work_with(client)
                except (Lost, ConnectionError):
                    # The next server is not there yet.
                    self.stopping.wait(0.02)
        except Exception as error:  # The main thread tells it.
            self.trouble = error

    def is_over(self):
        return self.stopping.is_set() or ending.is_set()

    def work_with(self, client):
        """Works until it is over or the connection is lost, and returns when that was."""
        try:
            while not self.stopping.wait(0.01) and not ending.is_set():
                self.number += 1
                for queue, put in zip(self.queues, self.put):
                    self.noted(put, self.number, client, "PUT", queue, self.number)
                if self.number % 3 == 0:
                    self.finish_one(client)
        except (Lost, ConnectionError):
            self.losses += 1
        return time.monotonic()

    def finish_one(self, client):
        [task] = client.call("TAKE", self.queues[-1], "TTR", TTR_MS)
        self.unsure = int(task[3]), task[2]
        number, receipt = self.unsure
        self.noted(self.finished, number, client, "ACK", self.queues[-1], receipt)
        self.unsure = None

    def settle(self, client):
        """Finishes what was taken, unless that had happened already."""
        if self.unsure:
            number, receipt = self.unsure
            client.send("ACK", self.queues[-1], receipt)
            reply = client.reply()
            is_done = reply == b"OK" or str(reply).startswith("STALE")
            expect(is_done, f"what was taken cannot be finished: {reply}")
            asked, _ = self.finished.get(number, (now_ms(), None))
            self.finished[number] = asked, now_ms()
            self.unsure = None

    def noted(self, notes, number, client, *words):
        asked = now_ms()
        notes[number] = asked, None
        client.call(*words)
        notes[number] = asked, now_ms()

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE)
        if self.trouble:
            raise self.trouble
        expect(self.number > 50 and self.finished, "nearly nothing was put")

    def await_more(self, count):
        """Waits until so many more numbers were confirmed."""
        until = self.number + count + 1
        await_that(lambda: self.trouble or self.number > until, "numbers are put")
        if self.trouble:
            raise self.trouble

    def check(self, found, at):
        """Compares what there is of each queue with what there was at a moment, as was noted."""
        notes = zip(self.queues, found, self.put, ({}, {}, self.finished))
        for queue, numbers, put, finished in notes:
            # It may go on meanwhile.
            put, finished = dict(put), dict(finished)
            gone = {it for it, (_, came) in finished.items() if came and came <= at - SLACK_MS}
            ending_soon = {it for it, (asked, _) in finished.items() if asked <= at + SLACK_MS}
            sure = {it for it, (_, came) in put.items() if came and came <= at - SLACK_MS}
            maybe = {it for it, (asked, _) in put.items() if asked <= at + SLACK_MS}
            lost = sorted(sure - ending_soon - set(numbers))
            expect(not lost, f"{queue} at {moment(at)} lacks {len(lost)} numbers, from {lost[:1]}")
            more = sorted(set(numbers) - (maybe - gone))
            told = f"{queue} at {moment(at)} has {len(more)} numbers too many, from {more[:1]}"
            expect(not more, told)
        first, second, third = map(set, found)
        expect(third <= second <= first, "no cut: a queue has more than the one before")
        expect(len(first - second) <= 1 + self.losses, "no cut: a queue has less than the next")


class Archiving(Trial):
    """A server that archives by itself."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.killed, self.moments = [], []

    def steps(self):
        self.step("what is refused")
        self.refuse_nonsense()
        self.step("a server under load")
        self.begin()
        self.step("kills" + (", while the store makes trouble" if self.proxy else ""))
        self.kill_under_load()
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
        self.step("moments restored, and compared")
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
        self.killed.append(now_ms())
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
            names = [(at % self.shards, f"numbers-{at}") for at in range(3)]
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
        """Restores a moment, and compares what a server has then."""
        data, said = self.restored(*words)
        why = ["before-gap"] if until_gap else ["exact", "latest"]
        expect(said["why"] in why and said["from"] == self.line, f"{words}: {said}")
        at = said["at_ms"] if at is None else at
        expect(said["at_ms"] == at, f"{moment(at)} was asked for, and not restored: {said}")
        server = Server(self.runner, data, self.shards)
        found = [self.exported(server, queue) for queue in self.queues]
        expect(self.figures(server)["state"] == "off", "a restored server archives")
        server.stop()
        shutil.rmtree(data)
        self.work.check(found, at)
        return found, at

    # Kills and troubles.

    def kill_under_load(self):
        if self.proxy:
            self.proxy.share = 0.25
        for _ in range(3):
            self.work.await_more(10)
            ending.wait(self.dice.uniform(0, 0.8))
            self.kill_and_start()
        if self.proxy:
            self.await_that_all_troubles_came()
            self.proxy.share = 0.0
        self.await_archived()
        self.check_quiet(self.server)

    def await_that_all_troubles_came(self):
        troubles = set(TROUBLES)
        await_that(lambda: troubles <= set(self.proxy.met), "requests have met with each trouble")

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
        _, at = self.compare(None)
        expect(at >= asked, f"{moment(at)} is restored, and {moment(asked)} was archived")
        self.go_on_with(self.start())

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
        ended = now_ms()
        self.place.come_back()
        self.await_archived(within=SOON)
        self.check_quiet(self.server)
        [before, after] = self.expect_ranges(2)
        is_soon = after["from_ms"] <= ended
        expect(is_soon, f"more was let go than until {moment(ended)}: {after['from']}")
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
        found = [self.exported(restored, queue) for queue in self.queues]
        restored.stop()
        shutil.rmtree(data)
        # Everything that was confirmed, long ago or just now.
        self.work.check(found, stopped + 10 * SLACK_MS)
        # When each was put, of which nothing is removed.
        self.truth = found[:2]

    def restore_moments(self):
        [whole] = self.expect_ranges(1)
        first, last = min(self.truth[0].values()), max(self.truth[0].values())
        expect(whole["from_ms"] <= first and whole["to_ms"] >= last, f"not all is there: {whole}")
        marks = self.mark_names()
        number = self.dice.choice(sorted(marks)[1:])
        moments = [self.mark(number, marks[number])["at_ms"], *self.moments]
        moments += [self.dice.choice(self.killed) - self.dice.randrange(100)]
        moments += [self.dice.randrange(first, last) for _ in range(MOMENTS)]
        if self.proxy:
            self.proxy.share = 0.1
        for at in moments:
            found, _ = self.compare(at, "--until", str(at))
            for numbers, truth in zip(found, self.truth):
                self.check_truth(numbers, truth, at)
        if self.proxy:
            self.proxy.share = 0.0

    def check_truth(self, numbers, truth, at):
        """Compares numbers with those that were put until then, as the server tells."""
        count = len(numbers)
        expect(sorted(numbers) == sorted(truth)[:count], f"{moment(at)} is no beginning")
        is_same = all(truth[number] == put for number, put in numbers.items())
        expect(is_same, "the moment of a put has changed")
        least = sum(put <= at - SLACK_MS for put in truth.values())
        most = sum(put <= at for put in truth.values())
        expect(least <= count <= most, f"{count} numbers are there instead of {least} to {most}")

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
