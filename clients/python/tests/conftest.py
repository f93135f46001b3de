"""Starts real servers for the tests, and what stands between them and the client.

The tests read the work tree, so this makes its half without asyncio first.
"""

from __future__ import annotations

import faulthandler
import os
import runpy
import sys
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

runpy.run_path(str(Path(__file__).parent.parent / "tools" / "make_sync.py"))["main"]()

from pinpriq import AsyncClient, Client  # noqa: E402
from servers import Server  # noqa: E402

# Longer than the longest test takes on a busy machine with a server that is not optimised.
TEST_S_MAX = 240


def give_up(item: pytest.Item) -> None:
    """End the run, and say which test hangs, and where each thread is."""
    capture = item.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    print(f"\n{item.nodeid} hangs: no end after {TEST_S_MAX} s", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(sys.stderr)
    os._exit(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Limit how long a test and its fixtures take."""
    watch = threading.Timer(TEST_S_MAX, give_up, [item])
    watch.daemon = True
    watch.start()
    try:
        return (yield)
    finally:
        watch.cancel()


@pytest.fixture(scope="session")
def program() -> str:
    """The path of the server program. The tests fail if it is not given."""
    path = os.environ.get("PINPRIQ_PROGRAM")
    if not path:
        pytest.fail("set PINPRIQ_PROGRAM to the path of the pinpriq program", pytrace=False)
    return path


@pytest.fixture(scope="session")
def shared_server(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that leave it as it is."""
    # Figures of queues that are gone would mix with those of the next test.
    server = Server(program, tmp_path_factory.mktemp("data"), "--queue-linger", "off")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """The shared server, emptied afterwards."""
    yield shared_server
    with Client(shared_server.url) as client:
        for name in list(client.schedules.names()):
            client.schedules.drop(name)
        for name in list(client.queue_names()):
            client.queue(name).drop()


@pytest.fixture
def own_server(program: str, tmp_path: Path) -> Iterator[Server]:
    """A server of one test, which may stop and start it."""
    server = Server(program, tmp_path / "data")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client without asyncio."""
    with Client(server.url) as client:
        yield client


@pytest.fixture
async def aclient(server: Server) -> AsyncIterator[AsyncClient]:
    """A client with asyncio."""
    async with AsyncClient(server.url) as client:
        yield client
