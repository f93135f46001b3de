// Tasks that are cancelled, and workers that hold them, against a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Cancelled, Client, isRefused, type Work, type WorkerEvent } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { started } from "./server.js";
import { events, latch, Seen } from "./waiting.js";

const { client, server } = await started();

/** Waits until the job is cancelled, and then throws why. */
async function heed(_: unknown, { signal }: Work): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

/** What a worker has told about a task, without renewals. */
function told<T>(seen: Seen<WorkerEvent<T>>, id: string): string[] {
  return seen.all
    .filter((event) => "job" in event && event.job?.id === id && event.type !== "renewed")
    .map(({ type }) => type);
}

test("cancel_ends_a_task_that_nobody_holds", async () => {
  const queue = client.queue<string>("free");
  const { id } = await queue.put("a", { delayMs: 60_000 });
  const { id: other } = await queue.put("b");
  assert.equal(await queue.cancel(id, { reason: "not needed", graceMs: 1_000 }), "X");
  assert.deepEqual(await client.transaction((all) => all.cancel(queue, other)), ["X"]);
  await assert.rejects(queue.cancel(id), (error) => isRefused(error, "NOTFOUND"));
  const { present, cancelled } = await queue.stats();
  assert.deepEqual([present, cancelled], [0, 2]);
});

test("cancel_of_a_taken_task_asks_its_holder", async () => {
  const queue = client.queue<string>("held");
  const put = queue.putAndAwait("a", { waitMs: Number.POSITIVE_INFINITY });
  const job = await queue.take({ waitMs: Number.POSITIVE_INFINITY });
  assert.ok(job);
  assert.equal(await queue.cancel(job.id, { reason: "the customer left" }), "T");
  assert.equal((await queue.get(job.id))?.meta?.cancelled, "the customer left");
  await assert.rejects(job.touch(), { kind: "CANCELLED", message: "CANCELLED the customer left" });
  assert.equal(await job.fail("stopped"), "X");
  assert.equal((await put).outcome, "cancelled");
});

test("worker_with_a_prefetch_is_told_at_once", async () => {
  const topic = client.topic<string>("news");
  const member = await topic.join("reader", { heartbeat: false });
  const seen = events<string>();
  const said = new Seen<string>();
  // Long before it would renew its leases.
  const options = { prefetch: 4, ttrMs: 3_600_000, trace: seen.add, log: said.add };
  await using worker = member.process(heed, options);
  await topic.publish("a");
  const [first] = await seen.until(({ type }) => type === "started");
  assert.ok(first?.type === "started");
  const { id } = first.job;
  assert.equal(await member.cancel(id, { reason: "the\u001b customer left" }), "T");
  const [cancelled] = await seen.until(({ type }) => type === "cancelled");
  assert.ok(cancelled?.type === "cancelled" && cancelled.error instanceof Cancelled);
  assert.equal(cancelled.error.message, "the\u001b customer left");
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
  assert.equal(seen.all.some(({ type }) => type === "trouble"), false);
  const line = `task ${id} of news: it was cancelled: the\\u{1b} customer left`;
  assert.deepEqual(said.all.filter((text) => text.startsWith("task")), [line]);
  const { present, failures, cancelled: count } = await member.stats();
  assert.deepEqual([present, failures, count], [0, 0, 1]);
  await member.leave();
});

test("worker_without_a_prefetch_hears_of_it_at_its_next_renewal", async () => {
  const queue = client.queue<string>("renewed", { ttrMs: 300 });
  const { id } = await queue.put("a");
  const seen = events<string>();
  const said = new Seen<string>();
  const reasons: unknown[] = [];
  const handler = async (_: unknown, { signal }: Work): Promise<void> => {
    if (!signal.aborted) await once(signal, "abort");
    reasons.push(signal.reason);
    throw new Error("broken off");
  };
  await using worker = queue.process(handler, { trace: seen.add, log: said.add });
  await seen.until(({ type }) => type === "started");
  assert.equal(await queue.cancel(id), "T");
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.ok(reasons[0] instanceof Cancelled && reasons[0].message === "without a reason");
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
  const lines = said.all.filter((line) => line.startsWith("task"));
  assert.deepEqual(lines, [`task ${id} of renewed: it was cancelled: without a reason`]);
  const { present, failures, cancelled } = await queue.stats();
  assert.deepEqual([present, failures, cancelled], [0, 0, 1]);
});

