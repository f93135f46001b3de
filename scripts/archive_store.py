"""Stores for scripts/archive_check.py: moto's S3 or Ceph's, a proxy that makes trouble before it,
and both kinds of places as they are without the program. Decides nothing about archives.
"""

import atexit
import collections
import http.client
import logging
import os
import pathlib
import random
import re
import secrets
import socketserver
import stat
import subprocess
import sys
import threading

# How long a request may take before it counts as lost, in seconds.
PATIENCE = 60
BUCKET = "archives"
KEY, SECRET = "AKIA" + secrets.token_hex(8).upper(), secrets.token_hex(20)
REGION = "us-east-1"
# Which store it is, moto or radosgw.
STORE = sys.argv[4]

# What is met with, by chance, and how long a slow answer takes in seconds.
TROUBLES = ["refused", "failed", "cut", "torn", "lost", "slow"]
SLOW = (0.1, 0.6)

# Set once everything is to end.
ending = threading.Event()


class Failure(Exception):
    """What was expected has not come about."""


def expect(holds, what):
    if not holds:
        raise Failure(what)


class Hold:
    """Holds requests back until there are enough of them and somebody releases them."""

    def __init__(self, method, part, parties, trouble):
        self.method, self.part, self.parties, self.trouble = method, part, parties, trouble
        self.count, self.paths = 0, set()
        self.begun = threading.Event()
        self.reached = threading.Event()
        self.released = threading.Event()


class Proxy(socketserver.ThreadingTCPServer):
    """Passes requests on to the store, and makes trouble. A page of a listing has few names."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, store, seed, page):
        super().__init__(("127.0.0.1", 0), Connection)
        self.store, self.page = store, page
        self.dice = random.Random(seed)
        self.lock = threading.Lock()
        # moto looks for an object before it makes one. Nothing may come in between.
        self.one_put = threading.Lock()
        # The part of all requests that meet with trouble.
        self.share = 0.0
        self.deck = []
        self.is_away = False
        self.hold = None
        # How many requests there were of each method, and what they have met with.
        self.asked, self.met = collections.Counter(), collections.Counter()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def trouble_of(self, method, path):
        """Returns what is to happen to a request, once it may go on."""
        with self.lock:
            self.asked[method] += 1
            hold = self.hold
            is_held = hold and method == hold.method and hold.part in path
            if is_held:
                hold.count += 1
                hold.paths.add(path)
                hold.begun.set()
                if hold.count == hold.parties:
                    self.hold = None
                    hold.reached.set()
        if is_held:
            hold.released.wait(PATIENCE)
            return hold.trouble
        with self.lock:
            if self.is_away:
                return "refused"
            trouble = self.drawn() if self.dice.random() < self.share else None
            self.met[trouble] += 1
            return trouble

    def drawn(self):
        """Returns each trouble once before one comes again."""
        if not self.deck:
            self.deck = self.dice.sample(TROUBLES, len(TROUBLES))
        return self.deck.pop()

    def hold_back(self, method, part, parties=1, trouble=None):
        hold = Hold(method, part, parties, trouble)
        with self.lock:
            self.hold = hold
        return hold

    def wait_a_little(self):
        with self.lock:
            seconds = self.dice.uniform(*SLOW)
        ending.wait(seconds)

    def in_any_order(self, answer):
        """Lists what a page has in another order. No store promises one to us."""
        entry = re.compile(rb"<(Contents|CommonPrefixes)>.*?</\1>", re.DOTALL)
        entries = [found.group() for found in entry.finditer(answer)]
        with self.lock:
            self.dice.shuffle(entries)
        return entry.sub(lambda _: entries.pop(), answer)

    def handle_error(self, request, client_address):
        """The program may be killed, and the end of a connection is no news."""


class Connection(socketserver.StreamRequestHandler):
    """One connection of the program to the proxy."""

    disable_nagle_algorithm = True

    def handle(self):
        while self.answer_one():
            pass

    def answer_one(self):
        line = self.rfile.readline().decode("latin-1").split()
        if len(line) != 3:
            return False
        method, path = line[:2]
        headers = http.client.parse_headers(self.rfile)
        length = int(headers.get("content-length", 0))
        proxy = self.server
        trouble = proxy.trouble_of(method, path)
        if trouble == "torn" and length:
            self.rfile.read(length // 2)
            return False
        body = self.rfile.read(length)
        if trouble == "cut" or len(body) < length:
            return False
        if trouble == "refused":
            return self.send(503, [], b"<Error><Code>SlowDown</Code></Error>")
        if trouble == "slow":
            proxy.wait_a_little()
        is_listing = method == "GET" and "list-type=2" in path
        pass_on = self.listed if is_listing else self.passed_on
        status, answered, answer = pass_on(method, path, headers, body)
        if trouble == "lost":
            return False
        if trouble == "failed":
            return self.send(500, [], b"<Error><Code>InternalError</Code></Error>")
        if status == 200 and is_listing:
            answer = proxy.in_any_order(answer)
        if trouble == "torn":
            self.send(status, answered, answer, shown=len(answer) // 2)
            return False
        return self.send(status, answered, answer)

    def listed(self, method, path, headers, body):
        """Passes a request for a listing on, with few names in a page."""
        target = f"{path}&max-keys={self.server.page}"
        if STORE == "radosgw":
            # It checks signatures. Where that of the program is good, ours is asked with.
            whole = self.passed_on(method, path, headers, body)
            if whole[0] != 200:
                return whole
            headers = signed(method, f"127.0.0.1:{self.server.store}", target)
        return self.passed_on(method, target, headers, body)

    def passed_on(self, method, path, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.store, timeout=PATIENCE)
        is_alone = "if-none-match" in headers and STORE == "moto"
        if is_alone:
            self.server.one_put.acquire()
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if name.lower() != "connection":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            if is_alone:
                self.server.one_put.release()
            connection.close()

    def send(self, status, headers, body, shown=None):
        left_out = ("connection", "content-length", "transfer-encoding")
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Told')}"]
        lines += [f"{name}: {value}" for name, value in headers if name.lower() not in left_out]
        lines += [f"content-length: {len(body)}", "", ""]
        self.wfile.write("\r\n".join(lines).encode("latin-1") + body[:shown])
        return True


def signed(method, host, path):
    """Returns the headers of a request of ours that has no body."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest(method, f"http://{host}{path}", {"Host": host})
    S3SigV4Auth(Credentials(KEY, SECRET), "s3", REGION).add_auth(request)
    return request.headers


