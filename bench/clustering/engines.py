"""What keeps the data: etcd, PostgreSQL, Redis with a replica, RabbitMQ, each on loopback.

Each gets the settings that its documentation or ours asks for, and is tuned for nothing. Each is
durable on every member: it syncs before it answers.
"""

import os
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

from .processes import Trouble, accepts, await_that, free_ports

MEMBERS = 3


class Missing(Exception):
    """What is not installed."""


def need(program):
    found = shutil.which(program)
    if found is None:
        raise Missing(f"{program} is not installed")
    return found


class Etcd:
    """Three members."""

    def __init__(self, processes):
        need("etcd")
        ports = free_ports(2 * MEMBERS)
        self.ports, peers = ports[:MEMBERS], [f"http://127.0.0.1:{it}" for it in ports[MEMBERS:]]
        for at, port in enumerate(self.ports):
            client = f"http://127.0.0.1:{port}"
            processes.start("etcd", f"e{at}", [
                "etcd", "--name", f"e{at}", "--data-dir", processes.directory / f"e{at}",
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peers[at], "--initial-advertise-peer-urls", peers[at],
                "--initial-cluster", ",".join(f"e{n}={peers[n]}" for n in range(MEMBERS)),
                "--snapshot-count", "1000", "--log-level", "error",
            ])
        processes.await_that("etcd is not healthy", lambda: all(map(self.is_healthy, self.ports)))

    @staticmethod
    def is_healthy(port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                return b"true" in answer.read()
        except OSError:
            return False

    def url(self, name):
        return f"etcd://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{name}"


class Postgres:
    """A server, with a synchronous standby or without. It begins with an empty copy."""

    template = None

    def __init__(self, processes, has_standby):
        self.processes, self.port = processes, free_ports(1)[0]
        data = self.copy("primary")
        settings = ["max_connections=300"]
        if has_standby:
            settings += ["synchronous_standby_names=s1"]
        self.start("primary", data, self.port, settings)
        processes.await_that("PostgreSQL does not start", lambda: accepts(self.port))
        if has_standby:
            standby, port = self.copy("standby"), free_ports(1)[0]
            (standby / "standby.signal").touch()
            owned(standby / "standby.signal")
            source = f"host=127.0.0.1 port={self.port} user=pinpriq application_name=s1"
            self.start("standby", standby, port, [
                "max_connections=300", "hot_standby=off", f"primary_conninfo={source}",
            ])
        waits = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wanted = "1" if has_standby else "0"
        processes.await_that("no standby", lambda: self.sql(waits) == wanted, every_s=0.1)

    @classmethod
    def prepare(cls, directory):
        """Makes what every server begins with."""
        cls.template = Path(directory) / "template"
        cls.template.mkdir()
        owned(cls.template)
        options = ["-D", cls.template, "--username=pinpriq", "--auth=trust", "--locale=C"]
        command = [*as_its_user(), postgres_program("initdb"), *options, "--no-sync"]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=directory)
        if ran.returncode != 0:
            raise Trouble(ran.stderr)

    def copy(self, name):
        data = self.processes.directory / name
        subprocess.run(["cp", "-a", "--reflink=auto", self.template, data], check=True)
        return data

    def start(self, name, data, port, settings):
        options = [word for setting in settings for word in ("-c", setting)]
        program = postgres_program("postgres")
        places = ["-D", data, "-h", "127.0.0.1", "-k", "", "-p", port]
        self.processes.start("PostgreSQL", name, [*as_its_user(), program, *places, *options])

    def sql(self, text):
        """Runs statements, and returns what psql prints."""
        to = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "pinpriq", "-d", "postgres"]
        command = [postgres_program("psql"), *to, "-q", "-A", "-t", "-c", text]
        ran = subprocess.run(command, capture_output=True, text=True)
        return ran.stdout.strip()

    def url(self, name):
        return f"postgres://pinpriq@127.0.0.1:{self.port}/postgres?schema={name}"


