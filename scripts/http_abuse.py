"""Misuses the HTTP door of a server: thousands of slow connections, requests without an end, huge
JSON, and event streams that are not read.

Called by scripts/http-api with the ports of HTTP and RESP, the id of the server's process, and its
frame timeout in ms. Everything must be refused or ended, memory must stay bounded, and RESP must
answer all the while. Figures are printed, and compared with nothing: the machine does other work.
"""

import resource
import select
import socket
import sys
import time

HTTP, RESP, PROCESS, FRAME_MS = (int(word) for word in sys.argv[1:5])
SLOW = 9_000
STREAMS = 500
MIB = 1 << 20
# What a connection may cost: a buffer for its head, and what the runtime keeps for it.
BYTES_EACH = 48 << 10

BEGUN = [
    b"GET /v1/st",
    b"POST /v1/queues/q/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 100\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nx: " + b"a" * 3_000,
]


def resident():
    """Returns the memory of the server in bytes."""
    with open(f"/proc/{PROCESS}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def round_trips(count=300):
    """Puts and pops over RESP. Returns the median and the 99th percentile in microseconds."""
    times = []
    with socket.create_connection(("127.0.0.1", RESP), timeout=30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            begun = time.perf_counter()
            for request in (b"PUT q x\r\n", b"POP q\r\n"):
                client.sendall(request)
                assert client.recv(4_096), "RESP has ended the connection"
            times.append((time.perf_counter() - begun) * 1e6)
    times.sort()
    return times[count // 2], times[count * 99 // 100]


def tell(what):
    median, most = round_trips()
    print(f"{what}: {resident() / MIB:.0f} MiB, put and pop over RESP {median:.0f} µs, p99 {most:.0f} µs")


def connect():
    return socket.create_connection(("127.0.0.1", HTTP), timeout=30)


def wait_until_ended(clients, seconds):
    """Reads until the server has ended every connection."""
    until = time.monotonic() + seconds
    poll = select.poll()
    open_ones = {}
    for client in clients:
        client.setblocking(False)
        open_ones[client.fileno()] = client
        poll.register(client, select.POLLIN)
    while open_ones:
        left = until - time.monotonic()
        assert left > 0, f"{len(open_ones)} connections are still open after {seconds} s"
        for number, _ in poll.poll(left * 1_000):
            poll.unregister(number)
            if has_ended(open_ones[number]):
                del open_ones[number]
            else:
                poll.register(number, select.POLLIN)


def has_ended(client):
    try:
        while client.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    client.close()
    return True


def slow_connections(before):
    clients = []
    for number in range(SLOW):
        client = connect()
        client.sendall(BEGUN[number % len(BEGUN)])
        clients.append(client)
    tell(f"{SLOW} slow connections")
    assert resident() < before + SLOW * BYTES_EACH, f"{resident() / MIB:.0f} MiB"
    wait_until_ended(clients, FRAME_MS / 1_000 + 20)
    tell("after they were ended")


def answer_to(parts):
    """Sends parts until the server has had enough, and returns the line that it answers."""
    with connect() as client:
        try:
            for part in parts:
                client.sendall(part)
        except OSError:
            pass
        try:
            return client.recv(4_096).split(b"\r\n")[0].decode()
        except OSError:
            return "the end"


def many(part, count):
    for _ in range(count):
        yield part


def endless_requests(before):
    head = b"POST /v1/multi HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    def headers():
        yield b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n"
        yield from many(b"x-more: " + b"y" * 1_000 + b"\r\n", 100_000)

    def chunks():
        yield head + b"Transfer-Encoding: chunked\r\n\r\n"
        yield from many(b"10000\r\n" + b" " * 65_536 + b"\r\n", 2_000)

    def nested():
        yield head + b"Content-Length: 104857600\r\n\r\n"
        yield from many(b"[" * 65_536, 1_600)

    wanted = {"headers": (headers, "431"), "chunks": (chunks, "413"), "nested": (nested, "413")}
    for name, (parts, status) in wanted.items():
        line = answer_to(parts())
        assert status in line or line in ("the end", ""), f"{name}: {line}"
        print(f"endless {name}: {line}")
    assert resident() < before + 200 * MIB, f"{resident() / MIB:.0f} MiB"


def unread_streams(before):
    clients = []
    for _ in range(STREAMS):
        client = connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        clients.append(client)
    with connect() as reads:
        reads.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while heard.count(b"event: figures") < 4:
            heard += reads.recv(65_536)
    tell(f"{STREAMS} event streams that are not read")
    assert resident() < before + 200 * MIB, f"{resident() / MIB:.0f} MiB"
    for client in clients:
        client.close()


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    assert most > SLOW + 100, f"only {most} files may be open"
    tell("before")
    before = resident()
    endless_requests(before)
    slow_connections(before)
    # What the allocator keeps for the next ones.
    unread_streams(resident())


main()
