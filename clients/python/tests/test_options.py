"""Addresses and values at the edge: what is not supported is refused, and not ignored."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pinpriq import AsyncClient, Client, SerialisationError, Worker, commands
from pinpriq.dramatiq import PinpriqBroker
from pinpriq.options import own_name, redis_urls
from pinpriq.spans import moment_ms, span_ms
from servers import Server


@pytest.mark.parametrize("scheme", ["pinpriq", "redis"])
def test_every_scheme_is_known(server: Server, scheme: str) -> None:
    with Client(f"{scheme}://127.0.0.1:{server.port}/") as client:
        client.ping()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("pinpriq://127.0.0.1:7251/1", "nothing after the port"),
        ("redis://ada:secret@127.0.0.1/0", "nothing after the port"),
        ("pinpriq://127.0.0.1#1", "nothing after the port"),
        ("pinpriq://127.0.0.1?db=1", "'db'"),
        ("pinpriq://127.0.0.1?socket_timeout=1", "'socket_timeout'"),
        ("pinpriq://127.0.0.1?nonsense=1", "nonsense"),
        ("pinpriq://127.0.0.1,,127.0.0.2", "missing"),
        ("pinpriq://127.0.0.1:port", "(?i)port"),
        ("http://127.0.0.1", "pinpriq://"),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient, PinpriqBroker])
def test_what_a_url_cannot_say_is_refused(kind: Any, url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        kind(url)
    assert "secret" not in str(refused.value)


def test_a_worker_refuses_it_when_it_starts() -> None:
    with pytest.raises(ValueError, match="nothing after the port"):
        Worker("pinpriq://127.0.0.1/1").run()


@pytest.mark.parametrize("options", [{"db": 1}, {"protocol": 3}, {"retry": None}, {"nonsense": 1}])
def test_options_that_are_not_known_are_refused(options: dict[str, Any]) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match=next(iter(options))):
            kind(**options)


def test_several_addresses() -> None:
    assert redis_urls("pinpriqs://ada:secret@one,two:7,[::1]:8,[::2]?ssl_cert_reqs=none") == (
        "rediss://ada:secret@one:7261?ssl_cert_reqs=none",
        "rediss://ada:secret@two:7?ssl_cert_reqs=none",
        "rediss://ada:secret@[::1]:8?ssl_cert_reqs=none",
        "rediss://ada:secret@[::2]:7261?ssl_cert_reqs=none",
    )
    assert Client("pinpriq://ada:secret@one,two").options.places == "one:7251, two:7251"


async def test_the_first_address_that_answers_is_used(own_server: Server, server: Server) -> None:
    """The server is away, so that the next one of a cluster is asked. It comes back."""
    url = f"{own_server.url},127.0.0.1:{server.port}"
    with Client(url) as client:
        client.queue("jobs").put("first")
        own_server.stop()
        client.queue("jobs").put("second")
        own_server.start()
        assert [task.value for task in client.queue("jobs").peek(9)] == ["second"]
    own_server.stop()
    async with AsyncClient(url) as aclient:
        assert [task.value for task in await aclient.queue("jobs").peek(9)] == ["second"]
    own_server.start()


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"x": math.nan}])
def test_what_json_has_no_words_for_is_not_sent(client: Client, value: object) -> None:
    queue = client.queue("jobs")
    queue.create()
    with pytest.raises(SerialisationError):
        queue.put(value)
    with pytest.raises(SerialisationError), client.transaction() as steps:
        steps.put("jobs", value)
    assert queue.stats()["put"] == 0


def test_values_that_nothing_can_hold_are_refused_by_this_package(client: Client) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for serialiser in ("json", "msgpack"):
        with pytest.raises(SerialisationError):
            client.queue("jobs", serialiser=serialiser).put(deep)
    with pytest.raises(SerialisationError):
        client.queue("jobs", serialiser="bytes").put("\udcff")
    client.queue("jobs", serialiser="bytes").put("[" * 100_000)
    with pytest.raises(SerialisationError):
        client.queue("jobs").pop()


@pytest.mark.parametrize("name", ["delay", "ttl", "ttr"])
@pytest.mark.parametrize("span", [math.nan, math.inf, -math.inf, -1])
def test_a_span_is_a_number_of_seconds(client: Client, name: str, span: float) -> None:
    options: dict[str, Any] = {name: span}
    with pytest.raises(ValueError, match="span"):
        client.queue("jobs").put("x", **options)


def test_without_limit_is_none_or_infinite(client: Client) -> None:
    client.queue("jobs").put("x")
    assert client.queue("jobs").pop(wait=math.inf) is not None
    with pytest.raises(ValueError, match="span"):
        client.queue("jobs").pop(wait=math.nan)


@pytest.mark.parametrize("priority", [1.5, 1.0, "1", math.nan])
def test_a_priority_is_a_whole_number(client: Client, priority: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        client.queue("jobs").put("x", priority=priority)
    with pytest.raises(ValueError, match="whole number"), client.transaction() as steps:
        steps.put("jobs", "x", priority=priority)


def test_moments_at_the_edge(client: Client) -> None:
    latest = datetime.max.replace(tzinfo=timezone.utc)
    put = client.queue("jobs").put("x", at=latest)
    task = client.queue("jobs").get(put.id)
    assert task is not None
    assert task.ready_at is not None
    assert timedelta(0) <= latest - task.ready_at < timedelta(milliseconds=1)
    assert moment_ms(1_700_000_000.123) == 1_700_000_000_123
    assert moment_ms(datetime(2026, 1, 1, 0, 0, 0, 1999, timezone.utc)) % 1000 == 1
    assert moment_ms(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))) > moment_ms(
        latest
    )
    for moment in (math.nan, math.inf):
        with pytest.raises(ValueError, match="moment"):
            client.queue("jobs").put("x", at=moment)
    assert span_ms(0.0001) == 1


def test_a_name_has_no_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "a host\u00e9")
    assert own_name("worker").startswith("worker:a_host_:")


def test_a_command_has_only_its_own_options() -> None:
    options: Any = {"delay": 1}
    assert list(commands.put("q", b"x", **options)) == [b"PUT", b"q", b"x", b"DELAY", b"1000"]
    with pytest.raises(TypeError, match="delay"):
        commands.take(["q"], **options)