def postgres_program(name):
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        raise Missing("PostgreSQL is not installed")
    return found[-1]


def as_its_user():
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def owned(path):
    if os.geteuid() == 0:
        shutil.chown(path, "postgres", "postgres")


class Redis:
    """A primary and a replica. Both sync their log before they answer."""

    def __init__(self, processes):
        need("redis-server")
        self.port, replica = free_ports(2)
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        durable += ["--auto-aof-rewrite-percentage", "0", "--bind", "127.0.0.1"]
        durable += ["--loglevel", "warning", "--repl-diskless-sync-delay", "0"]
        for name, port in [("primary", self.port), ("replica", replica)]:
            directory = processes.directory / name
            directory.mkdir()
            command = ["redis-server", "--port", port, "--dir", directory, *durable]
            if name == "replica":
                command += ["--replicaof", "127.0.0.1", self.port]
            processes.start("Redis", name, command)
        processes.await_that("the replica does not follow", lambda: self.has_replica(replica))

    @staticmethod
    def has_replica(port):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as stream:
                stream.sendall(b"INFO replication\r\nQUIT\r\n")
                with stream.makefile("rb") as answer:
                    return b"master_link_status:up" in answer.read()
        except OSError:
            return False


class RabbitMq:
    """Three nodes. A quorum queue has a member on each."""

    def __init__(self, processes):
        server = "/usr/lib/rabbitmq/bin/rabbitmq-server"
        if not Path(server).exists():
            raise Missing("RabbitMQ is not installed")
        names_port, *ports = free_ports(1 + 2 * MEMBERS)
        self.ports = ports[:MEMBERS]
        self.names = {"ERL_EPMD_PORT": str(names_port), "HOME": str(processes.directory)}
        cookie = processes.directory / ".erlang.cookie"
        cookie.write_text("PINPRIQ")
        cookie.chmod(0o400)
        processes.start("RabbitMQ", "names", ["epmd", "-port", names_port], self.names)
        await_that("no epmd", lambda: accepts(names_port))
        nodes = [f"r{at}@localhost" for at in range(MEMBERS)]
        config = processes.directory / "rabbitmq.conf"
        discovery = "cluster_formation"
        lines = [f"{discovery}.peer_discovery_backend = classic_config", "loopback_users = none"]
        lines += [f"{discovery}.classic_config.nodes.{at + 1} = {it}" for at, it in enumerate(nodes)]
        config.write_text("\n".join([*lines, "log.console.level = error", ""]))
        for at, port in enumerate(self.ports):
            directory = processes.directory / f"r{at}"
            directory.mkdir()
            processes.start("RabbitMQ", f"r{at}", [server], {
                **self.names, "RABBITMQ_NODENAME": nodes[at], "RABBITMQ_NODE_PORT": str(port),
                "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
                "RABBITMQ_DIST_PORT": str(ports[MEMBERS + at]),
                "RABBITMQ_MNESIA_BASE": str(directory), "RABBITMQ_LOG_BASE": str(directory),
                "RABBITMQ_CONFIG_FILE": str(config.with_suffix("")),
                "RABBITMQ_PID_FILE": str(directory / "pid"), "RABBITMQ_ENABLED_PLUGINS": "",
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
                # So that the process is the server itself.
                "RUNNING_UNDER_SYSTEMD": "true",
            })
        self.port = self.ports[0]
        processes.await_that("RabbitMQ does not start", lambda: all(map(accepts, self.ports)))
        processes.await_that("the nodes do not join", self.is_whole, every_s=0.5)

    def is_whole(self):
        command = ["/usr/lib/rabbitmq/bin/rabbitmqctl", "-n", "r0@localhost", "eval"]
        command += ["length(rabbit_nodes:all_running())."]
        ran = subprocess.run(command, capture_output=True, text=True,
                             env={**os.environ, **self.names})
        return ran.stdout.strip() == str(MEMBERS)
