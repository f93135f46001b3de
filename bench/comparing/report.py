"""Medians of what was measured, and the report in Markdown."""

import os
import platform
import statistics
import subprocess
import time
from pathlib import Path


class Medians:
    """What was measured, by row and column."""

    def __init__(self, results, rows, columns):
        self.rows = rows
        self.columns = columns
        self.results = results

    def runs(self, row, column):
        return [result for result in self.results
                if result["row"] == row.name
                and (result["connections"], result["depth"]) == column]

    def median(self, row, column, value):
        """The median of what `value` finds in each run, or nothing where there is nothing."""
        values = [value(result) for result in self.runs(row, column)]
        values = [value for value in values if value is not None]
        return statistics.median(values) if values else None

    def jobs(self, row, column):
        return self.median(row, column, lambda result: result["jobs_per_second"])

    def row(self, name):
        return next((row for row in self.rows if row.name == name), None)


def progress(result):
    """One line of progress."""
    name = f"{result['connections']} × {result['depth']}"
    return (f"{result['round'] + 1}: {result['row']:20} {name:9} "
            f"{(result['jobs_per_second'] or 0) / 1000:10.1f} k jobs/s "
            f"{result['cpu_us_per_request']:7.2f} µs CPU a request")


def number(value, digits=None):
    """A number with as many digits as mean something."""
    if value is None:
        return "–"
    if digits is None:
        digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def table(medians, title, cell, rows=None):
    names = [f"{connections} × {depth}" for connections, depth in medians.columns]
    lines = [f"| {title} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in medians.rows if rows is None else rows:
        cells = [cell(row, column) for column in medians.columns]
        if any(text != "–" for text in cells):
            lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratios(medians, own_name, peer_names):
    """How many times as many jobs the one does, beside each of the others."""
    own = medians.row(own_name)
    if own is None:
        return ""

    def cell(peer, column):
        # Runs of the same round belong together, so their ratio is compared.
        pairs = zip(medians.runs(own, column), medians.runs(peer, column))
        rates = [(one["jobs_per_second"], other["jobs_per_second"]) for one, other in pairs]
        values = [one / other for one, other in rates if one and other]
        return number(statistics.median(values)) if values else "–"

    rows = [row for row in map(medians.row, peer_names) if row is not None]
    return table(medians, f"{own.title} ÷", cell, rows) + "\n" if rows else ""


def machine(directory):
    """What all this ran on."""
    cpus = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().split("\n")
            if line.startswith("model name")]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    disk = subprocess.run(["df", "--output=fstype,source", str(directory)], capture_output=True,
                          text=True).stdout.split("\n")
    return (f"{os.cpu_count()} processors ({cpus[0] if cpus else platform.machine()}), "
            f"{memory_kib >> 20} GiB, Linux {platform.release()}, "
            f"{' on '.join(disk[1].split()) if len(disk) > 1 else 'unknown disk'}, "
            f"load {os.getloadavg()[0]:.1f} at the end")


def markdown(medians, machine_text, versions, left_out, given):
    def thousand_jobs(row, column):
        jobs = medians.jobs(row, column)
        return number(jobs and jobs / 1000)

    def spread(row, column):
        rates = [run["jobs_per_second"] for run in medians.runs(row, column)]
        values = [rate / 1000 for rate in rates if rate]
        return f"{number(min(values))}–{number(max(values))}" if values else "–"

    def of_each(key):
        return lambda row, column: number(medians.median(row, column, lambda run: run[key]))

    def cpu_us_per_job(row, column):
        used = medians.median(row, column, lambda run: run["cpu_us_per_request"])
        return number(used and used * row.requests)

    def p99_us(row, column):
        found = medians.median(row, column, lambda run: run["latency"]["job"]["p99_ns"])
        return number(found and found / 1000)

    def requests_per_sync(row, column):
        return number(medians.median(
            row, column, lambda run: run["syncs"] and run["requests"] / run["syncs"]))

    telling = [row for row in medians.rows if row.has_info and row.group == "sync"]
    memory = ["redis-pop-memory", "redis-lease-memory", "beanstalkd-memory"]
    durable = ["redis-pop-sync", "redis-lease-sync", "beanstalkd-sync", "redis-lease-memory"]
    parts = [
        "# Comparison\n",
        f"{time.strftime('%Y-%m-%d %H:%M')}. {machine_text}. Server and load generator share the "
        "machine.\n",
        f"One job is a put, a take under a lease and an ack, or a put and a pop where there are no "
        f"leases. With DONE the next take acknowledges, so a job is two requests. Payloads of {given.bytes} bytes, {given.priorities} priorities, one queue that "
        f"stays short; connections × requests under way on each. Medians of {given.rounds} "
        f"alternating runs of {given.ms} ms; ratios are medians of the ratios in each round.\n",
        "Versions: " + "; ".join(versions) + ".\n",
        "Not measured, since it is not installed: " + ", ".join(left_out) + ".\n"
        if left_out else "",
        "![jobs per second](chart.svg)\n",
        "## Thousand jobs per second\n",
        table(medians, "", thousand_jobs),
        "## Ratios\n",
        ratios(medians, "pinpriq-memory", memory)
        + ratios(medians, "pinpriq-done-memory", ["pinpriq-memory", *memory])
        + ratios(medians, "pinpriq-tubes-memory", ["beanstalkd-memory", "pinpriq-memory"])
        + ratios(medians, "pinpriq-sync", durable)
        + ratios(medians, "pinpriq-done-sync", ["pinpriq-sync", *durable])
        + ratios(medians, "pinpriq-tubes-sync", ["beanstalkd-sync", "pinpriq-sync"])
        + ratios(medians, "echo", ["pinpriq-memory"]),
        "## CPU of the server, µs for a request\n",
        table(medians, "", of_each("cpu_us_per_request")),
        "## CPU of the server, µs for a job\n",
        "It hardly depends on what else the machine does.\n",
        table(medians, "", cpu_us_per_job),
        "## CPU of the load generator, µs for a request\n",
        table(medians, "", of_each("generator_us_per_request")),
        "## p99 of a job, µs\n",
        "Corrected for coordinated omission.\n",
        table(medians, "", p99_us),
        "## Syncs of the journal\n",
        "fdatasync in a run, then requests for each of them.\n",
        table(medians, "syncs", of_each("syncs"), telling),
        table(medians, "requests ÷ syncs", requests_per_sync, telling),
        "## Least and most, thousand jobs per second\n",
        table(medians, "", spread),
    ]
    return "\n".join(part for part in parts if part)
