"""The drills of docs/operating.md, played word for word: what stands there in blocks is run by a shell.
Only the place, the moment, the ports and where directories are differ. Decides nothing about archives.
"""

import json
import os
import pathlib
import re
import socket
import subprocess

from archive_store import expect
from archive_trial import (
    PATIENCE, PROGRAM, SLACK_MS, Resp, Trial, await_that, moment, now_ms,
)

OPERATING = pathlib.Path("docs/operating.md")

# How many tasks there are.
TASKS = 300

# The server of the machine, as systemd has it: a start returns once it serves.
SYSTEMCTL = """#!/usr/bin/env bash
set -euo pipefail
data=$ROOT/var/lib/pinpriq
if [[ $1 == stop ]]; then
    [[ -f $ROOT/pid ]] || exit 0
    kill "$(<"$ROOT/pid")"
    tail --pid="$(<"$ROOT/pid")" -f /dev/null
    rm "$ROOT/pid"
    exit 0
fi
pinpriq serve --data "$data" --pinpriq off --resp "$RESP" --http "$HTTP" --shards 2 \\
    ${ARCHIVE:+--archive "$ARCHIVE"} </dev/null >>"$ROOT/server.log" 2>&1 &
echo $! >"$ROOT/pid"
until pinpriq ping --address "$RESP" >"$ROOT/ping" 2>&1; do
    read -rt 0.1 <> <(:) || true
done
"""


def block_of(heading):
    """Returns the first block of commands below a heading."""
    _, below = OPERATING.read_text(encoding="utf-8").split(f"\n### {heading}\n", 1)
    return re.search(r"```sh\n(.*?)```", below.split("\n### ", 1)[0], re.S)[1]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Drills(Trial):
    """What an operator types, and what is there afterwards."""

    def steps(self):
        self.prepare()
        try:
            self.step("the disk is lost")
            self.lose_disk()
            self.step("a queue is lost by mistake")
            self.lose_queue()
            self.step("a standby takes over")
            self.fail_over()
        finally:
            self.shell("systemctl stop pinpriq")

    def prepare(self):
        commands = self.folder / "bin"
        for made in (commands, self.folder / "var" / "lib" / "pinpriq", self.folder / "run"):
            made.mkdir(parents=True)
        (commands / "pinpriq").symlink_to(pathlib.Path(PROGRAM).resolve())
        for name, text in (("systemctl", SYSTEMCTL), ("chown", "#!/bin/sh\n")):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        self.port, self.data = free_port(), self.folder / "var" / "lib" / "pinpriq"
        http = f"127.0.0.1:{free_port()}"
        self.variables = self.runner.environment | {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "ROOT": str(self.folder),
            "RESP": f"127.0.0.1:{self.port}",
            "PINPRIQ_RESP_ADDRESS": f"127.0.0.1:{self.port}",
            "HTTP": http,
            "PINPRIQ_HTTP_ADDRESS": http,
        }

    def began(self, commands, *changes):
        """Begins to run commands, with the directories of this trial and its place."""
        for before, after in (("s3://backups/pinpriq", self.place.url), *changes):
            expect(before in commands, f"{before!r} is not among the commands")
            commands = commands.replace(before, after)
        commands = re.sub(r"(?<=\s)(/var/lib/|/run/)", rf"{self.folder}\1", commands)
        return self.bash(commands)

    def bash(self, commands):
        self.runner.log(commands)
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", commands], env=self.variables, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def ended(self, shell):
        said, _ = shell.communicate(timeout=PATIENCE)
        self.runner.log(said)
        expect(shell.returncode == 0, f"the drill has ended with {shell.returncode}: {said[-500:]}")

    def shell(self, commands):
        self.ended(self.bash(commands))

    def client(self):
        return Resp(self.port)

    def put_all(self):
        with self.client() as client:
            for number in range(TASKS):
                client.call("PUT", "jobs", number)

    def expect_all(self):
        said, _ = self.runner.run("export", "jobs", "--address", f"127.0.0.1:{self.port}")
        found = [json.loads(line) for line in said.splitlines()]
        found = sorted(int(task["payload"]) for task in found if task["type"] == "task")
        expect(found == list(range(TASKS)), f"{len(found)} tasks are there")

    def lose_disk(self):
        self.shell("systemctl start pinpriq")
        self.put_all()
        self.shell("pinpriq backup " + self.place.url)
        self.shell('kill -9 "$(<"$ROOT/pid")"; rm -r "$ROOT/pid" "$ROOT/var/lib/pinpriq"/*')
        self.ended(self.began(block_of("Drill: the disk is lost")))
        self.expect_all()

    def lose_queue(self):
        before = now_ms()
        await_that(lambda: now_ms() > before + 10, "time passes")
        with self.client() as client:
            client.call("QUEUE", "DROP", "jobs")
        look = f"127.0.0.1:{free_port()}"
        changes = (("2026-11-26T14:02:00Z", moment(before)), ("127.0.0.1:7351", look))
        self.ended(self.began(block_of("Drill: a queue is lost by mistake"), *changes))
        self.expect_all()

    def fail_over(self):
        self.shell("systemctl stop pinpriq")
        self.variables["ARCHIVE"] = f"{self.place.url}/standing-by"
        self.shell("systemctl start pinpriq")
        place = ("s3://backups/pinpriq", self.variables["ARCHIVE"])
        health = ("127.0.0.1:7260", f"127.0.0.1:{free_port()}")
        commands = block_of("A warm standby").replace(*place).replace(*health)
        commands = re.sub(r"(?<=\s)(/var/lib/|/run/)", rf"{self.folder}\1", commands)
        standby = self.bash(f"exec {commands}")
        status = self.folder / "run" / "pinpriq-standby.json"
        with self.client() as client:
            client.call("PUT", "jobs", TASKS)
            [[_, _, receipt, _]] = client.call("TAKE", "jobs")
            client.call("ACK", "jobs", receipt)
        self.shell("systemctl stop pinpriq")
        stopped = now_ms()

        def is_there():
            said = json.loads(status.read_text()) if status.exists() else {}
            # The last round that worked began after the server had sent the rest.
            return said.get("at_ms") and now_ms() - said["behind_ms"] > stopped + SLACK_MS

        await_that(is_there, "the standby has all that was confirmed")
        standby.terminate()
        self.ended(standby)
        self.shell('mv "$ROOT/var/lib/pinpriq" "$ROOT/var/lib/old"')
        self.shell('mv "$ROOT/var/lib/standby" "$ROOT/var/lib/pinpriq"')
        self.shell("systemctl start pinpriq")
        with self.client() as client:
            found = len(client.call("SCAN", "jobs", "COUNT", 1_000)[1])
        expect(found == TASKS, f"{found} tasks are there after the standby has taken over")
