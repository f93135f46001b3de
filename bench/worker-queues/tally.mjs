// Counts the jobs of a worker in JavaScript, and measures from its first job to its last one.
//
// Each job has a number, so that one that is lost or comes twice is noticed.
export class Tally {
  #jobs;
  #seen;
  #done = 0;
  #repeated = 0;
  #first;
  #last;
  #noteAll;

  /** Settles when the last job is done. */
  all = new Promise((resolve) => (this.#noteAll = resolve));

  constructor(jobs) {
    this.#jobs = jobs;
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
    return [performance.now() / 1e3, (user + system) / 1e6];
  }

  /** Prints the result of a run, which the benchmark reads. */
  tell(left) {
    const [elapsed, worker] = this.#last.map((late, at) => late - this.#first[at]);
    const result = {
      jobs: this.#jobs,
      done: this.#done,
      repeated: this.#repeated,
      left,
      elapsed_s: elapsed,
      worker_cpu_s: worker,
    };
    console.log(JSON.stringify(result));
  }
}
