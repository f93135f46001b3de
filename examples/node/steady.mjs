// A worker that outlives restarts of the server: it connects again, and waits longer each time.
import Redis from "ioredis";

const queue = process.argv[2] ?? "steady";

const pinpriq = new Redis(process.env.PINPRIQ_URL ?? "redis://127.0.0.1:7251", {
  // A command waits for the connection however long that takes, instead of failing. One that was
  // under way when the connection broke is sent again: harmless for TAKE with a TTR, and a DONE or
  // ACK that had arrived already is refused as STALE.
  maxRetriesPerRequest: null,
  retryStrategy: (tries) => Math.min(100 * 2 ** (tries - 1), 5_000),
});
// ioredis tells about each lost connection here.
pinpriq.on("error", (error) => console.log("no server:", error.message));

async function acknowledge(receipt) {
  try {
    await pinpriq.call("ACK", queue, receipt);
  } catch (error) {
    // If the lease has ended, the task comes again.
    console.log("not acknowledged:", error.message);
  }
}

let goesOn = true;
// What the next take acknowledges.
let done = [];
while (goesOn) {
  let taken = [];
  try {
    taken = await pinpriq.call("TAKE", queue, "WAIT", 10_000, "TTR", 30_000, ...done);
  } catch (error) {
    if (done.length === 0) throw error;
    // Nothing was taken or acknowledged, so acknowledge by itself.
    await acknowledge(done.at(-1));
  }
  done = [];
  for (const [, , receipt, payload] of taken) {
    console.log("done:", payload);
    goesOn = payload !== "stop";
    if (goesOn) done = ["DONE", queue, receipt];
    else await acknowledge(receipt);
  }
}
await pinpriq.quit();
console.log("steady: ok");