test("handler_that_returns_after_a_cancel_is_acknowledged", async () => {
  for (const [prefetch, ttrMs] of [[0, 300], [2, 3_600_000]] as const) {
    const queue = client.queue<string>(`finished-${prefetch}`, { ttrMs });
    const { id } = await queue.put("a");
    const seen = events<string>();
    const handler = async (_: unknown, { signal }: Work): Promise<void> => {
      if (!signal.aborted) await once(signal, "abort");
    };
    await using worker = queue.process(handler, { prefetch, trace: seen.add });
    await seen.until(({ type }) => type === "started");
    await queue.cancel(id);
    await seen.until(({ type }) => type === "acked");
    await worker.stop();
    assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "acked"]);
    const { acked, cancelled } = await queue.stats();
    assert.deepEqual([acked, cancelled], [1, 0]);
  }
});

test("job_that_is_cancelled_before_it_begins_is_not_run", async () => {
  // With an order jobs are taken ahead without being pushed.
  for (const [order, ttrMs] of [[undefined, 3_600_000], ["newest", 300]] as const) {
    const queue = client.queue<string>(`ahead-${order}`, { ttrMs });
    await queue.putMany(["a", "b", "c", "d"]);
    const seen = events<string>();
    const gate = latch();
    const ran: string[] = [];
    const handler = (job: { payload: string }): Promise<void> => {
      ran.push(job.payload);
      return gate.promise;
    };
    await using worker = queue.process(handler, { prefetch: 2, order, trace: seen.add });
    const taken = await seen.until(({ type }) => type === "taken", 3);
    const second = order ? "c" : "b";
    const waits = taken.find((event) => "job" in event && event.job?.payload === second);
    assert.ok(waits?.type === "taken");
    const { id, payload } = waits.job;
    await queue.cancel(id);
    // The fourth comes in its place.
    await seen.until(({ type }) => type === "taken", 4);
    gate.open();
    await seen.until(({ type }) => type === "acked", 3);
    await worker.stop();
    assert.deepEqual(told(seen, id), ["taken", "cancelled", "released"]);
    assert.equal(ran.includes(payload), false);
    const { present, failures, acked, cancelled } = await queue.stats();
    assert.deepEqual([present, failures, acked, cancelled], [0, 0, 3, 1]);
  }
});

test("places_of_cancelled_jobs_are_free_again_each_time", async () => {
  const queue = client.queue<number>("credit", { ttrMs: 3_600_000 });
  const seen = events<number>();
  const gate = latch();
  await queue.put(0);
  await using worker = queue.process(() => gate.promise, { prefetch: 3, trace: seen.add });
  await seen.until(({ type }) => type === "started");
  for (let round = 1; round <= 5; round++) {
    const put = await queue.putMany([1, 2, 3]);
    await seen.until(({ type }) => type === "taken", 1 + 3 * round);
    await Promise.all(put.map(({ id }) => queue.cancel(id)));
    await seen.until(({ type }) => type === "released", 3 * round);
  }
  // No more than the places that it has.
  await queue.putMany([1, 2, 3, 4]);
  await seen.until(({ type }) => type === "taken", 1 + 3 * 6);
  assert.equal((await queue.peek({ state: "R", count: 9 })).length, 1);
  gate.open();
  await seen.until(({ type }) => type === "acked", 5);
  await worker.stop();
  assert.equal((await queue.stats())["cancelled"], 15);
});

test("handler_that_renews_by_itself_may_hear_of_it_first", async () => {
  const queue = client.queue<string>("touched", { ttrMs: 3_600_000 });
  const { id } = await queue.put("a");
  const seen = events<string>();
  const began = latch();
  const gate = latch();
  await using worker = queue.process(
    async (job) => {
      began.open();
      await gate.promise;
      await job.touch();
    },
    { trace: seen.add },
  );
  await began.promise;
  await queue.cancel(id);
  gate.open();
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
});

