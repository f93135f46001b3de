"""The command line: `python -m pinpriq worker app:worker`."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from .worker import Worker


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="python -m pinpriq", description="Tools for pinpriq.")
    commands = top.add_subparsers(dest="command", required=True)
    worker = commands.add_parser(
        "worker", help="run a worker", description="Runs a worker until SIGTERM or SIGINT."
    )
    worker.add_argument("app", help="where the worker is, as module:name, such as app:worker")
    worker.add_argument("--threads", type=_count, help="threads in each process (default: 1)")
    worker.add_argument("--processes", type=_count, help="processes (default: only this one)")
    worker.add_argument("--asyncio", action="store_true", help="asyncio tasks in place of threads")
    worker.add_argument("--tasks", type=_count, help="asyncio tasks (default: 10)")
    worker.add_argument("--queues", help="only these queues and topics, with commas between")
    worker.add_argument("--log-level", default="INFO", help="how much to log (default: INFO)")
    return top


def load(place: str) -> Worker:
    """Return the worker at `module:name`. Raises `SystemExit` with a sentence if there is none."""
    module_name, _, name = place.partition(":")
    # As for `python -m`, modules of the current directory can be named.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module_name), name or "worker")
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"pinpriq: there is no worker at {place}: {error}") from error
    if not isinstance(found, Worker):
        raise SystemExit(f"pinpriq: {place} is not a Worker")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 0 if all jobs ended in time, else 1."""
    top = parser()
    options = top.parse_args(arguments)
    if options.asyncio and (options.threads or options.processes):
        top.error("--asyncio goes with --tasks, not with --threads or --processes")
    if options.tasks and not options.asyncio:
        top.error("--tasks goes with --asyncio")
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    worker = load(options.app)
    if options.queues:
        try:
            worker.plan.only(set(options.queues.split(",")))
        except ValueError as error:
            top.error(str(error))
    if options.asyncio:
        return 0 if worker.run_asyncio(tasks=options.tasks or 10) else 1
    in_time = worker.run(threads=options.threads or 1, processes=options.processes or 0)
    return 0 if in_time else 1


def worker_main() -> int:
    """Run `pinpriq-worker`, which is short for `python -m pinpriq worker`."""
    return main(["worker", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
