"""The crash harness on places in which there is trouble, for scripts/archive_check.py: its scenario
`archive` kills a server at random, restores random moments, and lets the checker of histories judge
them. Decides nothing about archives.
"""

import pathlib

from archive_store import TROUBLES, expect
from archive_trial import MOMENTS, PROGRAM, SEED, Trial

# It lies beside the program.
HARNESS = pathlib.Path(PROGRAM).parent / "pinpriq-crash"
# How many kills there are besides those that moments are for.
MORE_KILLS = 2
# How long a kill, and what is restored for it, may take in seconds.
EACH = 60
# The part of all requests that meet with trouble.
SHARE = 0.1


class Crash(Trial):
    """A server that archives, and is killed at random."""

    def steps(self):
        self.step(f"kills under load, and {MOMENTS} moments restored by chance")
        if self.proxy:
            self.proxy.share = SHARE
        kills = MOMENTS + MORE_KILLS
        words = ["--server", PROGRAM, "archive", "--place", self.place.url, "--shards", self.shards]
        words += ["--kills", kills, "--moments", MOMENTS, "--seed", SEED, "--scratch", self.folder]
        process = self.runner.begin(*words, program=HARNESS)
        status, printed, told = self.runner.end(process, within=EACH * kills)
        expect(status == 0, f"the harness has ended with {status}: {printed[-2000:]}{told[-500:]}")
        print(f"    {self.name}: {printed.splitlines()[-1]}\n", end="")
        if self.proxy:
            self.proxy.share = 0.0
            missing = set(TROUBLES) - set(self.proxy.met)
            expect(not missing, f"no request has met with {missing}")
