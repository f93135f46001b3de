"""Runs every block of the README, in order, as a reader would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pinpriq import Client
from servers import Server

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)

#: Programs that blocks may start, which are those of this environment.
PROGRAMS = {
    "python": '"$PYTHON" "$@"',
    "celery": '"$PYTHON" -W ignore -m celery "$@"',
    "dramatiq": '"$PYTHON" -m dramatiq "$@"',
    # Nothing is installed by a test. It checks that what is asked for is what there is.
    "pip": '"$PYTHON" "$CHECK" "$@"',
}

CHECK = """
import sys
project = open(sys.argv[1]).read().splitlines()
for wanted in sys.argv[3:]:
    name, _, extra = wanted.rstrip("]").partition("[")
    assert f'name = "{name}"' in project, name
    assert not extra or any(line.startswith(f"{extra} = [") for line in project), extra
"""


def blocks() -> list[tuple[str, str]]:
    """Return the language and the text of each block."""
    return FENCE.findall((ROOT / "README.md").read_text())


def test_there_are_blocks_of_known_languages_only() -> None:
    assert len(blocks()) > 20
    assert {language for language, _ in blocks()} == {"python", "sh"}
    assert (ROOT / "README.md").read_text().count("```") == 2 * len(blocks())


def test_each_block_runs(own_server: Server, program: str, tmp_path: Path) -> None:
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    check = tmp_path / "check.py"
    check.write_text(CHECK)
    for name, line in PROGRAMS.items():
        text = line.replace('"$CHECK"', f'"$CHECK" "{ROOT / "pyproject.toml"}"')
        (bin_directory / name).write_text(f"#!/bin/sh\nexec {text}\n")
        (bin_directory / name).chmod(0o755)
    place = tmp_path / "place"
    place.mkdir()
    environment = os.environ | {
        "PINPRIQ_URL": own_server.url,
        "PINPRIQ_PROGRAM": program,
        "PYTHON": sys.executable,
        "CHECK": str(check),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(place)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
    }
    with Client(own_server.url) as client:
        for number, (language, block) in enumerate(blocks()):
            text = block.replace("127.0.0.1:7251", f"127.0.0.1:{own_server.port}")
            named = re.match(r"# (\w+\.py)\n", text)
            if named:
                (place / named[1]).write_text(text)
            elif language == "python":
                script = place / f"block_{number}.py"
                script.write_text(text)
                run([sys.executable, str(script)], place, environment, text)
            elif " worker" in text or text.startswith("dramatiq"):
                run_worker(client, text, place, environment)
            else:
                run(["bash", "-euc", text], place, environment, text)


def run(command: list[str], place: Path, environment: dict[str, str], text: str) -> None:
    """Run a block to its end."""
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def run_worker(client: Client, text: str, place: Path, environment: dict[str, str]) -> None:
    """Run a worker until it has done all that is put, and stop it."""
    names = {
        "app": "emails", "more": "reports", "shop": "celery", "mill": "{default}"
    }  # fmt: skip
    [queue] = [client.queue(name) for word, name in names.items() if f" {word}" in text]
    assert queue.stats()["present"] > 0, text
    with (place / "worker.log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-euc", f"exec {text}"], cwd=place, env=environment,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while queue.stats()["present"]:
            assert process.poll() is None, (place / "worker.log").read_text()
            assert time.monotonic() < until, "\n".join(
                [(place / "worker.log").read_text(), *map(repr, queue.leases().items)]
            )
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0, (place / "worker.log").read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize("name", ["README.md"])
def test_its_lines_are_not_too_long(name: str) -> None:
    for line in FENCE.sub("", (ROOT / name).read_text()).splitlines():
        assert len(line) <= 100, line
