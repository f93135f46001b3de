"""How the rate grows with the number of shards on one engine."""

from dataclasses import replace

from .cost import OnEtcd, OnPostgres, OnPostgresPair
from .engines import Missing
from .processes import Processes, spent_since
from .tables import median, number, spread, table

# Stands between the table of the growth and what it is carried to.
CARRIED = "\n<!-- carried -->\n"

COUNTS = [1, 2, 4, 8, 16]


ROWS = [OnEtcd, OnPostgres, OnPostgresPair]


def run(load, rounds, counts, note, engines=ROWS):
    """Measures 64 × 16 with a queue in each shard, on each engine in turns."""
    results, left_out = [], {}
    for turn in range(rounds):
        for row in engines:
            for shards in counts:
                if row in left_out:
                    continue
                try:
                    with Processes() as processes:
                        sharded = type(row.__name__, (row,), {"shards": shards})
                        server = sharded(processes, load)
                        bytes_a_job = log_bytes_a_job(server, load)
                        before = processes.cpu_s(), processes.threads_cpu_s("n1"), server.figures()
                        told = server.measure(load, 64, 16)
                        after = processes.cpu_s(), processes.threads_cpu_s("n1"), server.figures()
                except Missing as missing:
                    left_out[row] = str(missing)
                    continue
                spent, threads, counted = map(spent_since, before, after)
                told["cpu_us"] = {it: spent[it] / told["jobs"] * 1e6 for it in spent}
                told["threads_us"] = {it: threads[it] / told["jobs"] * 1e6 for it in threads}
                told["bytes"] = bytes_a_job
                told["entries"] = counted["journal_writes"]
                told.update(section="growth", row=row.__name__, shards=shards, round=turn)
                results.append(told)
                note(told)
    return results, left_out


def log_bytes_a_job(server, load):
    """What a job adds to the log, from a run that is too short for anything to be removed."""
    before = server.figures()["journal_bytes_used"]
    jobs = server.measure(replace(load, ms=100), 64, 16)["jobs"]
    return (server.figures()["journal_bytes_used"] - before) / jobs


def report(results, left_out, load, rounds):
    rows = []
    for row in ROWS:
        mine = [it for it in results if it["row"] == row.__name__]
        for shards in sorted({it["shards"] for it in mine}):
            runs = [it for it in mine if it["shards"] == shards]
            rates = [it["jobs_per_second"] for it in runs]
            own = median(it["cpu_us"]["pinpriq"] for it in runs)
            engine = median(sum(it["cpu_us"].values()) - it["cpu_us"]["pinpriq"] for it in runs)
            p99 = median(it["job_p99_us"] / 1000 for it in runs)
            in_entry = median(it["jobs"] / max(1, it["entries"]) for it in runs)
            threads = {it: median(run["threads_us"].get(it, 0) for run in runs)
                       for it in ["pinpriq", "shard", "engine"]}
            rows.append([row.title, str(shards), number(median(rates)), spread(rates),
                         number(p99), number(in_entry), number(engine), number(own),
                         " + ".join(map(number, threads.values()))])
    titles = ["", "shards", "jobs/s", "lowest–highest", "p99 of a job, ms", "jobs in an entry",
              "CPU of the engine, µs a job", "CPU of pinpriq, µs a job",
              "that is: connections + shards + client of the engine"]
    paper = carried([it for it in results if it["shards"] == max(counts_of(results))])
    text = (f"64 × 16, one node, a queue in each shard; medians of {rounds} rounds of "
            f"{load.ms / 1000:g} s.\n\n{table(titles, rows)}")
    text += "".join(f"\nNOT RUN: {why}.\n" for why in left_out.values())
    return text + CARRIED + paper


def counts_of(results):
    return {it["shards"] for it in results}


def carried(results):
    """What ten million jobs a second would take, if a job cost then what it costs here."""
    wanted, rows = 10_000_000, []
    for row in ROWS:
        runs = [it for it in results if it["row"] == row.__name__]
        if not runs:
            continue
        threads = {it: median(run["threads_us"].get(it, 0) for run in runs)
                   for it in ["pinpriq", "shard", "engine"]}
        engine = median(sum(it["cpu_us"].values()) - it["cpu_us"]["pinpriq"] for it in runs)
        size = median(it["bytes"] for it in runs)
        rate = median(it["jobs_per_second"] for it in runs)
        cores = [number(us * wanted / 1e6, 0) for us in [*threads.values(), engine]]
        rows.append([row.title, *cores, number(size, 0), number(size * wanted / 1e9),
                     number(wanted / rate, 0)])
    titles = ["", "cores for connections", "for shards", "for clients of engines", "for engines",
              "bytes in the log, a job", "GB/s into all logs", "times the rate measured here"]
    return table(titles, rows)
