#!/usr/bin/env python3
"""Plays random conversations to two servers that speak beanstalkd's protocol, and compares.

    beanstalkd_random.py --beanstalkd PATH --pinpriq PATH --seeds 1..2000
    beanstalkd_random.py --beanstalkd PATH --other-beanstalkd PATH --seeds 1..2000

Each seed is a conversation of several clients with two servers that have just been started. What a
client says next depends on what the first server has replied. All bytes must be the same, but for
what scripts/beanstalkd_play.py masks and for the order of `list-tubes`. What is left out is what
pinpriq deliberately does otherwise: see testdata/beanstalkd/exceptions.txt of pinpriq-server.

A conversation that differs is played again, up to three times: real time passes, and beanstalkd
forgets some times to run. It counts as different if it never goes well. It is then printed in the
format of the files, up to the step.
"""

import argparse
import concurrent.futures
import os
import random
import sys
import time

import beanstalkd_play as play

STEPS = 60
CLIENTS_MOST = 5
TUBES = [b"default", b"a", b"b", b"c", b"d", b"long-name.with;all(kinds)_of+chars/$"]
# How often each is named.
TUBE_WEIGHTS = [5, 4, 3, 2, 1, 1]
# What a server gets to digest a step, at least.
SETTLE_LEAST = 0.0004
# Steps of conversations in which time matters are so far from each other.
APART = 0.003
REPLAYS = 3
# After so many seeds that differ, the others are left out.
DIFFERENCES_MOST = 10

# What is refused, or means something else than it seems. None has CR inside, and the length of none
# makes its line end straddle the buffer of beanstalkd.
ODD_LINES = [
    b"", b" ", b"x", b"put", b"put ", b"put 1", b"put 0 0 60", b"put -1 0 60 1", b"put 0 0 60 1x",
    b"put 0 0 60 4294967296", b"put 0 x 60 1", b"put 0 0 60 1 ", b"PUT 0 0 60 1", b"peek", b"peek ",
    b"peek x", b"peek-readyx", b"peek-delayed ", b"peek-buried 1", b"peek 18446744073709551616",
    b"reservex", b"reserve 1", b"reserve-with-timeout", b"reserve-with-timeout x",
    b"reserve-with-timeout -1", b"reserve-with-timeout 2147483648", b"reserve-job",
    b"reserve-job x", b"delete", b"delete x", b"delete 1x", b"delete -1", b"delete 1 ",
    b"release 1", b"release 1 0", b"release 1 0 x", b"release x 0 0", b"bury 1", b"bury 1 -1",
    b"bury x 0", b"kick", b"kick x", b"kick -", b"kick 18446744073709551616", b"kick-job",
    b"kick-job x", b"touch", b"touch x", b"stats-job", b"stats-job x", b"stats-tube",
    b"stats-tube -a", b"stats-tube a b", b"statsx", b"use", b"use ", b"use -a", b"use  a",
    b"use a ", b"use a,b", b"watch ", b"watch -a", b"ignore ", b"ignore -a", b"list-tube",
    b"list-tubesx", b"list-tube-used ", b"list-tubes-watched x", b"pause-tube", b"pause-tube a",
    b"pause-tube a x", b"pause-tube a -1", b"pause-tube -a 0", b"pause-tube nothing 0", b"qui",
    b" quit", b"stats\x00", b"use a\x00", b"\x00", b"use a\nb", b"kick 1\n", b"\xff\xfe",
    b"stats-tube " + b"a" * 201, b"use " + b"a" * 201, b"a" * 222, b"a" * 224, b"a" * 300,
    b"use a" + b" " * 300, b"a" * 5000,
]  # fmt: skip


# What may give a job to somebody who waits.
SERVING = {b"put", b"release", b"kick", b"kick-job", b"pause-tube"}


class Difference(Exception):
    """The two servers do not say the same."""


class Command:
    """Lines that have one reply."""

    def __init__(self, *lines):
        self.lines = lines
        self.words = lines[0].split()

    def data(self):
        return b"".join(line + b"\r\n" for line in self.lines)

    def begins(self, word):
        return self.words[:1] == [word]


