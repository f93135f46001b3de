"""What a job costs: pinpriq on each engine, beside others that keep a job on several machines."""

import json
import subprocess
from dataclasses import dataclass

from .engines import Etcd, Missing, Postgres, RabbitMq, Redis, postgres_program
from .nodes import Client, Nodes, queue_in
from .processes import Processes, Trouble, accepts, free_ports, spent_since
from .tables import median, number, spread, table

PATIENCE_S = 60
COLUMNS = [(1, 1), (64, 16), (1024, 1)]

# A few queues in as many shards, so that what is measured is not the one thread of a shard.
SHARDS = 4

SENSU_TABLE = """
CREATE TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL,
    priority int NOT NULL, payload text NOT NULL,
    leased_until timestamptz NOT NULL DEFAULT '-infinity', attempt int NOT NULL DEFAULT 0);
CREATE INDEX ON jobs (queue, priority, id);
"""
SENSU_PUT = """
\\set priority random(0, {priorities} - 1)
INSERT INTO jobs (queue, priority, payload) VALUES ('jobs', :priority, '{payload}');
"""
SENSU_WORK = """
WITH taken AS (UPDATE jobs SET leased_until = now() + interval '60 s', attempt = attempt + 1
    WHERE id = (SELECT id FROM jobs WHERE queue = 'jobs' AND leased_until < now()
        ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, payload)
    SELECT coalesce(max(id), 0) AS id, coalesce(max(payload), '') AS payload FROM taken \\gset
DELETE FROM jobs WHERE id = :id;
"""


@dataclass
class Load:
    """How much is asked, and by which programs."""

    program: str
    generator: str
    ms: int
    bytes: int = 100
    priorities: int = 10


class Generated:
    """A server that the generator loads."""

    columns = COLUMNS
    kind, requests, queues = "pinpriq", 3, ["jobs"]

    def measure(self, load, connections, depth):
        command = [load.generator, "run", self.kind, self.port, connections, depth, load.ms]
        command += [load.bytes, load.priorities, ",".join(self.queues)]
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                             timeout=PATIENCE_S + load.ms / 1000)
        if ran.returncode != 0:
            raise Trouble(ran.stderr.strip())
        told = json.loads(ran.stdout)
        if told["refused"]:
            raise Trouble(f"{told['refused']} requests were refused")
        return {
            # Counted in requests, since in a short run many jobs begin and do not end.
            "jobs": told["requests"] / self.requests,
            "jobs_per_second": told["requests_in_time"] / self.requests / told["elapsed_ns"] * 1e9,
            "put_p50_us": told["latency"]["put"]["p50_ns"] / 1000,
            "job_p99_us": told["latency"]["job"]["p99_ns"] / 1000,
        }


class Journal(Generated):
    title, place = "**pinpriq**, one server with its journal", "one disk"

    def __init__(self, processes, load):
        self.port = free_ports(1)[0]
        processes.start("pinpriq", "pinpriq", [
            load.program, "serve", "--pinpriq", "off", "--http", "off", "--resp", f"127.0.0.1:{self.port}",
            "--data", processes.directory / "data", "--log-level", "warn",
        ])
        processes.await_that("pinpriq does not start", lambda: accepts(self.port))


class Cluster(Generated):
    shards = SHARDS

    def __init__(self, processes, load):
        engine = self.engine(processes)
        nodes = Nodes(processes, load.program, engine.url("bench"), self.shards)
        nodes.start("n1")
        nodes.await_owners("n1")
        nodes.await_member("n1")
        self.port = nodes.ports["n1"]
        self.queues = [queue_in(shard, self.shards) for shard in range(self.shards)]

    def figures(self):
        """The figures of all shards together."""
        client = Client(self.port)
        told = client.ask("INFO", "persistence").decode()
        client.close()
        figures = (line.split(":", 1) for line in told.splitlines() if ":" in line)
        return {name: int(value) for name, value in figures if value.isdigit()}


class OnEtcd(Cluster):
    title, place = "**pinpriq** on etcd", "two of three disks"
    engine = Etcd


class OnPostgres(Cluster):
    title, place = "**pinpriq** on PostgreSQL", "one disk"

    def engine(self, processes):
        return Postgres(processes, has_standby=False)


class OnPostgresPair(Cluster):
    title, place = "**pinpriq** on PostgreSQL with a standby", "two disks"

    def engine(self, processes):
        return Postgres(processes, has_standby=True)


class RedisPair(Generated):
    title, place = "Redis, with leases (Lua), AOF always, `WAIT 1`", "two disks"
    kind = "redis-wait"

    def __init__(self, processes, _load):
        self.port = Redis(processes).port


class Rabbit(Generated):
    title, place = "RabbitMQ, quorum queue, no priorities", "two of three disks"
    kind, requests, columns = "rabbitmq", 2, [(1, 1), (1024, 1)]

    def __init__(self, processes, _load):
        self.port = RabbitMq(processes).port


