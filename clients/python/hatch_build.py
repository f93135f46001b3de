"""The step of the build that makes `pinpriq.sync`. Editable installations run it too."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MakeSync(BuildHookInterface):  # type: ignore[type-arg]
    """Makes the half without asyncio, and has it packaged although Git ignores it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Begin a build."""
        runpy.run_path(str(Path(self.root) / "tools" / "make_sync.py"))["main"]()
        build_data["artifacts"].append("src/pinpriq/sync/*.py")