class Speaker:
    """A client, as both servers know it, and what is known about it."""

    def __init__(self, name, ports):
        self.name = name
        self.connections = [play.Client(port) for port in ports]
        self.used = b"default"
        self.watched = {b"default"}
        self.reserved = []
        # The commands that have no reply yet because the first of them waits.
        self.waiting = []

    def send(self, data):
        for connection in self.connections:
            connection.send(data)

    def has_been_sent(self):
        return [bool(connection.pending()[0]) for connection in self.connections]

    def learn(self, command, line):
        """Takes in what a reply says about the client."""
        reply = line.split()
        name = command.words[1:2]
        if reply[0] == b"RESERVED":
            self.reserved.append(int(reply[1]))
        elif reply[0] in (b"DELETED", b"RELEASED", b"BURIED"):
            if int(name[0]) in self.reserved:
                self.reserved.remove(int(name[0]))
        elif command.begins(b"use") and reply[0] == b"USING":
            self.used = reply[1]
        elif command.begins(b"watch") and reply[0] == b"WATCHING":
            self.watched.add(name[0])
        elif command.begins(b"ignore") and reply[0] == b"WATCHING":
            self.watched.discard(name[0])


def comparable(command, reply, paused):
    """Writes a reply as it is compared, after these tubes were paused."""
    lines = play.shown_reply(reply)
    if command.begins(b"list-tubes") and lines[0].startswith("OK "):
        kept = {f"- {tube.decode()}" for tube in paused}
        head = ["OK *"] if kept else lines[:1]
        return head + sorted(line for line in lines[1:] if line not in kept)
    if command.begins(b"stats") and paused:
        return [line for line in lines if not line.startswith("current-tubes: ")]
    return lines


def has_counted_on(left, right):
    """Whether the figures of a tube differ only in that pinpriq has gone on counting, although the
    tube was gone meanwhile."""
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        key, _, count = one.partition(": ")
        is_count = key in ("total-jobs", "cmd-delete", "cmd-pause-tube")
        more = other.removeprefix(key + ": ")
        if one != other and not (is_count and more.isdigit() and int(more) > int(count)):
            return False
    return True


