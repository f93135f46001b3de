// Workers, against a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Client, isRefused, stopOnSignals } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { started } from "./server.js";
import { events, latch, Seen } from "./waiting.js";

const { client, server } = await started();

test("finished_jobs_are_acknowledged_by_the_next_take", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  const queue = other.queue<number>("numbers");
  await queue.putMany(Array.from({ length: 200 }, (_, number) => number));
  const seen = events<number>();
  const done: number[] = [];
  const sent = { TAKE: 0, ACK: 0 };
  proxy.onSent = (bytes) => {
    for (const [word] of bytes.toString().matchAll(/(?<=\r\n)(TAKE|ACK)(?=\r\n)/g)) {
      sent[word as "TAKE" | "ACK"]++;
    }
  };
  const worker = queue.process((job) => void done.push(job.payload), { trace: seen.add });
  await seen.until(({ type }) => type === "acked", 200);
  await worker.stop();
  assert.deepEqual(done, Array.from({ length: 200 }, (_, number) => number));
  assert.equal((await queue.stats())["present"], 0);
  // One for each job, the first one, and perhaps one that waits at the end.
  assert.equal(sent.ACK, 0);
  assert.ok(sent.TAKE === 201 || sent.TAKE === 202, `${sent.TAKE} takes`);
  await other.close();
  await proxy.stop();
});

test("handler_may_settle_its_job_itself", async () => {
  const queue = client.queue<string>("settling");
  await queue.put("a");
  const seen = events<string>();
  await using worker = queue.process((job) => job.bury("no use"), { trace: seen.add });
  await seen.until(({ type }) => type === "settled");
  await worker.stop();
  assert.equal((await queue.peek({ state: "B" })).length, 1);
});

test("jobs_run_at_once_up_to_the_concurrency", async () => {
  const queue = client.queue<number>("parallel");
  await queue.putMany([1, 2, 3, 4, 5, 6]);
  const seen = events<number>();
  const gate = latch();
  let most = 0;
  let now = 0;
  const worker = queue.process(
    async () => {
      most = Math.max(most, ++now);
      await gate.promise;
      now--;
    },
    { concurrency: 3, prefetch: 2, trace: seen.add },
  );
  await seen.until(({ type }) => type === "taken", 5);
  assert.equal((await queue.peek({ state: "T", count: 9 })).length, 5);
  gate.open();
  await seen.until(({ type }) => type === "acked", 6);
  await worker.stop();
  assert.equal(most, 3);
});

test("lease_is_renewed_while_the_job_is_worked_on", async () => {
  const queue = client.queue<string>("slow", { ttrMs: 150 });
  await queue.put("slow");
  const seen = events<string>();
  const worker = queue.process(
    // Longer than the lease would last by itself.
    async () => void (await seen.until(({ type }) => type === "renewed", 6)),
    { trace: seen.add },
  );
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  assert.equal((await queue.stats())["failures"], 0);
});

test("lost_lease_aborts_the_signal_of_the_job", async () => {
  const queue = client.queue<string>("snatched", { ttrMs: 150 });
  const { id } = await queue.put("mine");
  const seen = events<string>();
  const worker = queue.process(
    async (_, { signal }) => {
      await queue.kill(id);
      await once(signal, "abort");
    },
    { trace: seen.add },
  );
  const [lost] = await seen.until(({ type }) => type === "leaseLost");
  assert.ok(lost?.type === "leaseLost" && isRefused(lost.error, "STALE"));
  await worker.stop();
  assert.equal(seen.all.some(({ type }) => type === "acked"), false);
});

test("job_whose_lease_is_lost_does_not_hold_up_the_stop", async () => {
  const queue = client.queue<string>("hanging", { ttrMs: 150 });
  const { id } = await queue.put("mine");
  const seen = events<string>();
  const worker = queue.process(
    async () => {
      await queue.kill(id);
      await new Promise(() => undefined);
    },
    { trace: seen.add },
  );
  await seen.until(({ type }) => type === "leaseLost");
  await worker.stop({ graceMs: 10 });
});

