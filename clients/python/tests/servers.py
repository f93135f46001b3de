"""Runs the server program, and a proxy that loses replies."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple


class Certificate(NamedTuple):
    """The files of a certificate for this machine."""

    cert: Path
    key: Path


def certificate(place: Path) -> Certificate:
    """Make a certificate that signs itself."""
    files = Certificate(place / "cert.pem", place / "key.pem")
    # Without openssl the test fails here, and says so.
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(files.key), "-out", str(files.cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


class Server:
    """A pinpriq server on a loopback port of its own, which it keeps when it starts again."""

    def __init__(self, program: str, data: Path, *flags: str) -> None:
        self._program = program
        self._data = data
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None
        self._tls_ports: queue.Queue[int] = queue.Queue()
        self.port = 0

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"pinpriq://127.0.0.1:{self.port}"

    def tls_port(self) -> int:
        """Return the port for encrypted connections, as soon as it is there."""
        return self._tls_ports.get(timeout=30)

    def start(self) -> None:
        """Start, and return when it listens."""
        self._process = subprocess.Popen(
            [
                self._program,
                "serve",
                *("--data", str(self._data), "--pinpriq", "off", "--http", "off"),
                *("--resp", f"127.0.0.1:{self.port}", "--log-format", "json", *self._flags),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        lines = []
        for line in self._process.stderr:
            lines.append(line)
            event = json.loads(line) if line.startswith("{") else {}
            if self._listens(event):
                break
        else:
            raise AssertionError("the server did not start: " + "".join(lines[-5:]))
        # The log is read on, or the server would have to wait for it.
        threading.Thread(target=self._read_log, args=(self._process.stderr,), daemon=True).start()

    def _listens(self, event: dict[str, Any]) -> bool:
        """Take note of the address of a door. Returns whether clients can connect."""
        if "address" not in event:
            return False
        if event.get("door") == "resp" and not event.get("tls"):
            self.port = int(event["address"].rpartition(":")[2])
            return True
        if event.get("tls"):
            self._tls_ports.put(int(event["address"].rpartition(":")[2]))
        return False

    def _read_log(self, log: IO[str]) -> None:
        for line in log:
            if line.startswith("{"):
                self._listens(json.loads(line))

    def stop(self) -> None:
        """Stop in order."""
        if self._process is not None:
            self._process.terminate()
            assert self._process.wait(timeout=30) == 0
            self._process = None

    def kill(self) -> None:
        """End at once, as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=30)
        self._process = None


class LossyProxy:
    """A TCP proxy that carries requests on, and loses as many replies as the test says.

    A reply is lost together with its connection, after the server has carried out the request.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._to_lose = 0
        self._about: bytes = b""
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"pinpriq://127.0.0.1:{self._listener.getsockname()[1]}"

    def lose(self, count: int, about: bytes = b"") -> None:
        """Lose the next replies, only those to requests that contain these bytes."""
        with self._lock:
            self._to_lose = count
            self._about = about

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """Carry requests one way, and replies and deliveries the other."""
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            about: list[bytes] = []
            back = threading.Thread(target=self._carry_back, args=(server, client, about))
            back.start()
            with suppress(OSError):
                while request := client.recv(65536):
                    about[:] = [request]
                    server.sendall(self._on_the_way(request))
                server.shutdown(socket.SHUT_WR)
            back.join()

    def _on_the_way(self, request: bytes) -> bytes:
        """Return what the server gets."""
        return request

    def _carry_back(self, server: socket.socket, client: socket.socket, about: list[bytes]) -> None:
        with suppress(OSError):
            while reply := server.recv(65536):
                with self._lock:
                    loses = self._to_lose > 0 and bool(about) and self._about in about[0]
                    self._to_lose -= loses
                    self.lost += loses
                if loses:
                    break
                client.sendall(reply)
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class DelayingProxy(LossyProxy):
    """A TCP proxy that holds requests back while the test says so. It loses nothing."""

    def __init__(self, port: int) -> None:
        self._open = threading.Event()
        self._open.set()
        super().__init__(port)

    def hold(self) -> None:
        """Hold back what clients send from now on."""
        self._open.clear()

    def let_go(self) -> None:
        """Carry it on."""
        self._open.set()

    def _on_the_way(self, request: bytes) -> bytes:
        self._open.wait()
        return request


class AgeingProxy(LossyProxy):
    """A TCP proxy whose server seems to know this word not yet."""

    def __init__(self, port: int, word: bytes = b"CANCELS") -> None:
        self._word = word
        super().__init__(port)

    def _on_the_way(self, request: bytes) -> bytes:
        return request.replace(self._word, self._word[:-1] + b"X")
