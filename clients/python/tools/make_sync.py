"""Makes the package `pinpriq.sync` from `pinpriq.aio`.

The build of the package runs this, and so do the tests. Run it by hand for other tools that read
the work tree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "pinpriq"
#: What `pinpriq.sync` has of its own. `.gitignore` names these files too.
BY_HAND = ("__init__.py", "heartbeat.py", "parts.py", "pools.py")

_RULES = (
    (r"\basync (def|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\bAsync([A-Z])", r"\1"),
)


def made_from(source: str, name: str) -> str:
    """Return the source without asyncio."""
    for pattern, replacement in _RULES:
        source = re.sub(pattern, replacement, source)
    first, rest = source.split("\n", 1)
    first = first.removesuffix('"""')
    return f'{first}\n\nMade from `aio/{name}` by `tools/make_sync.py`.\n"""\n{rest}'


def main() -> int:
    """Write the files that are not as they should be, and remove those that should not be."""
    made = {
        path.name: made_from(path.read_text(), path.name)
        for path in (PACKAGE / "aio").glob("*.py")
        if path.name not in BY_HAND
    }
    for path in (PACKAGE / "sync").glob("*.py"):
        if path.name not in made and path.name not in BY_HAND:
            path.unlink()
    for name, source in made.items():
        path = PACKAGE / "sync" / name
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
