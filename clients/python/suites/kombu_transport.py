"""Kombu's own tests of transports, for the transport of this package.

They are in the source distribution of kombu, whose folder KOMBU_SOURCE names. Here:

    pip download --no-binary :all: --no-deps kombu && tar xf kombu-*.tar.gz
    KOMBU_SOURCE=$(echo kombu-*/) PYTHONPATH=tests pytest -p conftest suites/kombu_transport.py

These are the tests that kombu has for every transport, `t/integration/common.py`.
"""

from __future__ import annotations

import os
import sys

import kombu
import pytest

import pinpriq.celery  # noqa: F401
from servers import Server

sys.path.insert(0, os.environ["KOMBU_SOURCE"])

from t.integration import common


@pytest.fixture(params=[None, {"queue_prefix": "prefixed."}])
def options(request: pytest.FixtureRequest) -> dict[str, str] | None:
    """Options of a transport."""
    chosen: dict[str, str] | None = request.param
    return chosen


@pytest.fixture
def connection(server: Server, options: dict[str, str] | None) -> kombu.Connection:
    """A connection to a server."""
    return kombu.Connection(server.url, transport_options=options)


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    """A connection to nothing."""
    return kombu.Connection("pinpriq://127.0.0.1:1", transport_options={"retry_for": 0})


@pytest.fixture
def failover_connection(server: Server, options: dict[str, str] | None) -> kombu.Connection:
    """A connection to the second of two addresses."""
    return kombu.Connection(
        f"pinpriq://127.0.0.1:1;{server.url}",
        connect_timeout=10,
        transport_options={**(options or {}), "retry_for": 0},
    )


class TestBasicFunctionality(common.BasicFunctionality):
    """Connections, channels, and messages there and back."""


class TestExchangeTypes(common.BaseExchangeTypes):
    """Direct, topic and fanout exchanges."""


class TestTimeToLive(common.BaseTimeToLive):
    """Messages that expire."""


class TestPriority(common.BasePriority):
    """Higher priorities come first."""

    PRIORITY_ORDER = "asc"


class TestMessage(common.BaseMessage):
    """Acknowledged, rejected and requeued messages."""


class TestEventLoop(common.BaseEventLoop):
    """The event loop of Celery's worker."""


class TestFailover(common.BaseFailover):
    """Several addresses."""
