// A transaction: a task is done and what follows from it is put, all at one moment or not at all.
import assert from "node:assert/strict";
import Redis from "ioredis";

const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251");

// multi() keeps the commands, and exec() sends them together, between MULTI and EXEC.
const finish = (receipt, order) =>
  pinpriq
    .multi()
    .call("ACK", "node-orders", receipt)
    .call("PUT", "{node-orders}-invoices", order)
    .call("PUT", "{node-orders}-parcels", order, "PRIORITY", 1)
    .exec();

const payloads = async (queue) =>
  (await pinpriq.call("PEEK", queue, "COUNT", 10)).map((task) => task[3]);

await pinpriq.call("PUT", "node-orders", "order 17");
const [[, , receipt, order]] = await pinpriq.call("TAKE", "node-orders", "TTR", 30_000);

// The replies come in the order of the commands, each as [error, reply]. There are no errors.
const [[, acked], [, invoice], [, parcel]] = await finish(receipt, order);
console.log("acknowledged the order, put invoice", invoice, "and parcel", parcel);
assert.equal(acked, "OK");

// The lease has ended. So the first command is refused, and none of the others happens. The error
// has the position of the command, and its refusal.
await assert.rejects(finish(receipt, order), /^ReplyError: EXECABORT 1 STALE/);
assert.deepEqual(await payloads("{node-orders}-invoices"), ["order 17"]);
assert.deepEqual(await payloads("{node-orders}-parcels"), ["order 17"]);

// What cannot be part of a transaction is refused at once, and then nothing happens either.
const wrong = pinpriq
  .multi()
  .call("PUT", "{node-orders}-invoices", "order 18")
  .call("TAKE", "node-orders");
await assert.rejects(wrong.exec(), ({ previousErrors }) =>
  /TAKE cannot be part of a transaction/.test(previousErrors[0].message),
);
assert.deepEqual(await payloads("{node-orders}-invoices"), ["order 17"]);

assert.equal(await pinpriq.call("QUEUE", "DROP", "{node-orders}-invoices"), 1);
assert.equal(await pinpriq.call("QUEUE", "DROP", "{node-orders}-parcels"), 1);
await pinpriq.quit();
console.log("transaction: ok");
