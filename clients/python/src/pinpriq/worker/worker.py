"""The worker: which functions it runs, and how it is started and stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..aio.client import AsyncClient
from ..aio.parts import AsyncStop
from ..aio.runner import AsyncRunner
from ..options import own_name
from ..settings import QueueSettings
from ..spans import Span, span_s
from ..sync.client import Client
from ..sync.parts import Stop
from ..sync.runner import Runner
from .events import Event
from .pipe import StopPipe
from .plan import Handler, Plan
from .processes import run_processes

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("pinpriq.worker")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Worker:
    """Runs functions for the tasks of queues, and of topics as a member.

    `url` and the further options are those of `Client`. Spans are seconds. `ttr` is how long a
    lease lasts; it is renewed at a third of that while a job runs. `prefetch` is how many jobs
    to hold beyond those that run, 1 at most of a fair queue; the server may call them back until
    they begin. `grace` is how long a job may go on after the worker was told
    to stop; then it is given back. `lease` is how long a member of a topic lives without a sign
    of life. `on_event` is called with each `Event`, in the thread of the job.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        ttr: Span = 60.0,
        prefetch: int = 0,
        grace: Span = 30.0,
        lease: Span = 60.0,
        on_event: Callable[[Event], None] | None = None,
        **client_options: Any,
    ) -> None:
        if span_s(ttr) <= 0 or span_s(lease) <= 0:
            raise ValueError("ttr and lease must be longer than nothing")
        self._url = url
        self._client_options = client_options
        self.plan = Plan(span_s(ttr), prefetch, span_s(grace), span_s(lease), on_event)
        self._wakeups: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def job(
        self, queue: str, *, with_job: bool = False, settings: QueueSettings | None = None
    ) -> Callable[[F], F]:
        """Return a decorator: the function is called with the value of each task of `queue`.

        Returning acknowledges the task, with what is returned as its result unless that is None.
        An exception fails it. `with_job` calls it with the job itself. `settings` are given to the
        queue when the worker starts.
        """

        def decorate(function: F) -> F:
            self.plan.add(Handler(queue, function, None, with_job, settings))
            return function

        return decorate

    def member(
        self,
        topic: str,
        name: str,
        *,
        with_job: bool = False,
        settings: QueueSettings | None = None,
    ) -> Callable[[F], F]:
        """Return a decorator: the function is called for what is published to `topic`.

        The worker joins as the member `name` and gives signs of life. The lane stays when the
        worker stops, until the member's lease has ended.
        """

        def decorate(function: F) -> F:
            self.plan.add(Handler(topic, function, name, with_job, settings))
            return function

        return decorate

    def client(self) -> Client:
        """Return a new client with the options of this worker."""
        return Client(self._url, **self._named())

    def _named(self) -> dict[str, Any]:
        """Return the options of a client, whose connections have the name of this process."""
        return {"client_name": own_name("worker"), **self._client_options}

    def run(self, *, threads: int = 1, processes: int = 0) -> bool:
        """Work in threads, until SIGTERM, SIGINT or `stop`. Returns whether all jobs ended in time.

        With `processes`, each of them has that many threads, and one that dies is replaced. They
        are forked, so begin no threads before. Signals are heard only in the main thread.
        """
        if processes:
            return run_processes(
                processes, lambda: self._run_threads(threads), self._pipe, self.plan.grace_s
            )
        return self._run_threads(threads)

    def _run_threads(self, threads: int) -> bool:
        stop = Stop()
        result: list[bool] = []
        errors: list[BaseException] = []
        with self._pipe() as pipe, self.client() as client:
            runner = Runner(client, self.plan, stop)

            def work() -> None:
                try:
                    result.append(runner.run(threads))
                except BaseException as error:
                    errors.append(error)
                finally:
                    pipe.tell()

            thread = threading.Thread(target=work, name="pinpriq-runner", daemon=True)
            thread.start()
            pipe.wait()
            stop.set()
            thread.join()
        if errors:
            raise errors[0]
        return result[0]

    async def run_async(self, *, tasks: int = 10) -> bool:
        """Work in asyncio tasks. Functions without `async` run in threads. See `run`."""
        stop = AsyncStop()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(stop.set)

        with self._lock:
            self._wakeups.append(wake)
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before[number] = signal.getsignal(number)
                loop.add_signal_handler(number, self._first_signal, loop, number, stop)
        try:
            async with AsyncClient(self._url, **self._named()) as client:
                return await AsyncRunner(client, self.plan, stop).run(tasks)
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
            with self._lock:
                self._wakeups.remove(wake)

    def run_asyncio(self, *, tasks: int = 10) -> bool:
        """Work in asyncio tasks of a loop of its own. See `run_async`."""
        return asyncio.run(self.run_async(tasks=tasks))

    def stop(self) -> None:
        """Tell the worker to stop. Any thread may call it."""
        with self._lock:
            for wake in self._wakeups:
                wake()

    @staticmethod
    def _first_signal(
        loop: asyncio.AbstractEventLoop, number: signal.Signals, stop: AsyncStop
    ) -> None:
        """Stop. A second signal ends the process at once."""
        log.info("stopping after %s", number.name)
        loop.remove_signal_handler(number)
        # Python's own handler of SIGINT would raise in the job that runs, as if that had failed.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    @contextmanager
    def _pipe(self) -> Iterator[StopPipe]:
        """Give a pipe that tells when it is time to stop: at a signal, or at `stop`."""
        with StopPipe(_SIGNALS) as pipe:
            with self._lock:
                self._wakeups.append(pipe.tell)
            try:
                yield pipe
            finally:
                with self._lock:
                    self._wakeups.remove(pipe.tell)