test("stop_waits_for_jobs_and_gives_back_what_was_taken_ahead", async () => {
  const queue = client.queue<number>("stopping");
  await queue.putMany([1, 2, 3]);
  const seen = events<number>();
  const gate = latch();
  const worker = queue.process(() => gate.promise, { prefetch: 2, trace: seen.add });
  await seen.until(({ type }) => type === "taken", 3);
  const stopped = worker.stop();
  await seen.until(({ type }) => type === "released", 2);
  gate.open();
  await stopped;
  assert.deepEqual((await queue.peek({ count: 9 })).map(({ payload }) => payload), [2, 3]);
  assert.equal(seen.all.at(-1)?.type, "stopped");
  assert.equal((await queue.stats())["failures"], 0);
});

test("what_was_not_started_is_called_back_for_a_more_urgent_job", async () => {
  const queue = client.queue<string>("recalling");
  const [, , later] = await queue.putMany(["first", "late", "later"], { priority: 5 });
  const seen = events<string>();
  const gate = latch();
  const order: string[] = [];
  const handler = (job: { payload: string }): Promise<void> => {
    order.push(job.payload);
    return gate.promise;
  };
  const worker = queue.process(handler, { prefetch: 2, trace: seen.add });
  await seen.until(({ type }) => type === "taken", 3);
  await queue.put("urgent", { priority: 1 });
  await seen.until(({ type }) => type === "recalled");
  const back = await queue.get(later?.id ?? "");
  assert.deepEqual([back?.meta?.state, back?.meta?.attempts, back?.meta?.failures], ["R", 0, 0]);
  await seen.until(({ type }) => type === "taken", 4);
  gate.open();
  await seen.until(({ type }) => type === "acked", 4);
  await worker.stop();
  assert.deepEqual(order, ["first", "urgent", "late", "later"]);
  assert.equal((await queue.stats())["failures"], 0);
});

test("job_whose_start_comes_too_late_is_aborted", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  const queue = other.queue<string>("too-late");
  const seen = events<string>();
  const began = latch();
  let isFirst = true;
  const worker = queue.process(
    async (job, { signal }) => {
      if (job.payload !== "late" || !isFirst) return;
      isFirst = false;
      began.open();
      await once(signal, "abort");
    },
    { prefetch: 1, trace: seen.add },
  );
  const watch = client.queue<string>("too-late");
  while ((await watch.stats())["subscribers"] !== 1);
  proxy.hold();
  await watch.put("late", { priority: 5 });
  await began.promise;
  await watch.put("urgent", { priority: 1 });
  await watch.put("more urgent", { priority: 0 });
  proxy.letGo();
  const [lost] = await seen.until(({ type }) => type === "leaseLost");
  assert.ok(lost?.type === "leaseLost" && isRefused(lost.error, "STALE"));
  await seen.until(({ type }) => type === "acked", 3);
  await worker.stop();
  assert.equal((await watch.stats())["failures"], 0);
  assert.equal((await watch.stats())["present"], 0);
  await other.close();
  await proxy.stop();
});

/** Counts the commands that clients send through a proxy, and the words of each. */
function commandsOf(proxy: Proxy): Map<string, number[]> {
  const sent = new Map<string, number[]>();
  proxy.onSent = (bytes) => {
    const pattern = /(?<=^|\r\n)\*(\d+)\r\n\$\d+\r\n([A-Z]+)\r\n/g;
    for (const [, words, word = ""] of bytes.toString().matchAll(pattern)) {
      sent.set(word, [...(sent.get(word) ?? []), Number(words)]);
    }
  };
  return sent;
}

