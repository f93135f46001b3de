"""Passwords and encryption."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pinpriq import AsyncClient, Client, Denied
from servers import Server


def test_a_password_is_needed_and_known(program: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    password.chmod(0o600)
    server = Server(program, tmp_path / "data", "--password-file", str(password))
    server.start()
    with Client(server.url, password="correct horse battery staple") as client:
        assert client.whoami() == "default"
        client.queue("jobs").put("x")
    with Client(server.url) as nobody, pytest.raises(Denied) as refused:
        nobody.queue("jobs").put("x")
    assert refused.value.kind == "NOAUTH"
    with Client(server.url, password="wrong") as stranger, pytest.raises(Denied):
        stranger.ping()
    server.stop()


async def test_encrypted_connections(program: str, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.fail("install openssl: this test makes a certificate with it", pytrace=False)
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    server = Server(
        program,
        tmp_path / "data",
        *("--resps", "127.0.0.1:0", "--tls-cert", str(certificate), "--tls-key", str(key)),
    )
    server.start()
    url = f"pinpriqs://127.0.0.1:{server.tls_port()}"
    with Client(url, ssl_ca_certs=str(certificate)) as client:
        client.queue("jobs").put("x")
    async with AsyncClient(url, ssl_ca_certs=str(certificate)) as aclient:
        assert await aclient.queue("jobs").pop() is not None
    server.stop()
