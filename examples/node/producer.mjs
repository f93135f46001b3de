// Puts tasks: plain, with a priority, many at once, and one whose end it awaits.
import assert from "node:assert/strict";
import Redis from "ioredis";

// Any Redis client will do. call() sends a command that the client has no method for.
const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251");

// PUT returns the id of the new task. A lower number is more urgent.
console.log("put task", await pinpriq.call("PUT", "node-mails", "to: ann"));
await pinpriq.call("PUT", "node-mails", "to: bob", "PRIORITY", -1);
await pinpriq.call("PUT", "node-mails", "to: eve", "PRIORITY", 9, "TTL", 60_000);

// Looking changes nothing: each task is [queue, id, receipt, payload].
const seen = await pinpriq.call("PEEK", "node-mails", "COUNT", 10);
assert.deepEqual(seen.map((task) => task[3]), ["to: bob", "to: ann", "to: eve"]);

// Requests that are not awaited one by one are sent together.
const numbers = Array.from({ length: 100 }, (_, number) => number);
await Promise.all(numbers.map((number) => pinpriq.call("PUT", "numbers", number)));
assert.equal((await pinpriq.call("POP", "numbers", "COUNT", 1000)).length, 100);

// A request that blocks holds up the others of its connection, so it gets one of its own.
const waiting = pinpriq.duplicate();
const ended = waiting.call("PUT", "urgent", "now!", "WAIT", 30_000);
const [[queue, , receipt]] = await pinpriq.call("TAKE", "urgent", "WAIT", 30_000);
await pinpriq.call("ACK", queue, receipt);
assert.equal((await ended)[1], "acked");

assert.equal(await pinpriq.call("QUEUE", "DROP", "node-mails"), 3);
await Promise.all([pinpriq.quit(), waiting.quit()]);
console.log("producer: ok");
