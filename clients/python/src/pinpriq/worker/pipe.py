"""Tells the main thread of a worker when it is time to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

#: What is in the pipe beside the numbers of signals. There is no signal 0.
_TOLD = b"\0"


class StopPipe:
    """A pipe that can be read when it is time to stop: at one of these signals, or at `tell`.

    Python writes the number of a signal to it in the moment in which it comes. A handler of Python
    would be called only when the main thread runs again. But a signal that comes just before that
    thread begins to wait does not wake it, and neither does one that another thread receives.
    Signals are heard only if the pipe is made in the main thread, and a second one ends the process
    at once.
    """

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self._signals = signals
        self._read_end, self._write_end = os.pipe()
        # A writer must not wait for the thread that it may have interrupted.
        os.set_blocking(self._write_end, False)
        self._before: dict[signal.Signals, object] = {}
        self._former_wakeup: int | None = None

    def __enter__(self) -> StopPipe:
        if threading.current_thread() is threading.main_thread():
            self._former_wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            for number in self._signals:
                self._before[number] = signal.signal(number, _first_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self._former_wakeup is not None:
            signal.set_wakeup_fd(self._former_wakeup)
        os.close(self._read_end)
        os.close(self._write_end)

    def fileno(self) -> int:
        """Return the end to wait for. Once it can be read, ask `is_time`."""
        return self._read_end

    def tell(self) -> None:
        """Say that it is time."""
        with suppress(BlockingIOError):
            os.write(self._write_end, _TOLD)

    def is_time(self) -> bool:
        """Wait for something in the pipe, and return whether it is time to stop."""
        byte = os.read(self._read_end, 1)
        # Signals for which the program has handlers of its own come here too.
        return byte == _TOLD or byte[0] in self._signals

    def wait(self) -> None:
        """Wait until it is time to stop."""
        while not self.is_time():
            pass


def _first_signal(number: int, _: FrameType | None) -> None:
    """Have a second signal end the process at once."""
    signal.signal(number, signal.SIG_DFL)
