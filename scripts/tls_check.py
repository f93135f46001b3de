"""What scripts/tls-check asks of Python.

`report FILE` looks at what sslyze has found about one port: only TLS 1.2 and 1.3, only suites with
forward secrecy and authenticated encryption, none of the known weaknesses.

`rubbish PID PORT...` sends bytes that are no TLS, or broken TLS, to each port, from a fixed seed.
The server must close each connection, and must not grow.

`silent CA PORT...` opens more connections than there may be handshakes under way, sends nothing on
them, and shakes hands on another one, which must not have to wait for their end.
"""

import json
import random
import socket
import ssl
import sys
import time

STRONG_ENDINGS = ("GCM_SHA256", "GCM_SHA384", "POLY1305_SHA256")


def report(path):
    with open(path, encoding="utf-8") as file:
        results = json.load(file)["server_scan_results"]
    assert len(results) == 1, results
    found = results[0]["scan_result"]
    assert found, results[0]["scan_status"]
    for version in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"):
        accepted = found[f"{version}_cipher_suites"]["result"]["accepted_cipher_suites"]
        assert accepted == [], (version, accepted)
    names = []
    for version in ("tls_1_2", "tls_1_3"):
        accepted = found[f"{version}_cipher_suites"]["result"]["accepted_cipher_suites"]
        assert accepted, version
        for suite in accepted:
            name = suite["cipher_suite"]["name"]
            assert name.endswith(STRONG_ENDINGS), name
            assert version == "tls_1_3" or "ECDHE" in name, name
            names.append(name)
    no_weakness = {
        "heartbleed": "is_vulnerable_to_heartbleed",
        "openssl_ccs_injection": "is_vulnerable_to_ccs_injection",
        "tls_compression": "supports_compression",
    }
    for test, weakness in no_weakness.items():
        assert found[test]["result"], (test, found[test])
        assert found[test]["result"][weakness] is False, (test, found[test])
    renegotiation = found["session_renegotiation"]["result"]
    assert renegotiation["is_vulnerable_to_client_renegotiation_dos"] is False, renegotiation
    print(f"{len(names)} suites, all of TLS 1.2 and 1.3 with forward secrecy")


def resident_kib(process):
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def hello(dice):
    """Returns the beginning of a handshake, whole or broken."""
    body = bytes(dice.randrange(256) for _ in range(dice.randrange(4, 600)))
    kind = bytes([dice.choice([1, 1, 1, 2, 11, 16, 20])]) + len(body).to_bytes(3, "big")
    length = dice.choice([len(body) + 4, 0, 65535, dice.randrange(65536)])
    return b"\x16\x03" + bytes([dice.randrange(5)]) + length.to_bytes(2, "big") + kind + body


def rubbish(process, ports):
    dice = random.Random(5)
    before = resident_kib(process)
    sent = 0
    for round_number in range(600):
        for port in ports:
            kind = round_number % 4
            if kind == 0:
                data = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 2000)))
            elif kind == 1:
                data = dice.choice([b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"P\0\1q", b"GET / HTTP/1.1\r\n\r\n"])
            else:
                data = hello(dice)
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
                except ConnectionError:
                    pass
            sent += 1
    grown = resident_kib(process) - before
    assert grown < 16 * 1024, f"the server has grown by {grown} KiB"
    print(f"{sent} connections with what is no TLS; the server has grown by {grown} KiB")


def silent(authority, ports):
    context = ssl.create_default_context(cafile=authority)
    for port in ports:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(1_500)]
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            context.wrap_socket(connection, server_hostname="127.0.0.1").close()
        took = time.monotonic() - began
        # Those that are silent are given up after ten seconds.
        assert took < 5, f"a handshake beside {len(idle)} silent connections took {took:.1f} s"
        for connection in idle:
            connection.close()
    print("silent connections hold up no handshake")


if sys.argv[1] == "report":
    report(sys.argv[2])
elif sys.argv[1] == "silent":
    silent(sys.argv[2], [int(port) for port in sys.argv[3:]])
else:
    rubbish(int(sys.argv[2]), [int(port) for port in sys.argv[3:]])
