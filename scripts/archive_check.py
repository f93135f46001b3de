"""Holds archives against what servers had: `archive_check.py PROGRAM WORK MOMENTS STORE SEED`.
WORK is empty, and STORE is moto or radosgw.

Three servers at a time, of one and of two shards, are backed up under load: into the store behind a
proxy that makes trouble, and into a directory. Moments are restored into new directories, on which
servers are started, and each must have what the first one had at that moment. Races, kills and
damage are brought about. Called by scripts/archive-check. Meanwhile three others archive by
themselves: see archive_serving.py. So do three more, which the crash harness kills at random: see
archive_crash.py. And the drills of the documentation are played: see archive_drills.py.

Numbers go one after the other into a queue, then into a second one, which is in another shard if
there are two, then into a third one, of which the oldest are popped. So a cut has numbers without a
gap, and of no queue more than of the one before. When each was put, the server tells.
"""

import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback

from archive_crash import Crash
from archive_drills import Drills
from archive_serving import Archiving
from archive_store import (
    BUCKET, KEY, SECRET, TROUBLES, Bucket, Failure, Folder, Proxy, begin_store, ending, expect,
)
from archive_trial import (
    PATIENCE, SHARD_IDS, SLACK_MS, WORK, Ended, Server, Trial, go_on, moment, now_ms,
)

# How long a backup may try while the store is away, in seconds.
AWAY_MOST = 30
# More than one segment of 32 MiB in each shard.
BALLAST, BALLAST_BYTES = 50, 700 << 10
# How far the numbers of a restored server are ahead.
AHEAD = 1 << 36


class Load(threading.Thread):
    """Puts numbers into the queues, and pops the oldest of the last one."""

    def __init__(self, server, queues):
        super().__init__(daemon=True)
        self.server, self.queues = server, queues
        self.stopping = threading.Event()
        self.trouble = None
        # The last number that is in all queues, for sure.
        self.done = 0
        # For each number that was popped, when it was asked for and when it came.
        self.popped = []

    def run(self):
        try:
            client = self.server.client()
            while not self.stopping.wait(0.002) and not ending.is_set():
                number = self.done + 1
                for queue in self.queues:
                    client.call("PUT", queue, number)
                self.done = number
                if number % 3 == 0:
                    asked = now_ms()
                    [task] = client.call("POP", self.queues[-1])
                    self.popped.append((int(task[3]), asked, now_ms()))
            client.close()
        except Exception as error:  # The main thread tells it.
            self.trouble = error

    def stop(self):
        self.stopping.set()
        self.join(PATIENCE)
        if self.trouble:
            raise self.trouble
        expect(self.done > 20, "nearly nothing was put")
        numbers = [number for number, _, _ in self.popped]
        expect(numbers == list(range(1, len(numbers) + 1)), "the queue is in disorder")

    def await_more(self, count):
        until, wanted = time.monotonic() + PATIENCE, self.done + count
        while self.done < wanted:
            go_on()
            expect(time.monotonic() < until and not self.trouble, f"no load: {self.trouble}")
            self.stopping.wait(0.01)


def ballast(number):
    return random.Random(number).randbytes(BALLAST_BYTES)


