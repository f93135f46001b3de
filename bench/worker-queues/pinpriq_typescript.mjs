// Jobs for pinpriq's package for TypeScript, which do nothing.
//
// Use: pinpriq_typescript.mjs fill PORT JOBS, or
// pinpriq_typescript.mjs promises PORT JOBS CONCURRENCY
import { Client } from "pinpriq";
import { Tally } from "./tally.mjs";

const PUTS_AT_ONCE = 500;

const [mode, port, ...numbers] = process.argv.slice(2);
const client = await Client.connect(`redis://127.0.0.1:${port}`);
const queue = client.queue("jobs");
const [jobs, concurrency] = numbers.map(Number);

if (mode === "fill") {
  for (let first = 0; first < jobs; first += PUTS_AT_ONCE) {
    const length = Math.min(PUTS_AT_ONCE, jobs - first);
    await queue.putMany(Array.from({ length }, (_, number) => first + number));
  }
} else {
  const tally = new Tally(jobs);
  const worker = queue.process((job) => tally.note(job.payload), { concurrency });
  await tally.all;
  await worker.stop();
  tally.tell((await queue.stats()).present);
}
await client.close();
