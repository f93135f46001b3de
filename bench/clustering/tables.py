"""Medians of what was measured, and tables in Markdown."""

import math
import os
import platform
import statistics
import subprocess
from pathlib import Path


def number(value, digits=None):
    """A number with as many digits as mean something."""
    if value is None:
        return "–"
    if digits is None:
        digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def spread(values):
    values = [value for value in values if value is not None]
    return f"{number(min(values))}–{number(max(values))}" if values else "–"


def quantile(values, share):
    """The lowest value that this share of all does not exceed."""
    values = sorted(values)
    return values[max(0, math.ceil(len(values) * share) - 1)]


def machine(directory):
    """What all this ran on."""
    cpus = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().split("\n")
            if line.startswith("model name")]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    kernel = ".".join(platform.release().split(".")[:2])
    disk = subprocess.run(["df", "--output=fstype", str(directory)], capture_output=True,
                          text=True).stdout.split()
    return (f"{os.cpu_count()} processors ({cpus[0] if cpus else platform.machine()}), "
            f"{memory_kib >> 20} GiB, Linux {kernel}, {disk[-1] if disk else '?'}, "
            f"load {os.getloadavg()[0]:.1f}")


def versions(program):
    """What was measured, as it calls itself."""
    postgres = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    commands = [[program, "--version"], ["etcd", "--version"], ["redis-server", "--version"],
                *([str(it), "--version"] for it in postgres[-1:]),
                ["dpkg-query", "-W", "-f", "RabbitMQ ${Version}", "rabbitmq-server"]]
    found = []
    for command in commands:
        try:
            ran = subprocess.run(command, capture_output=True, text=True)
        except OSError:
            continue
        if ran.returncode == 0:
            found.append(ran.stdout.strip().split("\n")[0].split(" sha=")[0])
    return "; ".join(found)