class Backups(Trial):
    """A server that is backed up."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.backups = []

    def steps(self):
        self.begin()
        if self.proxy:
            self.step("backups under load, while the store makes trouble")
            self.take_backups()
            self.step("the store is away, and comes back")
            self.lose_store()
            self.step("backups that are killed")
            self.kill_backups()
            self.step("two backups at a time")
            for part in ("/parts/", "/marks/"):
                self.race(part, None)
                self.race(part, "lost")
        else:
            self.step("backups under load")
            self.take_backups()
            self.step("two backups at a time")
            self.race_in_directory()
        self.finish_load()
        self.step("moments restored, and compared")
        self.restore_moments()
        self.step("what is refused")
        self.refuse_strangers()
        self.refuse_older_copies()
        self.refuse_nonsense()
        self.step("damage")
        self.find_damage()
        self.step("old backups removed")
        self.prune()
        if self.proxy:
            missing = set(TROUBLES) - set(self.proxy.met)
            expect(not missing, f"no request has met with {missing}")
        else:
            self.place.check_modes()

    # A server, and backups of it.

    def begin(self):
        self.step("a server under load")
        self.server = Server(self.runner, self.data, self.shards)
        client = self.server.client()
        shards = range(self.shards)
        self.queues = [self.queue_in(client, at % self.shards, f"numbers-{at}") for at in range(3)]
        self.ballast = [self.queue_in(client, shard, f"ballast-{shard}") for shard in shards]
        for number in range(BALLAST):
            for queue in self.ballast:
                client.call("PUT", queue, ballast(number))
        for number in range(4):
            client.call("PUT", "held", number)
        self.early = self.lease(client)
        client.close()
        self.load = Load(self.server, self.queues)
        self.load.start()
        self.load.await_more(10)

    def lease(self, client):
        """Takes a task for an hour, and returns the receipt."""
        [task] = client.call("TAKE", "held", "TTR", 3_600_000)
        return task[2]

    def back_up(self, server=None):
        sure, begun = self.load.done, time.monotonic()
        address = (server or self.server).http
        [backup] = self.runner.json("backup", self.place.url, "--address", address)
        expect(backup["at_ms"] <= now_ms(), "a backup has a moment in the future")
        backup |= {"sure": sure, "seconds": time.monotonic() - begun}
        if server is None:
            self.backups.append(backup)
        return backup

    def take_backups(self):
        first = self.back_up()
        if self.proxy:
            self.proxy.share = 0.25
        for _ in range(4):
            self.load.await_more(20)
            later = self.back_up()
            expect(later["mark"] > first["mark"], "a mark has no number of its own")
            expect(later["segments_there"] > 0, "a whole segment was sent once more")
        if self.proxy:
            self.proxy.share = 0.0
        seconds = [f"{backup['seconds']:.1f}" for backup in self.backups]
        sent = [f"{backup['bytes_sent'] / (1 << 20):.1f}" for backup in self.backups]
        print(f"    {self.name}: {', '.join(sent)} MiB sent in {', '.join(seconds)} s")

    def lose_store(self):
        names = self.place.names()
        self.proxy.is_away = True
        begun = time.monotonic()
        self.runner.run("backup", self.place.url, "--address", self.server.http, status=1)
        self.runner.run("archive", "list", self.place.url, status=1)
        seconds = time.monotonic() - begun
        expect(seconds < 2 * AWAY_MOST, f"two commands have tried for {seconds:.0f} s")
        self.proxy.is_away = False
        expect(self.place.names() == names, "a store that is away has changed")
        self.back_up()

    def kill_backups(self):
        for part in ("/parts/", "/marks/"):
            hold = self.proxy.hold_back("PUT", part)
            process = self.runner.begin("backup", self.place.url, "--address", self.server.http)
            expect(hold.reached.wait(PATIENCE), f"nothing was put below {part}")
            process.kill()
            process.communicate()
            # It is carried out, as if it had been under way.
            hold.released.set()
            self.load.await_more(5)
            self.back_up()
        self.runner.run("archive", "verify", self.place.url)

    def race(self, part, trouble):
        """Two put the same name at a time. With `lost` neither hears how it went."""
        hold = self.proxy.hold_back("PUT", part, parties=2, trouble=trouble)
        words = ["backup", self.place.url, "--address", self.server.http, "--json"]
        before = len(self.marks())
        both = [self.runner.begin(*words)]
        expect(hold.begun.wait(PATIENCE), f"nothing was put below {part}")
        # Each has a cut of its own.
        self.load.await_more(2)
        both.append(self.runner.begin(*words))
        expect(hold.reached.wait(PATIENCE), f"two backups have not come to {part}")
        hold.released.set()
        ended = [self.runner.end(process) for process in both]
        expect(len(hold.paths) == 1, f"two backups have put {hold.paths}")
        winners = [printed for status, printed, _ in ended if status == 0]
        expect(len(winners) == 1, f"{len(winners)} of two backups have the mark")
        expect(len(self.marks()) == before + 1, "two backups have not made one mark")
        self.check_winner(json.loads(winners[0]))

    def race_in_directory(self):
        words = ["backup", self.place.url, "--address", self.server.http, "--json"]
        for _ in range(4):
            before = len(self.marks())
            both = [self.runner.begin(*words) for _ in range(2)]
            ended = [self.runner.end(process) for process in both]
            winners = [json.loads(printed) for status, printed, _ in ended if status == 0]
            expect(winners, "of two backups at a time none has a mark")
            numbers = {winner["mark"] for winner in winners}
            expect(len(numbers) == len(winners), "two backups have one mark")
            expect(len(self.marks()) == before + len(winners), "there are other marks")
            for winner in winners:
                self.check_winner(winner)
            self.load.await_more(5)

    def check_winner(self, backup):
        mark = self.marks()[backup["mark"]]
        expect(mark["at_ms"] == backup["at_ms"], "the mark is that of another backup")

    def finish_load(self):
        self.load.await_more(5)
        self.load.stop()
        client = self.server.client()
        last = self.back_up()
        # After the last backup: no restored server knows this lease.
        self.late = self.lease(client)
        client.close()
        self.truth = [self.exported(self.server, queue) for queue in self.queues[:2]]
        for backup in self.backups:
            put = self.truth[0][backup["sure"]]
            expect(put <= backup["at_ms"], f"a backup is of before {moment(put)}: {backup}")
        expect(last["sure"] == self.load.done, "the load goes on")

    # Restored servers.

    def restore_moments(self):
        newest = self.backups[-1]["at_ms"]
        first = self.truth[0][1]
        middle = self.backups[len(self.backups) // 2]["at_ms"]
        by_chance = self.dice.randrange(first, newest)
        [line] = self.runner.json("archive", "list", self.place.url)
        expect(line["backups"] == len(self.marks()), "not all marks are listed")
        expect(line["ranges"][-1]["to"] == moment(newest), "the newest moment is not listed")
        if self.proxy:
            self.proxy.share = 0.15
        for at in (middle, by_chance):
            text = moment(at) if at == middle else str(at)
            data, said = self.restored("--until", text)
            expect(said["at_ms"] == at, f"{moment(at)} was asked for, and is not restored")
            self.compare(data, at)
        data, said = self.restored("--line", line["line"])
        if self.proxy:
            self.proxy.share = 0.0
        expect(said["at_ms"] == newest, "the newest moment is not restored")
        self.compare(data, newest, is_last=True)
        self.go_on(data, line["line"])

    def compare(self, data, at, is_last=False):
        """Starts a server on a directory, and compares it with what there was at a moment."""
        server = Server(self.runner, data, self.shards)
        found = [sorted(self.exported(server, queue)) for queue in self.queues]
        counts = []
        for numbers, truth in zip(found, self.truth):
            counts.append(len(numbers))
            expect(numbers == list(range(1, len(numbers) + 1)), "numbers are missing")
            least = sum(put <= at - SLACK_MS for put in truth.values())
            most = sum(put <= at for put in truth.values())
            told = f"{len(numbers)} numbers are there instead of {least} to {most}"
            expect(least <= len(numbers) <= most, told)
        jobs, popped = found[2], self.load.popped
        counts.append(jobs[-1] if jobs else 0)
        expect(jobs == list(range(jobs[0], jobs[-1] + 1)) if jobs else True, "jobs are missing")
        expect(all(0 <= a - b <= 1 for a, b in zip(counts, counts[1:])), f"no cut: {counts}")
        gone = (jobs[0] if jobs else counts[1] + 1) - 1
        least = sum(came <= at - SLACK_MS for _, _, came in popped)
        most = sum(asked <= at + SLACK_MS for _, asked, _ in popped)
        expect(least <= gone <= most, f"{gone} jobs are popped instead of {least} to {most}")
        self.compare_rest(server, is_last)
        server.stop()
        if not is_last:
            shutil.rmtree(data)

    def compare_rest(self, server, is_last):
        client = server.client()
        for queue in self.ballast:
            for number in range(BALLAST):
                [task] = client.call("POP", queue)
                expect(task[3] == ballast(number), "a payload has changed")
            expect(client.call("POP", queue) == [], "there is more than was put")
        for queue in self.queues[:2]:
            number = int(client.call("PUT", queue, self.load.done + 1)) % SHARD_IDS
            expect(number >= AHEAD, f"the id {number} may have been given before")
        if is_last:
            expect(client.call("ACK", "held", self.early) == b"OK", "a lease is gone")
            client.send("ACK", "held", self.late)
            reply = client.reply()
            is_stale = isinstance(reply, Failure) and str(reply).startswith("STALE")
            expect(is_stale, f"a receipt of after the cut is good: {reply}")
        client.close()

    def go_on(self, data, line):
        """A restored directory goes on in the same place, and the first one too."""
        server = Server(self.runner, data, self.shards)
        client = server.client()
        client.call("PUT", "restored", "x")
        client.close()
        backup = self.back_up(server)
        server.stop()
        shutil.rmtree(data)
        lines = self.runner.json("archive", "list", self.place.url)
        of_new = [entry for entry in lines if entry["line"] == backup["line"]]
        expect(len(of_new) == 1 and of_new[0]["parent"]["line"] == line, f"no new line: {lines}")
        data, said = self.restored()
        expect((said["from"], said["at_ms"]) == (backup["line"], backup["at_ms"]), f"{said}")
        expect("restored" in self.queues_of(data), "what was put after a restore is missing")
        self.back_up()
        self.runner.run("archive", "verify", self.place.url)

    def queues_of(self, data):
        server = Server(self.runner, data, self.shards)
        client = server.client()
        names = [client.call("PEEK", name) and name for name in ("restored", "held")]
        client.close()
        server.stop()
        shutil.rmtree(data)
        return names

    # What must not happen.

    def refuse(self, server, what):
        """A backup of a server is refused before it writes anything."""
        names = self.place.names()
        words = ["backup", self.place.url, "--address", server.http]
        self.runner.run(*words, status=(1, 2, 3))
        expect(self.place.names() == names, f"{what} has written something")

    def refuse_strangers(self):
        stranger = Server(self.runner, self.folder / "stranger", self.shards)
        client = stranger.client()
        client.call("PUT", "theirs", "x")
        client.close()
        self.refuse(stranger, "a stranger")
        stranger.stop()

    def refuse_older_copies(self):
        """A copy that was put back has less than the place, or something else."""
        self.server.stop()
        older = self.folder / "older"
        shutil.copytree(self.data, older)
        self.server = Server(self.runner, self.data, self.shards)
        client = self.server.client()
        for number in range(20):
            client.call("PUT", self.queues[number % 2], f"newer {number}")
        client.close()
        self.back_up()
        copy = Server(self.runner, older, self.shards)
        self.refuse(copy, "an older copy")
        client = copy.client()
        for number in range(60):
            client.call("PUT", self.queues[number % 2], f"something else {number}")
        client.close()
        self.refuse(copy, "an older copy that has gone on")
        copy.stop()
        shutil.rmtree(older)
        self.back_up()

    def refuse_nonsense(self):
        run = self.runner.run
        data = self.folder / "nothing"
        restore = ["restore", self.place.url, "--data", data]
        run(*restore, "--line", "0123456789abcdef", status=4)
        run(*restore, "--until", "soon", status=2)
        run(*restore, "--until", "-10d", status=4)
        run(*restore, "--until", "1000000000000", status=4)
        expect(not data.exists(), "a restore that was refused has made a directory")
        [said] = self.runner.json(*restore, "--dry-run", "--until", "2200-01-01T00:00:00Z")
        expect(said["dry_run"] and not data.exists(), "a dry run has made a directory")
        expect(said["at_ms"] == self.backups[-1]["at_ms"], "the future is not the newest moment")
        data.mkdir()
        (data / "file").write_text("")
        run(*restore, status=2)
        run("archive", "list", "gs://bucket/prefix", status=2)
        if not self.proxy:
            run("archive", "list", self.folder / "not-there", status=(1, 4))
            return
        run("archive", "list", f"{self.place.url}-not-there", status=4)
        run("archive", "list", "s3://no-such-bucket/prefix", status=1)
        run("archive", "list", f"s3://{KEY}:{SECRET}@{BUCKET}/prefix", status=2)
        run("archive", "list", self.place.url, status=2, AWS_ALLOW_HTTP="false")

    def find_damage(self):
        """One byte that is wrong, and an object that is gone, are found and named."""
        marks = self.marks()
        newest = max(marks)
        names = [name for name in self.place.names() if name.startswith(marks[newest]["line"])]
        wholes = [name for name in names if name.endswith("/whole")]
        for name in (self.dice.choice(wholes), f"marks/{newest // 1_000:09}/{newest % 1_000:03}"):
            content = self.place.read(name)
            at = self.dice.randrange(len(content))
            damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            self.place.write(name, damaged)
            printed, told = self.runner.run("archive", "verify", self.place.url, status=3)
            expect(name in printed + told, f"{name} is damaged, and not named")
            data = self.folder / "damaged"
            self.runner.run("restore", self.place.url, "--data", data, status=3)
            shutil.rmtree(data, ignore_errors=True)
            self.place.write(name, content)
        self.runner.run("archive", "verify", self.place.url)

    def prune(self):
        # No backup here is older than an hour, which is the least that is kept.
        names, words = self.place.names(), ["archive", "prune", self.place.url]
        self.runner.run(*words, "--archive-keep", "1s", status=2)
        words += ["--archive-keep", "1h"]
        [planned] = self.runner.json(*words, "--dry-run")
        expect(self.place.names() == names, "a dry run has changed something")
        [pruned] = self.runner.json(*words)
        expect(pruned["marks"] == planned["marks"] == [], f"{planned}, {pruned}")
        left = self.marks()
        expect(pruned["kept"] == len(left), f"{pruned}, {len(left)} marks")
        gone = [name for name in names if name not in self.place.names()]
        expect(not gone, f"too early: {gone}")
        self.runner.run("archive", "verify", self.place.url)
        [line] = {mark["line"] for number, mark in left.items() if number == max(left)}
        data, said = self.restored("--line", line)
        expect(said["mark"] == max(left), "the newest mark is not what is restored")
        shutil.rmtree(data)
        self.back_up()


def check_secrets(trials):
    """No message has a key in it."""
    for trial in trials:
        text = trial.runner.path.read_text(encoding="utf-8")
        # The command that has both in its words is ours.
        lines = [line for line in text.splitlines() if not line.startswith("['archive', 'list'")]
        for secret in (KEY, SECRET):
            expect(not any(secret in line for line in lines), f"{trial.name} shows a key")


def main():
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    port, client = begin_store(WORK)
    # The first two are of backups, and their listings have many pages.
    prefixes = ["one/deep", "two", "serving/one", "serving/two", "drills", "crash/one", "crash/two"]
    proxies = [Proxy(port, seed, 7 if seed < 3 else 50) for seed in range(1, len(prefixes) + 1)]
    buckets = [Bucket(client, prefix, proxy) for prefix, proxy in zip(prefixes, proxies)]
    trials = [
        Backups("S3 with one shard", 1, buckets[0], proxies[0]),
        Backups("S3 with two shards", 2, buckets[1], proxies[1]),
        Backups("a directory", 2, Folder(WORK / "place"), None),
        Archiving("archiving in S3 with one shard", 1, buckets[2], proxies[2]),
        Archiving("archiving in S3 with two shards", 2, buckets[3], proxies[3]),
        Archiving("archiving in a directory", 2, Folder(WORK / "mounted" / "place"), None),
        Drills("drills", 2, buckets[4], proxies[4]),
        Crash("crashes while archiving in S3 with one shard", 1, buckets[5], proxies[5]),
        Crash("crashes while archiving in S3 with two shards", 2, buckets[6], proxies[6]),
        Crash("crashes while archiving in a directory", 2, Folder(WORK / "crashed"), None),
    ]
    (WORK / "mounted").mkdir()
    failed = False
    with concurrent.futures.ThreadPoolExecutor(len(trials)) as pool:
        running = {pool.submit(trial.run): trial for trial in trials}
        for future in concurrent.futures.as_completed(running):
            trial, error = running[future], future.exception()
            if error:
                failed = True
                print(f"{trial.name} has FAILED: {error}")
                if not isinstance(error, Ended):
                    traceback.print_exception(error)
                ending.set()
    if failed:
        sys.exit(1)
    check_secrets(trials)
    met = sum((proxy.met for proxy in proxies), collections.Counter())
    quiet = met.pop(None, 0)
    told = ", ".join(f"{count} {trouble}" for trouble, count in sorted(met.items()))
    print(f"{quiet} requests without trouble, {told}")


if __name__ == "__main__":
    main()