test("handler_may_settle_a_cancelled_job_itself", async () => {
  const queue = client.queue<string>("own-end", { ttrMs: 3_600_000 });
  const { id } = await queue.put("a");
  const seen = events<string>();
  await using worker = queue.process(
    async (job, work) => {
      await heed(job, work).catch(() => job.bury("stopped"));
    },
    { prefetch: 1, trace: seen.add },
  );
  await seen.until(({ type }) => type === "started");
  await queue.cancel(id);
  await seen.until(({ type }) => type === "settled");
  await worker.stop();
  assert.equal(await queue.get(id), null);
});

test("handler_that_stops_after_the_grace_has_not_failed", async () => {
  const queue = client.queue<string>("too-slow", { ttrMs: 3_600_000 });
  const { id } = await queue.put("a");
  const seen = events<string>();
  await using worker = queue.process(
    async (job, work) => {
      await heed(job, work).catch(() => undefined);
      await queue.awaitEnd(id, { waitMs: Number.POSITIVE_INFINITY }).catch(() => undefined);
      throw new Error("stopped at last");
    },
    { prefetch: 1, trace: seen.add },
  );
  await seen.until(({ type }) => type === "started");
  assert.equal(await queue.cancel(id, { graceMs: 50 }), "T");
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
});

test("stop_gives_back_a_cancelled_job_whose_handler_goes_on", async () => {
  const queue = client.queue<string>("deaf", { ttrMs: 3_600_000 });
  const { id } = await queue.put("a");
  const seen = events<string>();
  const handler = (): Promise<void> => new Promise(() => undefined);
  const worker = queue.process(handler, { prefetch: 1, trace: seen.add });
  await seen.until(({ type }) => type === "started");
  await queue.cancel(id);
  await seen.until(({ type }) => type === "cancelled");
  await worker.stop({ graceMs: 10 });
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
  assert.equal(await queue.get(id), null);
});

/** A client of a server that does not know of `CLIENT CANCELS`, and the proxy that makes it so. */
async function ofOlderServer(): Promise<{ older: Client; proxy: Proxy }> {
  const proxy = await Proxy.start(server.port);
  proxy.onSent = (bytes) => {
    const at = bytes.indexOf("CANCELS");
    // No server knows this word.
    if (at >= 0) bytes.write("UNHEARD", at);
  };
  return { older: await Client.connect(proxy.url), proxy };
}

test("server_that_cannot_tell_tells_at_the_next_renewal", async () => {
  const { older, proxy } = await ofOlderServer();
  const queue = older.queue<string>("older", { ttrMs: 300 });
  const seen = events<string>();
  await using worker = queue.process(heed, { prefetch: 1, trace: seen.add });
  const { id } = await queue.put("a");
  await seen.until(({ type }) => type === "renewed");
  await queue.cancel(id);
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
  assert.equal(seen.all.some(({ type }) => type === "trouble"), false);
  await older.close();
  await proxy.stop();
});

test("server_that_cannot_tell_tells_at_the_start", async () => {
  const { older, proxy } = await ofOlderServer();
  const queue = older.queue<string>("older-start", { ttrMs: 3_600_000 });
  const seen = events<string>();
  const began = latch();
  const handler = (job: { payload: string }, work: Work): Promise<void> | void => {
    if (job.payload === "first") return;
    began.open();
    return heed(job, work);
  };
  await using worker = queue.process(handler, { prefetch: 1, trace: seen.add });
  const watch = client.queue<string>("older-start");
  await watch.put("first");
  // There is credit from here on.
  await seen.until(({ type }) => type === "acked");
  proxy.hold();
  const { id } = await watch.put("second");
  await began.promise;
  await watch.cancel(id);
  proxy.letGo();
  await seen.until(({ type }) => type === "released");
  await worker.stop();
  assert.deepEqual(told(seen, id), ["taken", "started", "cancelled", "released"]);
  assert.equal(seen.all.some(({ type }) => type === "trouble"), false);
  await older.close();
  await proxy.stop();
});
