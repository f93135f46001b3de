#!/usr/bin/env node
// What a prefetch with RECALL costs and gains, with the worker of the TypeScript package: how soon
// an urgent job begins behind a backlog, and how many jobs a second one worker does. The figures
// belong to docs/performance.md. Build clients/typescript first (npm ci && npm run build).
//
// Use: bench/prefetch.mjs PROGRAM [ROUNDS]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client } from "../clients/typescript/dist/esm/index.js";

const [program, rounds = "3"] = process.argv.slice(2);
if (!program) {
  console.error("use: bench/prefetch.mjs PROGRAM [ROUNDS]");
  process.exit(2);
}

const JOB_MS = 2;
const URGENT = 400;
const URGENT_EVERY_MS = 25;
const BACKLOG = 10_000;

// How a worker takes, and how many jobs are measured. With an explicit `from` it takes ahead, and
// nothing is called back.
const WAYS = [
  ["prefetch 1, by TAKE", { prefetch: 1, from: "min" }, 5_000],
  ["prefetch 1, RECALL", { prefetch: 1 }, 5_000],
  ["prefetch 100, by TAKE", { prefetch: 100, from: "min" }, 50_000],
  ["prefetch 100, RECALL", { prefetch: 100 }, 50_000],
];

// A job that ends in the same step of the program, and one that waits for a turn of the event loop.
const atOnce = () => undefined;
const later = () => new Promise((resolve) => setImmediate(resolve));

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Starts a server that keeps nothing, and returns its address and a way to stop it. */
async function start() {
  const options = "serve --durability memory --resp 127.0.0.1:0 --pinpriq off --http off";
  const server = spawn(program, [...options.split(" "), "--log-format", "json"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const line of createInterface({ input: server.stderr })) {
    const { door, address } = JSON.parse(line);
    if (door === "resp") return { server, url: `pinpriq://${address}` };
  }
  throw new Error("the server did not start");
}

/** Returns the time of a round trip, in milliseconds. */
async function roundTrip(queue) {
  const times = [];
  for (let turn = 0; turn < 1_000; turn++) {
    const began = performance.now();
    await queue.peek();
    times.push(performance.now() - began);
  }
  return median(times);
}

/** Returns how long urgent jobs waited for their start, as 50th and 99th percentile in ms. */
async function urgentWaits(putter, worker, options) {
  const queue = putter.queue(`wait-${Math.random()}`);
  await queue.putMany(new Array(BACKLOG).fill(0), { priority: 5 });
  const waits = [];
  const work = worker.queue(queue.name, { ttrMs: 60_000 }).process(
    async (job) => {
      if (job.payload !== 0) waits.push(performance.timeOrigin + performance.now() - job.payload);
      await pause(JOB_MS);
    },
    { ...options, log: null },
  );
  await pause(200);
  for (let turn = 0; turn < URGENT; turn++) {
    await queue.put(performance.timeOrigin + performance.now(), { priority: 0 });
    await pause(URGENT_EVERY_MS);
  }
  await work.stop();
  waits.sort((a, b) => a - b);
  const at = (part) => waits[Math.min(waits.length - 1, Math.floor(waits.length * part))];
  return [at(0.5), at(0.99)];
}

/** Returns the processor time of the server so far, in microseconds. */
function serverCpu() {
  const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/**
 * Returns how many jobs a second a worker does with this handler, and the processor time of a job
 * in microseconds, in the worker and in the server.
 */
async function throughput(putter, worker, handler, { jobs, ...options }) {
  const queue = putter.queue(`many-${Math.random()}`);
  for (let turn = 0; turn < jobs / 1_000; turn++) {
    await queue.putMany(new Array(1_000).fill(0), { priority: 5 });
  }
  let done = 0;
  const [ownBefore, serverBefore] = [process.cpuUsage(), serverCpu()];
  const began = performance.now();
  await new Promise((resolve) => {
    const trace = ({ type }) => type === "acked" && ++done === jobs && resolve();
    const lane = worker.queue(queue.name, { ttrMs: 60_000 });
    const work = lane.process(handler, { ...options, log: null, trace });
    void work.finished;
  });
  const rate = (jobs * 1_000) / (performance.now() - began);
  const own = process.cpuUsage(ownBefore);
  return [rate, (own.user + own.system) / jobs, (serverCpu() - serverBefore) / jobs];
}

const { server, url } = await start();
const putter = await Client.connect(url);
const worker = await Client.connect(url);
const KINDS = [
  ["at once", atOnce, 1],
  ["later", later, 1],
  ["later, 10 at a time", later, 10],
];
const found = new Map();
console.log(`a round trip: ${(await roundTrip(putter.queue("none"))).toFixed(2)} ms`);
for (let round = 0; round < Number(rounds); round++) {
  for (const [way, options, jobs] of WAYS) {
    note(way, "start of an urgent job, ms: p50, p99", await urgentWaits(putter, worker, options));
    for (const [kind, handler, concurrency] of KINDS) {
      const how = { ...options, concurrency, jobs };
      const figures = await throughput(putter, worker, handler, how);
      note(way, `${kind}: jobs a second, µs of the worker, of the server`, figures);
    }
  }
}

/** Notes the figures of one round. */
function note(way, what, figures) {
  const key = `${way} | ${what}`;
  found.set(key, [...(found.get(key) ?? []), figures]);
}

for (const [key, all] of found) {
  const medians = all[0].map((_, at) => median(all.map((figures) => figures[at])));
  console.log(`${key}: ${medians.map((value) => value.toFixed(2)).join(", ")}`);
}
server.kill();
process.exit(0);
