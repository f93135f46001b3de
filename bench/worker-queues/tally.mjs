// Counts the jobs of a worker in JavaScript, and measures from its first job to its last one.
//
// Each job has a number, so that one that is lost or comes twice is noticed. The processor time of
// the server is read at the same two moments as that of the worker.
import { readFileSync } from "node:fs";

// Linux shows spans in hundredths of a second to programs, whatever its own clock is.
const TICKS_PER_SECOND = 100;

// The processor time of all threads. The name of a process may hold anything but is in brackets.
function serverCpuS(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export class Tally {
  #jobs;
  #serverPid;
  #seen;
  #done = 0;
  #repeated = 0;
  #first;
  #last;
  #noteAll;

  /** Settles when the last job is done. */
  all = new Promise((resolve) => (this.#noteAll = resolve));

  constructor(jobs, serverPid) {
    this.#jobs = jobs;
    this.#serverPid = serverPid;
    this.#seen = new Uint8Array(jobs);
  }

  /** All that a job does. */
  note(number) {
    this.#first ??= this.#moment();
    if (this.#seen[number]) {
      this.#repeated += 1;
      return;
    }
    this.#seen[number] = 1;
    this.#done += 1;
    if (this.#done < this.#jobs) return;
    this.#last = this.#moment();
    this.#noteAll();
  }

  #moment() {
    const { user, system } = process.cpuUsage();
    return [performance.now() / 1e3, (user + system) / 1e6, serverCpuS(this.#serverPid)];
  }

  /** Prints the result of a run, which the benchmark reads. */
  tell(left) {
    const [elapsed, worker, server] = this.#last.map((late, at) => late - this.#first[at]);
    const result = {
      jobs: this.#jobs,
      done: this.#done,
      repeated: this.#repeated,
      left,
      elapsed_s: elapsed,
      worker_cpu_s: worker,
      server_cpu_s: server,
    };
    console.log(JSON.stringify(result));
  }
}