class Sensu:
    """A row for each job, loaded by pgbench. A connection has one request under way."""

    title, place = "PostgreSQL, a row for each job, `SKIP LOCKED`", "one disk"
    columns, has_standby = [(1, 1), (64, 1)], False

    def __init__(self, processes, load):
        self.directory = processes.directory
        self.server = Postgres(processes, self.has_standby)
        self.server.sql(SENSU_TABLE)
        terms = {"priorities": load.priorities, "payload": "x" * load.bytes}
        put = SENSU_PUT.format(**terms)
        (self.directory / "put.sql").write_text(put)
        (self.directory / "job.sql").write_text(put + SENSU_WORK)

    def bench(self, script, connections, seconds, *more):
        to = ["-h", "127.0.0.1", "-p", str(self.server.port), "-U", "pinpriq", "-n"]
        how = ["-M", "prepared", "-c", str(connections), "-T", str(seconds), "-f", script, *more]
        ran = subprocess.run([postgres_program("pgbench"), *to, *how, "postgres"],
                             capture_output=True, text=True, cwd=self.directory,
                             timeout=PATIENCE_S + seconds)
        if ran.returncode != 0:
            raise Trouble(ran.stderr.strip())
        lines = ran.stdout.splitlines()
        jobs = next(line.split(":")[1].split("/")[0] for line in lines if "processed" in line)
        rate = next(line.split("=")[1].split()[0] for line in lines if line.startswith("tps"))
        return {"jobs": float(jobs), "jobs_per_second": float(rate)}

    def measure(self, load, connections, _depth):
        seconds = max(1, load.ms // 1000)
        told = self.bench("job.sql", connections, seconds)
        if connections == 1:
            self.put_p50_us = self.put_p50(seconds)
        return {**told, "put_p50_us": self.put_p50_us, "job_p99_us": None}

    def put_p50(self, seconds):
        """Puts alone by one client, whose times pgbench writes into a file."""
        self.bench("put.sql", 1, seconds, "-l", "--log-prefix", "puts")
        [log] = self.directory.glob("puts.*")
        times = [int(line.split()[2]) for line in log.read_text().splitlines()]
        log.unlink()
        self.server.sql("TRUNCATE jobs")
        return median(times)


class SensuPair(Sensu):
    title, place = "the same with a standby", "two disks"
    has_standby = True


ROWS = [Journal, OnEtcd, OnPostgres, OnPostgresPair, RedisPair, Rabbit, Sensu, SensuPair]


def column_name(column):
    return f"{column[0]:,} × {column[1]}"


def run(load, rounds, rows, note):
    """Measures all rows in turns. Returns the results, and what could not be measured and why."""
    results, left_out = [], {}
    for turn in range(rounds):
        # No row always comes behind the same other one.
        for row in rows[turn % len(rows):] + rows[:turn % len(rows)]:
            if row in left_out:
                continue
            try:
                with Processes() as processes:
                    server = row(processes, load)
                    for column in row.columns:
                        before = processes.cpu_s()
                        told = server.measure(load, *column)
                        spent = spent_since(before, processes.cpu_s())
                        told["cpu_us"] = {it: spent[it] / told["jobs"] * 1e6 for it in spent}
                        told.update(section="cost", row=row.__name__, column=column, round=turn)
                        results.append(told)
                        note(told)
            except Missing as missing:
                left_out[row] = str(missing)
            except Trouble as trouble:
                left_out[row] = f"{row.title}: {trouble}"
    return results, left_out


def report(results, left_out, load, rounds):
    def of(row, column, value):
        return [value(it) for it in results
                if it["row"] == row.__name__ and it["column"] == column]

    rows = []
    for row in ROWS:
        many = row.columns[1]
        rates = of(row, many, lambda it: it["jobs_per_second"])
        if not rates or row in left_out:
            continue
        wide = of(row, (1024, 1), lambda it: it["jobs_per_second"])
        spent = of(row, many, lambda it: it["cpu_us"])
        parts = {kind: median(it[kind] for it in spent) for kind in spent[0]}
        shares = ", ".join(f"{kind} {number(us)}" for kind, us in parts.items())
        rows.append([
            row.title, row.place, column_name(many), number(median(rates)), spread(rates),
            number(median(wide)),
            number(median(of(row, (1, 1), lambda it: it["put_p50_us"] / 1000))),
            number(median(sum(it.values()) for it in spent)), shares,
        ])
    titles = ["", "a confirmed change is on", "at", "jobs/s", "lowest–highest", "jobs/s, 1,024 × 1",
              "put of one client, p50 in ms", "CPU of all servers, µs a job", "of that"]
    text = (f"Medians of {rounds} rounds in turns, {load.ms / 1000:g} s each; "
            f"{load.bytes} bytes, {load.priorities} priorities; pinpriq in a cluster: one node, "
            f"{SHARDS} shards with a queue each.\n\n{table(titles, rows)}")
    return text + "".join(f"\nNOT RUN: {why}.\n" for why in left_out.values())
