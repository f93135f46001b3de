// A task with a delay, a task with a time to live, and a task whose lease ends.
import assert from "node:assert/strict";
import Redis from "ioredis";

const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251");

// Nobody gets the task before the delay is over; a blocking take is woken then.
const began = performance.now();
await pinpriq.call("PUT", "reminders", "tea", "DELAY", 200);
assert.deepEqual(await pinpriq.call("TAKE", "reminders"), []);
const [[, , receipt, payload]] = await pinpriq.call("TAKE", "reminders", "WAIT", 30_000);
assert.equal(payload, "tea");
assert.ok(performance.now() - began >= 199);
await pinpriq.call("ACK", "reminders", receipt);

// A task that nobody took in time is dropped, and clients that wait for it are told.
const put = await pinpriq.call("PUT", "reminders", "too late", "TTL", 50, "WAIT", 30_000);
assert.equal(put[1], "expired");

// A worker that dies gives its task back when the lease ends: here after 100 ms.
await pinpriq.call("PUT", "reminders", "again", "TTR", 100);
const [[, , lost]] = await pinpriq.call("TAKE", "reminders");
const [[, , found]] = await pinpriq.call("TAKE", "reminders", "WAIT", 30_000);
assert.notEqual(found, lost);
await pinpriq.call("ACK", "reminders", found);

await pinpriq.quit();
console.log("delayed: ok");