class Talk:
    """A random conversation with two servers."""

    def __init__(self, seed, servers):
        self.dice = random.Random(seed)
        self.servers = servers
        self.speakers = []
        self.names = iter("abcdefghijklmnopqrstuvwxyz")
        self.ids = []
        self.lines = []
        # Whether time passes, which is done for few because it takes real time.
        self.timed = self.dice.random() < 0.05
        self.waits_left = self.dice.randint(2, 4) if self.timed else 0
        # A put with a wrong body uses up an id of beanstalkd, so no other put comes after it.
        self.puts_end = self.dice.random() < 0.1
        self.clients_most = self.dice.randint(2, CLIENTS_MOST)
        # Whether somebody who waits may have been sent something.
        self.served = False
        self.delays = 0
        # The tubes that were paused, which a pause keeps here and not there.
        self.paused = set()

    def settle(self):
        for server in self.servers:
            server.settle(SETTLE_LEAST)

    def told(self, *lines):
        self.lines += lines

    # What is said.

    def job(self, speaker):
        """The id of a job: rather one of the client's own, seldom one that is not there."""
        chance = self.dice.random()
        if chance < 0.6 and speaker.reserved:
            return b"%d" % self.dice.choice(speaker.reserved)
        if chance < 0.95 and self.ids:
            return b"%d" % self.dice.choice(self.ids[-12:])
        return self.dice.choice([b"0", b"1000", b"01", b" 2", b"18446744073709551615"])

    def tube(self):
        return self.dice.choices(TUBES, TUBE_WEIGHTS)[0]

    def priority(self):
        return self.dice.choice([b"0", b"1", b"5", b"5", b"1023", b"1024", b"2000", b"4294967295"])

    def delay(self):
        # Long ones differ: which of those that end in one millisecond is first is not the same.
        self.delays += 1
        if self.timed:
            return self.dice.choice([b"0", b"0", b"1", b"2", b"%d" % (60 + self.delays)])
        long = [60 + self.delays, 1_000 - self.delays, 4_294_967_295 - self.delays]
        return self.dice.choice([b"0", b"0", b"0", *[b"%d" % seconds for seconds in long]])

    def put(self):
        if self.timed:
            ttr = self.dice.choice([b"0", b"1", b"2", b"3", b"60"])
        else:
            ttr = self.dice.choice([b"60", b"100", b"4294967295"])
        chance = self.dice.random()
        if chance < 0.02:
            body = bytes([self.dice.randrange(256)]) * self.dice.choice([65535, 65536, 65537])
        elif chance < 0.1:
            body = self.dice.choice([b"", b"\r\n", b"\r", b"stats\r\nquit", b" ", b"\x00\xff\n"])
        else:
            body = bytes(self.dice.choices(b"abcdefg \r\n\\\"", k=self.dice.randrange(20)))
        line = b" ".join([b"put", self.priority(), self.delay(), ttr, b"%d" % len(body)])
        return Command(line, body)

    def wrong_put(self):
        body = b"hello" + self.dice.choice([b"", b"!", b"!!", b" use a"])
        return Command(b"put 0 0 60 3", body)

    def command(self, speaker):
        """A command that is replied to at once."""
        dice = self.dice
        kind = dice.choices(
            ["put", "reserve", "release", "bury", "delete", "touch", "kick", "peek", "tube",
             "stats", "list", "pause", "odd"],
            [18, 20, 6, 12, 5, 2, 5, 6, 14, 10, 8, 3, 5],
        )[0]  # fmt: skip
        job = self.job(speaker)
        if kind == "put":
            return None if self.puts_end is None else self.put()
        if kind == "reserve":
            if dice.random() < 0.25:
                return Command(b"reserve-job " + job)
            return Command(b"reserve-with-timeout 0" + dice.choice([b"", b"", b"", b"x"]))
        if kind == "release":
            return Command(b" ".join([b"release", job, self.priority(), self.delay()]))
        if kind == "bury":
            return Command(b" ".join([b"bury", job, self.priority()]))
        if kind in ("delete", "touch"):
            return Command(kind.encode() + b" " + job)
        if kind == "kick":
            bounds = [b"0", b"1", b"2", b"100", b"4294967295", b"-1", b"+1", b" 1x", b"1 2"]
            return Command(dice.choice([b"kick-job " + job, b"kick " + dice.choice(bounds)]))
        if kind == "peek":
            looks = [b"peek-ready", b"peek-delayed", b"peek-buried", b"peek " + job]
            return Command(dice.choice(looks))
        if kind == "tube":
            verb = dice.choice([b"use ", b"use ", b"watch ", b"watch ", b"watch ", b"ignore "])
            if len(speaker.watched) > 2 and dice.random() < 0.2:
                return Command(b"ignore " + dice.choice(sorted(speaker.watched)))
            return Command(verb + self.tube())
        if kind == "stats":
            about = [b"stats", b"stats-tube " + self.tube(), b"stats-job " + job]
            return Command(dice.choice(about))
        if kind == "list":
            often = len(speaker.watched)
            lists = [b"list-tubes", b"list-tube-used", *[b"list-tubes-watched"] * often]
            return Command(dice.choice(lists))
        if kind == "pause":
            # In a paused tube beanstalkd forgets some times to run.
            if self.timed:
                return None
            seconds = dice.choice([b"0", b"0", b"100", b"4294967295"])
            return Command(b"pause-tube " + self.tube() + b" " + seconds)
        return Command(dice.choice(ODD_LINES))

    def commands(self, speaker, most):
        some = [self.command(speaker) for _ in range(self.dice.randint(1, most))]
        return [it for it in some if it]

    # What is done.

    def play(self):
        for number in range(STEPS):
            if self.timed:
                time.sleep(APART)
            if self.puts_end and number > STEPS * 0.8:
                self.end_puts()
            self.step()
            self.hear_those_who_wait()
        for speaker in self.speakers:
            self.expect_nothing(speaker)

    def step(self):
        chance = self.dice.random()
        free = [it for it in self.speakers if not it.waiting]
        if not free or len(self.speakers) < self.clients_most and chance < 0.15:
            if len(self.speakers) >= CLIENTS_MOST:
                self.leave(self.dice.choice(self.speakers))
            return self.join()
        if chance < 0.18:
            return self.leave(self.dice.choice(self.speakers))
        if self.waits_left and chance < 0.3:
            return self.wait()
        speaker = self.dice.choice(free)
        if chance < 0.4 and self.may_wait(speaker):
            return self.begin_to_wait(speaker)
        most = 4 if self.dice.random() < 0.2 and not self.others_go_on() else 1
        return self.say(speaker, self.commands(speaker, most))

    def others_go_on(self):
        """Whether somebody who waits has sent more. When that is done, among other requests that
        come together, is not determined."""
        return any(len(it.waiting) > 1 for it in self.speakers)

    def join(self):
        name = next(self.names, None)
        if name is None:
            return
        speaker = Speaker(name, [server.port for server in self.servers])
        self.speakers.append(speaker)
        self.settle()
        self.told(f"{name}-")

    def leave(self, speaker):
        """A client closes, or says that it will send no more, or quits."""
        self.served = True
        name = speaker.name
        how = self.dice.choice(["X", "/", "quit"])
        # One that goes without a word does not leave commands behind that wait.
        if how == "X" and len(speaker.waiting) > 1 or how == "quit" and speaker.waiting:
            how = "/"
        if how == "X":
            self.told(f"{name}X")
            for server, connection in zip(self.servers, speaker.connections, strict=True):
                connection.close(server)
        else:
            if how == "/":
                self.told(f"{name}/", f"{name}.")
                for connection in speaker.connections:
                    connection.socket.shutdown(play.socket.SHUT_WR)
            else:
                self.told(f'{name}= "quit\\r\\n"', f"{name}.")
                speaker.send(b"quit\r\n")
            left, right = (it.replies_until_closed() for it in speaker.connections)
            waiting = speaker.waiting or [Command(b"quit")] * max(len(left), len(right))
            if len(left) != len(right) or len(left) > len(waiting):
                self.differ(name, [play.shown_reply(it) for it in left], right)
            for command, *replies in zip(waiting, left, right):
                self.compare(speaker, command, replies)
            for connection in speaker.connections:
                connection.socket.close()
        self.speakers.remove(speaker)
        self.settle()

    def wait(self):
        self.waits_left -= 1
        self.served = True
        self.told("+ 1100")
        time.sleep(1.1)
        for index, server in enumerate(self.servers):
            for speaker in self.speakers if server.kind == "B" else []:
                if not speaker.waiting:
                    speaker.connections[index].send(b"\r\n")
                    speaker.connections[index].reply()
        self.settle()

    def may_wait(self, speaker):
        """Whether it alone waits for its tubes: beanstalkd serves several in no order."""
        others = (it for it in self.speakers if it.waiting)
        return all(not speaker.watched & it.watched for it in others)

    def begin_to_wait(self, speaker):
        first = Command(b"reserve")
        if not self.timed and self.dice.random() < 0.3:
            first = Command(b"reserve-with-timeout 50")
        has_behind = self.dice.random() < 0.2 and not self.others_go_on()
        behind = self.commands(speaker, 2) if has_behind else []
        commands = [first, *behind]
        lines = [line for command in commands for line in command.lines]
        speaker.send(b"".join(command.data() for command in commands))
        told = [f"{speaker.name}| {play.written_line(line)}" for line in lines]
        self.settle()
        if not any(speaker.has_been_sent()):
            self.told(*told[:-1], told[-1].replace("|", "!", 1))
            speaker.waiting = commands
            self.served = True
            return
        self.told(*told[:-1], told[-1].replace("|", ">", 1))
        if behind:
            self.told(f"{speaker.name}< {len(behind)}")
        self.hear(speaker, commands)

    def say(self, speaker, commands):
        if not commands:
            return
        name = speaker.name
        lines = [line for command in commands for line in command.lines]
        data = b"".join(command.data() for command in commands)
        if self.dice.random() < 0.05 and len(data) < 1000:
            at = self.dice.randrange(1, len(data))
            self.told(f"{name}= {play.quoted(data[:at])}", f"{name}= {play.quoted(data[at:])}")
            self.told(f"{name}< {len(commands)}")
            speaker.send(data[:at])
            self.settle()
            speaker.send(data[at:])
        else:
            told = [f"{name}| {play.written_line(line)}" for line in lines]
            self.told(*told[:-1], told[-1].replace("|", ">", 1))
            if len(commands) > 1:
                self.told(f"{name}< {len(commands) - 1}")
            speaker.send(data)
        self.hear(speaker, commands)

    def end_puts(self):
        free = [it for it in self.speakers if not it.waiting]
        if free:
            self.puts_end = None
            speaker = self.dice.choice(free)
            command = self.wrong_put()
            self.told(f"{speaker.name}= {play.quoted(command.data())}")
            speaker.send(command.data())
            rest = command.data().partition(b"\r\n")[2][5:]
            replies = 1 + rest.count(b"\r\n")
            self.told(f"{speaker.name}< {replies}")
            self.hear(speaker, [command] * replies)
            if not rest.endswith(b"\r\n"):
                raise AssertionError(rest)

    # What is heard.

    def hear(self, speaker, commands):
        for command in commands:
            replies = []
            for server, connection in zip(self.servers, speaker.connections, strict=True):
                try:
                    replies.append(connection.reply())
                except play.Trouble as trouble:
                    raise Difference(f"{server.kind}, {command.lines[0]!r}: {trouble}") from None
            self.compare(speaker, command, replies)

    def compare(self, speaker, command, replies):
        left, right = (comparable(command, it, self.paused) for it in replies)
        if command.begins(b"pause-tube") and command.words[2:3] != [b"0"]:
            self.paused.update(command.words[1:2] if left == ["PAUSED"] else [])
        is_about_tube = command.begins(b"stats-tube") or command.begins(b"pause-tube")
        is_kept = is_about_tube and self.paused.issuperset(command.words[1:2])
        may_count_on = command.begins(b"stats-tube") and command.words[1:2] != [b"default"]
        is_right = (
            left == right
            or is_kept and left == ["NOT_FOUND"]
            or may_count_on and has_counted_on(left, right)
        )
        if not is_right:
            self.differ(f"{speaker.name}, {command.lines[0]!r}", left, right)
        self.served |= not SERVING.isdisjoint(command.words[:1])
        line = replies[0][0]
        speaker.learn(command, line)
        if line.startswith(b"INSERTED "):
            self.ids.append(int(line.split()[1]))

    def differ(self, what, left, right):
        lines = [f"  {self.servers[0].kind} {line}" for line in left]
        lines += [f"  {self.servers[1].kind} {line}" for line in right]
        raise Difference("\n".join([what, *lines]))

    def hear_those_who_wait(self):
        while self.served:
            self.served = False
            waiting = [it for it in self.speakers if it.waiting]
            if waiting:
                self.settle()
            for speaker in waiting:
                if any(speaker.has_been_sent()):
                    commands, speaker.waiting = speaker.waiting, []
                    self.told(f"{speaker.name}< {len(commands)}")
                    self.hear(speaker, commands)

    def expect_nothing(self, speaker):
        for server, connection in zip(self.servers, speaker.connections, strict=True):
            received, ended = connection.pending()
            if received or ended:
                raise Difference(f"{server.kind}, {speaker.name}, at the end: {received!r} {ended}")