test("jobs_that_begin_at_once_are_started_at_once", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  const queue = other.queue<number>("together");
  await client.queue<number>("together").putMany([1, 2, 3, 4, 5, 6]);
  const sent = commandsOf(proxy);
  const seen = events<number>();
  const gate = latch();
  const worker = queue.process(() => gate.promise, { concurrency: 4, prefetch: 2, trace: seen.add });
  await seen.until(({ type }) => type === "taken", 6);
  // The start leaves within a moment, and all of it before what the worker is told next.
  while (!sent.has("START")) await other.queue("none").peek();
  // Six deliveries leave the server as one piece, or nearly so.
  const receipts = (sent.get("START") ?? []).map((words) => words - 2);
  assert.equal(receipts.reduce((sum, count) => sum + count, 0), 4);
  assert.ok(receipts.length <= 2, `${receipts}`);
  gate.open();
  await seen.until(({ type }) => type === "acked", 6);
  await worker.stop();
  assert.equal(seen.all.some(({ type }) => type === "leaseLost" || type === "trouble"), false);
  await other.close();
  await proxy.stop();
});

test("short_jobs_need_no_start_while_others_wait", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  const queue = other.queue<number>("short");
  const count = 400;
  await client.queue<number>("short").putMany(Array.from({ length: count }, (_, at) => at));
  const sent = commandsOf(proxy);
  const seen = events<number>();
  const later = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const worker = queue.process(later, { prefetch: 100, trace: seen.add });
  await seen.until(({ type }) => type === "acked", count);
  await worker.stop();
  // What is acknowledged at once is bounded by the credit that is granted at once: half of the
  // prefetch. Only what takes longer is started, and what nothing waits behind.
  const starts = sent.get("START")?.length ?? 0;
  const acks = sent.get("ACK")?.length ?? 0;
  assert.ok(starts < count / 2 && acks < count / 2, `${starts} starts, ${acks} acks`);
  await other.close();
  await proxy.stop();
});

test("job_that_fails_at_once_behind_others_has_not_lost_its_lease", async () => {
  const queue = client.queue<number>("failing-ahead");
  await queue.set({ attempts: 1 });
  await queue.putMany([1, 2, 3, 4]);
  const seen = events<number>();
  const fails = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("no");
  };
  const worker = queue.process(fails, { prefetch: 50, trace: seen.add });
  await seen.until(({ type }) => type === "failed", 4);
  await worker.stop();
  assert.equal(seen.all.some(({ type }) => type === "leaseLost"), false);
  assert.equal((await queue.peek({ state: "B", count: 9 })).length, 4);
});

test("one_job_of_a_fair_queue_is_taken_ahead", async () => {
  const queue = client.queue<number>("fair");
  await queue.set({ ranking: "fair" });
  await queue.putMany([1, 2, 3, 4, 5, 6]);
  const seen = events<number>();
  const gate = latch();
  const worker = queue.process(() => gate.promise, { prefetch: 9, trace: seen.add });
  await seen.until(({ type }) => type === "taken", 2);
  assert.equal((await queue.peek({ state: "T", count: 9 })).length, 2);
  gate.open();
  await seen.until(({ type }) => type === "acked", 6);
  await worker.stop();
});

test("job_beyond_the_grace_time_is_told_and_released", async () => {
  const queue = client.queue<string>("late");
  await queue.put("endless");
  const seen = events<string>();
  const told = latch<unknown>();
  const stop = new AbortController();
  const worker = queue.process(
    async (_, { signal }) => {
      await once(signal, "abort");
      told.open(signal.reason);
      await new Promise(() => undefined);
    },
    { trace: seen.add, graceMs: 10, signal: stop.signal },
  );
  await seen.until(({ type }) => type === "started");
  stop.abort();
  await worker.finished;
  assert.match(String(await told.promise), /has stopped/);
  const [task] = await queue.peek();
  assert.deepEqual([task?.meta?.state, task?.meta?.failures], ["R", 0]);
});

