// Puts and takes with a cluster client, which finds the node of each queue by itself.
//
// Goes on until its input ends, whatever happens to single nodes. Then every task that it has put
// must have been done.
import assert from "node:assert";
import { setTimeout as pause } from "node:timers/promises";
import Redis from "ioredis";

const QUEUES = Array.from({ length: 50 }, (_, number) => `cluster-node-${number}`);
const PATIENCE_MS = 60_000;

// Where any nodes listen for cluster clients: --resp-cluster.
const known = (process.env.PINPRIQ_CLUSTER ?? "127.0.0.1:7254").split(",");
const pinpriq = new Redis.Cluster(
  known.map((address) => ({
    host: address.slice(0, address.lastIndexOf(":")),
    port: Number(address.slice(address.lastIndexOf(":") + 1)),
  })),
);
// ioredis tells about nodes that it cannot reach here.
pinpriq.on("error", (error) => console.log("no cluster:", error.message));

// Refusals after which nothing has happened, or the outcome is unknown.
const AGAIN = /^(TRYAGAIN|CLUSTERDOWN|UNKNOWN) /;
// The first words of all other refusals are in capitals. What else goes wrong is the connection.
const REFUSED = /^[A-Z]+ /;

// Asks until a node answers. Each of these requests may happen twice without harm.
async function ask(...words) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await pinpriq.call(...words);
    } catch (error) {
      const isRefused = REFUSED.test(error.message) && !AGAIN.test(error.message);
      if (isRefused || Date.now() > end) throw error;
    }
    await pause(100);
  }
}

// Takes what is ready in a queue, and acknowledges it. Returns the payloads.
async function takeAll(queue) {
  const taken = await ask("TAKE", queue, "COUNT", 100, "TTR", 3_000);
  for (const [, , receipt] of taken) {
    try {
      await ask("ACK", queue, receipt);
    } catch (error) {
      // It was acknowledged the first time, or its lease has ended and it comes again.
      if (!error.message.startsWith("STALE ")) throw error;
    }
  }
  return taken.map(([, , , payload]) => payload);
}

let goesOn = true;
process.stdin.on("end", () => (goesOn = false)).resume();

const put = new Set();
const done = new Set();
for (let round = 1; goesOn; round++) {
  for (const queue of QUEUES) {
    const payload = `${queue} ${process.pid} ${round}`;
    // Another run puts other tasks. The key lets a repeated PUT put the task once.
    await ask("PUT", queue, payload, "UNIQUE", payload, "WINDOW", 600_000);
    put.add(payload);
    for (const payload of await takeAll(queue)) done.add(payload);
  }
  console.log("round", round);
}

const end = Date.now() + PATIENCE_MS;
while ([...put].some((payload) => !done.has(payload))) {
  assert(Date.now() < end, "some tasks were not taken");
  for (const queue of QUEUES) {
    for (const payload of await takeAll(queue)) done.add(payload);
  }
}

// Several queues in one request: the part in braces decides where they are.
await ask("PUT", "{cluster-node}a", "x");
await ask("TAKE", "QUEUES", 2, "{cluster-node}a", "{cluster-node}b");
await assert.rejects(pinpriq.call("TAKE", "QUEUES", QUEUES.length, ...QUEUES), /^\w*Error: CROSSSLOT /);
pinpriq.disconnect();
console.log("cluster: ok", put.size, "tasks");
