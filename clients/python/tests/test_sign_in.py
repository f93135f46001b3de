"""Passwords and encryption."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinpriq import AsyncClient, Client, Denied, Disconnected
from servers import Server, certificate


def test_a_password_is_needed_and_known(program: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    password.chmod(0o600)
    server = Server(program, tmp_path / "data", "--password-file", str(password))
    server.start()
    with Client(server.url, password="correct horse battery staple") as client:
        assert client.whoami() == "default"
        client.queue("jobs").put("x")
    with Client(server.url) as stranger, pytest.raises(Denied) as refused:
        stranger.queue("jobs").put("x")
    assert refused.value.kind == "NOAUTH"
    with Client(server.url, password="wrong") as stranger, pytest.raises(Denied):
        stranger.ping()
    server.stop()


async def test_encrypted_connections(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificate(tmp_path)
    server = Server(
        program,
        tmp_path / "data",
        *("--resps", "127.0.0.1:0", "--tls-cert", str(files.cert), "--tls-key", str(files.key)),
    )
    server.start()
    url = f"pinpriqs://127.0.0.1:{server.tls_port()}"
    with Client(url, ssl_ca_certs=str(files.cert)) as client:
        client.queue("jobs").put("x")
    async with AsyncClient(url, ssl_ca_certs=str(files.cert)) as aclient:
        assert await aclient.queue("jobs").pop() is not None
    with Client(url, retry_for=0) as client, pytest.raises(Disconnected):
        client.ping()
    # The variable of the command line counts here too.
    monkeypatch.setenv("PINPRIQ_CA", str(files.cert))
    with Client(url) as client:
        client.ping()
    async with AsyncClient(url.replace("pinpriqs", "rediss")) as aclient:
        await aclient.ping()
    with (
        Client(url, ssl_ca_certs=str(files.key), retry_for=0) as client,
        pytest.raises(Disconnected),
    ):
        client.ping()
    server.stop()
