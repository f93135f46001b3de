// Jobs for BullMQ, which do nothing. Like those of the others, they leave no results behind.
//
// Use: bullmq_worker.mjs fill PORT JOBS, or
// bullmq_worker.mjs promises PORT JOBS CONCURRENCY
import { Queue, Worker } from "bullmq";
import { Tally } from "./tally.mjs";

const JOBS_AT_ONCE = 500;

const [mode, port, ...numbers] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port) };
const queue = new Queue("jobs", { connection });
const [jobs, concurrency] = numbers.map(Number);

if (mode === "fill") {
  const opts = { removeOnComplete: true };
  for (let first = 0; first < jobs; first += JOBS_AT_ONCE) {
    const length = Math.min(JOBS_AT_ONCE, jobs - first);
    const job = (_, number) => ({ name: "nothing", data: first + number, opts });
    await queue.addBulk(Array.from({ length }, job));
  }
} else {
  const tally = new Tally(jobs);
  const work = async (job) => tally.note(job.data);
  const worker = new Worker("jobs", work, { connection, concurrency });
  await tally.all;
  await worker.close();
  const counts = Object.values(await queue.getJobCounts());
  tally.tell(counts.reduce((sum, count) => sum + count, 0));
}
await queue.close();
