"""Makes the package `pinpriq.sync` from `pinpriq.aio`.

Run it after a change in `src/pinpriq/aio`. A test checks that the result is up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCES = (
    "administration",
    "client",
    "job",
    "keeper",
    "queue",
    "runner",
    "schedules",
    "subscription",
    "topic",
    "transaction",
)
PACKAGE = Path(__file__).resolve().parent.parent / "src" / "pinpriq"

_RULES = (
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsync([A-Z])", r"\1"),
    # Names of modules and of what is imported stay in order.
    (r"import Iterator, Iterable\b", "import Iterable, Iterator"),
)


def made_from(source: str, name: str) -> str:
    """Return the source without asyncio."""
    for pattern, replacement in _RULES:
        source = re.sub(pattern, replacement, source)
    first, rest = source.split("\n", 1)
    first = first.removesuffix('"""')
    return f'{first}\n\nMade from `aio/{name}.py` by `tools/make_sync.py`.\n"""\n{rest}'


def main() -> int:
    """Write the files."""
    for name in SOURCES:
        source = (PACKAGE / "aio" / f"{name}.py").read_text()
        (PACKAGE / "sync" / f"{name}.py").write_text(made_from(source, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
