// A priority queue with two ends: push, pop_min, pop_max, peek_min, peek_max.
import assert from "node:assert/strict";
import Redis from "ioredis";

const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251");
const push = (value, priority) => pinpriq.call("PUT", "both-ends", value, "PRIORITY", priority);
const first = (tasks) => tasks[0]?.[3];
const pop = async (end) => first(await pinpriq.call("POP", "both-ends", "FROM", end));
const peek = async (end) => first(await pinpriq.call("PEEK", "both-ends", "FROM", end));

for (const value of ["a1", "a2", "a3", "a4"]) await push(value, 1);
for (const [value, priority] of Object.entries({ c: 2, e: 3, d: 4, b: 5 })) {
  await push(value, priority);
}
assert.equal(await peek("MIN"), "a1");
assert.equal(await peek("MAX"), "b");
// From the top the highest number comes first, and within it the newest.
for (const value of ["b", "d", "e", "c", "a4", "a3"]) assert.equal(await pop("MAX"), value);
// From the bottom the lowest number comes first, and within it the oldest.
for (const value of ["a1", "a2", undefined]) assert.equal(await pop("MIN"), value);
assert.equal(await peek("MAX"), undefined);

await pinpriq.quit();
console.log("both_ends: ok");
