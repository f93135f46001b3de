// A client in a thread of its own: puts, takes and acknowledges a task again and again, and notes
// how long each take has lasted. Asked for at least so many of these times, it tells them in ms
// and begins anew.

import { parentPort, workerData } from "node:worker_threads";
import { Resp } from "./resp.mjs";

const { port, queue } = workerData;
const resp = new Resp(port);
const times = [];
let wanted = Infinity;
parentPort.on("message", (least) => {
  wanted = least;
});

for (;;) {
  await resp.ask("PUT", queue, "x");
  const started = performance.now();
  const [[, , receipt]] = await resp.ask("TAKE", queue);
  times.push(performance.now() - started);
  await resp.ask("ACK", queue, receipt);
  if (times.length >= wanted) {
    parentPort.postMessage(times.splice(0));
    wanted = Infinity;
  }
}
