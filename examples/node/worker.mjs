// A worker that renews its leases, retries failed tasks later, and buries those that always fail.
import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import Redis from "ioredis";

const TTR_MS = 300; // how long a lease lasts unless it is renewed
const ATTEMPTS_MAX = 3;

const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251");
// TAKE blocks its connection, so it has one of its own.
const taking = pinpriq.duplicate();
const renewals = new EventEmitter();

// What is known of a task comes as a flat list of names and values.
const named = (flat) =>
  Object.fromEntries(flat.flatMap((name, at) => (at % 2 ? [] : [[name, flat[at + 1]]])));

// The work itself. It fails by throwing an error.
async function handle(payload, attempts) {
  if (payload === "slow") {
    // Longer than the lease would last by itself.
    for (let renewal = 0; renewal < 5; renewal++) await once(renewals, "renewed");
  }
  if (payload === "broken" || (payload === "flaky" && attempts < 2)) {
    throw new Error(`cannot do ${payload}`);
  }
}

async function workOn({ queue, receipt, payload, attempts }) {
  // A receipt is good on any connection.
  const keeper = setInterval(() => {
    pinpriq.call("TOUCH", queue, receipt).then(
      () => renewals.emit("renewed"),
      (error) => console.log("the lease is lost:", error.message),
    );
  }, TTR_MS / 3);
  try {
    await handle(payload, attempts);
    await pinpriq.call("ACK", queue, receipt);
    return "acked";
  } catch (error) {
    if (attempts >= ATTEMPTS_MAX) {
      // It stays until somebody looks at it: DIG or PLOW brings it back.
      await pinpriq.call("BURY", queue, receipt, "REASON", error.message);
      return "buried";
    }
    // Try again later, with a longer delay each time.
    await pinpriq.call("RELEASE", queue, receipt, "DELAY", 20 * attempts);
    return "released";
  } finally {
    clearInterval(keeper);
  }
}

for (const payload of ["fine", "flaky", "slow", "broken"]) {
  await pinpriq.call("PUT", "node-jobs", payload);
}

const ended = [];
while (ended.filter((end) => !end.endsWith("released")).length < 4) {
  const taken = await taking.call("TAKE", "node-jobs", "WAIT", 30_000, "TTR", TTR_MS, "WITHMETA");
  for (const task of taken.map(named)) {
    ended.push(`${task.payload} ${await workOn(task)}`);
    console.log(ended.at(-1));
  }
}
ended.sort();
assert.deepEqual(ended, [
  "broken buried",
  "broken released",
  "broken released",
  "fine acked",
  "flaky acked",
  "flaky released",
  "slow acked",
]);

const [buried] = (await pinpriq.call("PEEK", "node-jobs", "STATE", "B", "WITHMETA")).map(named);
assert.equal(buried.reason, "cannot do broken");
assert.equal(buried.attempts, 3);

// A receipt of a lease that has ended is refused.
await pinpriq.call("DIG", "node-jobs", buried.id);
const [[, , old]] = await pinpriq.call("TAKE", "node-jobs");
await pinpriq.call("SNATCH", "node-jobs", buried.id);
await assert.rejects(pinpriq.call("ACK", "node-jobs", old), /^ReplyError: STALE/);

await pinpriq.call("QUEUE", "DROP", "node-jobs");
await Promise.all([pinpriq.quit(), taking.quit()]);
console.log("worker: ok");