class Bucket:
    """A place in the store, seen past the program and the proxy."""

    def __init__(self, client, prefix, proxy):
        self.client, self.prefix, self.proxy = client, prefix, proxy
        self.url = f"s3://{BUCKET}/{prefix}"
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.server_address[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def go_away(self):
        self.proxy.is_away = True

    def come_back(self):
        self.proxy.is_away = False

    def names(self, below=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{self.prefix}/{below}"
        )
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return sorted(key.removeprefix(f"{self.prefix}/") for key in keys)

    def read(self, name):
        return self.client.get_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}")["Body"].read()

    def write(self, name, content):
        self.client.put_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}", Body=content)


class Folder:
    """A place in a directory, seen past the program."""

    def __init__(self, path):
        self.path, self.url, self.environment = path, str(path), {}

    def go_away(self):
        """As if what is mounted around it were not any more."""
        self.path.parent.rename(f"{self.path.parent}.away")

    def come_back(self):
        pathlib.Path(f"{self.path.parent}.away").rename(self.path.parent)

    def names(self, below=""):
        files = [path for path in (self.path / below).rglob("*") if path.is_file()]
        return sorted(str(path.relative_to(self.path)) for path in files)

    def read(self, name):
        return (self.path / name).read_bytes()

    def write(self, name, content):
        (self.path / name).write_bytes(content)

    def check_modes(self):
        for path in [self.path, *self.path.rglob("*")]:
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = 0o700 if path.is_dir() else 0o600
            expect(mode == wanted, f"{path} has the mode {mode:o}")


def begin_moto():
    """Starts moto, and returns its port."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    return store.get_host_and_port()[1]


def begin_radosgw(work):
    """Starts Ceph, which ends with this process, and returns the port of its gateway."""
    words = ["scripts/radosgw", work / "radosgw", BUCKET]
    with (work / "radosgw.log").open("w", encoding="utf-8") as log:
        store = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=os.environ | {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET},
        )
    atexit.register(store.communicate)
    told = {}
    while line := store.stdout.readline().strip():
        name, told[name] = line.split("=", 1)
    if not told:
        # It has said why. With 4 it cannot be had here.
        sys.exit(store.wait())
    return int(told["AWS_ENDPOINT_URL"].rsplit(":", 1)[1])


def begin_store(work):
    """Starts the store, and returns its port and a client."""
    import boto3

    port = begin_radosgw(work) if STORE == "radosgw" else begin_moto()
    client = boto3.client(
        "s3", endpoint_url=f"http://127.0.0.1:{port}", region_name=REGION,
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=BUCKET)
    return port, client