test("worker_that_waits_stops_at_once_and_holds_nothing", async () => {
  const queue = client.queue<string>("idle");
  const seen = events<string>();
  const worker = queue.process(() => undefined, { trace: seen.add });
  await queue.put("one");
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  assert.equal((await queue.stats())["takers"], 0);
});

test("worker_goes_on_after_a_restart_of_the_server", async () => {
  const other = await Client.connect(server.url, { reconnectPauseMaxMs: 100 });
  const queue = other.queue<string>("steady");
  const seen = events<string>();
  const worker = queue.process(() => undefined, { trace: seen.add });
  await queue.put("before");
  await seen.until(({ type }) => type === "acked");
  await server.halt("SIGKILL");
  await server.run();
  await queue.put("after");
  await seen.until(({ type }) => type === "acked", 2);
  await worker.stop();
  await other.close();
});

test("lost_reply_to_take_with_done_acknowledges_once", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url, { reconnectPauseMaxMs: 50 });
  const queue = other.queue<number>("done", { ttrMs: 300 });
  await client.queue<number>("done").putMany([1, 2, 3]);
  const seen = events<number>();
  const runs: number[] = [];
  void proxy.loseReplies("DONE");
  const worker = queue.process((job) => void runs.push(job.payload), { trace: seen.add });
  // The task whose take was lost comes again, after its TTR at the latest.
  await seen.until((event) => event.type === "acked" && event.job.payload === 3);
  await seen.until((event) => event.type === "acked" && event.job.payload === 2);
  await worker.stop();
  assert.deepEqual(runs.sort(), [1, 2, 3]);
  assert.equal((await queue.stats())["acked"], 3);
  await other.close();
  await proxy.stop();
});

test("every_task_is_done_although_connections_are_cut", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url, { reconnectPauseMaxMs: 50 });
  await client.queue<number>("cuts").putMany(Array.from({ length: 400 }, (_, number) => number));
  const done = new Seen<number>();
  const queue = other.queue<number>("cuts", { ttrMs: 500 });
  const worker = queue.process((job) => done.add(job.payload), { concurrency: 4, prefetch: 4 });
  for (let cuts = 1; cuts <= 8; cuts++) {
    await done.until(() => true, 40 * cuts);
    proxy.cut();
  }
  const watch = client.queue<number>("cuts");
  while ((await watch.stats())["present"] !== 0);
  await worker.stop();
  assert.equal(new Set(done.all).size, 400);
  await other.close();
  await proxy.stop();
});

test("around_sees_each_job_and_its_error", async () => {
  const queue = client.queue<string>("traced");
  await queue.putMany(["fine", "bad"]);
  const spans: string[] = [];
  const seen = events<string>();
  const worker = queue.process(
    (job) => {
      if (job.payload === "bad") throw new Error("no");
    },
    {
      trace: seen.add,
      failDelayMs: () => 60_000,
      around: async (job, run) => {
        try {
          await run();
          spans.push(`${job.payload} ended`);
        } catch (error) {
          spans.push(`${job.payload} threw`);
          throw error;
        }
      },
    },
  );
  await seen.until(({ type }) => type === "failed");
  await worker.stop();
  assert.deepEqual(spans, ["fine ended", "bad threw"]);
});

test("worker_that_cannot_go_on_says_why", async () => {
  // The name is too long.
  const worker = client.queue("q".repeat(70_000)).process(() => undefined);
  await assert.rejects(worker.finished, (error) => isRefused(error, "BADARG"));
});

test("signal_of_the_process_stops_workers", async () => {
  const queue = client.queue<string>("signals");
  const workers = [queue.process(() => undefined), queue.process(() => undefined)];
  const stopped = stopOnSignals(workers, { signals: ["SIGUSR2"] });
  process.kill(process.pid, "SIGUSR2");
  await stopped;
  await Promise.all(workers.map(({ finished }) => finished));
  assert.equal(process.listenerCount("SIGUSR2"), 0);
  const until = AbortSignal.abort();
  await stopOnSignals(queue.process(() => undefined), { until });
});