def converse(seed, kinds):
    """Plays one conversation and returns a difference, or None, and what has been said."""
    servers, talk, difference = [], None, None
    try:
        for kind, path in kinds:
            servers.append(play.Server(kind, path))
        talk = Talk(seed, servers)
        talk.play()
    except (Difference, play.Trouble, OSError) as error:
        difference = f"{type(error).__name__}: {error}"
    finally:
        for speaker in talk.speakers if talk else []:
            for connection in speaker.connections:
                connection.abandon()
        for server in servers:
            server.stop()
    return difference, talk.lines if talk else []


def try_seed(task):
    seed, kinds = task
    for attempt in range(1 + REPLAYS):
        difference, lines = converse(seed, kinds)
        if difference is None:
            return seed, attempt, None, lines
    return seed, attempt, difference, lines


def begin_worker():
    play.PATIENCE = 3.0
    play.SETTLE_MOST = 0.2
    play.begin_elsewhere(os.getpid() * 2_113)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beanstalkd", metavar="PATH", required=True, help="a real beanstalkd")
    other = parser.add_mutually_exclusive_group(required=True)
    other.add_argument("--pinpriq", metavar="PATH", help="a pinpriq with this door")
    other.add_argument("--other-beanstalkd", metavar="PATH", help="another real beanstalkd")
    parser.add_argument("--seeds", default="1..2000", help="from the first to the last one")
    parser.add_argument("--workers", type=int, default=8, help="conversations at a time")
    parser.add_argument("--show", action="store_true", help="print all that is said")
    chosen = parser.parse_args()
    first, _, last = chosen.seeds.partition("..")
    chosen.seeds = range(int(first), int(last or first) + 1)
    return chosen


def main():
    chosen = arguments()
    other = ("P", chosen.pinpriq) if chosen.pinpriq else ("B", chosen.other_beanstalkd)
    kinds = [("B", chosen.beanstalkd), other]
    failed, unsteady, played, lines_played = [], [], 0, 0
    pool = concurrent.futures.ProcessPoolExecutor(chosen.workers, initializer=begin_worker)
    with pool:
        tasks = ((seed, kinds) for seed in chosen.seeds)
        for seed, replays, difference, lines in pool.map(try_seed, tasks, chunksize=2):
            played += 1
            lines_played += len(lines)
            if difference:
                failed.append(seed)
            elif replays:
                unsteady.append(seed)
            if difference or chosen.show:
                print(f"== seed {seed}", *lines, difference or "", sep="\n", flush=True)
            if len(failed) >= DIFFERENCES_MOST:
                pool.shutdown(cancel_futures=True)
                break
    if unsteady:
        print(f"went well only when played again: {unsteady}")
    print(f"{played} seeds, {lines_played} lines, {len(failed)} differ: {failed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
