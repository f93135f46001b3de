"""Does something again and again in a thread, until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ..errors import PinpriqError

log = logging.getLogger("pinpriq")


class Heartbeat:
    """Calls `beat` every `pause_s` seconds. A beat that fails is logged, and the next one comes."""

    def __init__(self, beat: Callable[[], None], pause_s: float) -> None:
        self._beat = beat
        self._pause_s = pause_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. The first beat comes after a pause."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name="pinpriq-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for a beat that is under way."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._stopped.wait(self._pause_s):
            try:
                self._beat()
            except PinpriqError as error:
                log.warning("a sign of life failed: %s", error)
            except Exception:
                # Without the next one, leases would end while their jobs run.
                log.exception("a sign of life failed")
