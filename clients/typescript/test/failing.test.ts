// Workers whose handlers, hooks and payloads misbehave: none of it ends the process, stops a queue
// or goes unsaid.
import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "../src/index.js";
import { started } from "./server.js";
import { events, Seen } from "./waiting.js";

const { client } = await started();

test("failing_task_waits_longer_each_time_and_is_buried_at_last", async () => {
  const queue = client.queue<string>("spinning");
  await queue.put("bad");
  const seen = events<string>();
  const said = new Seen<string>();
  const worker = queue.process(
    () => {
      throw new Error("too\u001b hard");
    },
    { trace: seen.add, log: said.add },
  );
  const [failed] = await seen.until(({ type }) => type === "failed");
  assert.ok(failed?.type === "failed" && failed.state === "W");
  const [task] = await queue.peek({ state: "W" });
  const waitsMs = (task?.meta?.readyAt ?? 0) - Date.now();
  assert.ok(waitsMs > 0 && waitsMs <= 1_000, `${waitsMs} ms`);
  assert.equal(said.all[0], "the worker of spinning starts, 1 job at a time");
  const line = "of spinning: too\\u{1b} hard, attempt 1: comes back in 1000 ms";
  assert.deepEqual(said.all.slice(1), [`task ${failed.job.id} ${line}`]);
  await worker.stop();
  const ends = ["the worker of spinning stops", "the worker of spinning has stopped"];
  assert.deepEqual(said.all.slice(2), ends);
});

test("task_that_fails_five_times_is_buried_where_the_queue_says_nothing", async () => {
  const queue = client.queue<string>("stubborn");
  await queue.putMany(["bad", "good"]);
  const seen = events<string>();
  const said = new Seen<string>();
  await using worker = queue.process(
    (job) => {
      if (job.payload === "bad") throw new Error("no");
    },
    { trace: seen.add, log: said.add, failDelayMs: () => 1 },
  );
  await seen.until(({ type }) => type === "acked");
  const [last] = await seen.until((event) => event.type === "failed" && event.state === "B");
  assert.ok(last?.type === "failed");
  assert.equal(said.all.at(-1), `task ${last.job.id} of stubborn: no, attempt 5: buried`);
  assert.equal(seen.all.filter(({ type }) => type === "failed").length, 5);
  const [buried] = await queue.peek({ state: "B" });
  assert.deepEqual([buried?.meta?.reason, buried?.meta?.failures], ["no", 4]);
  await worker.stop();
});

test("settings_of_the_queue_say_how_often_and_how_long", async () => {
  const queue = client.queue<string>("settled");
  await queue.set({ attempts: 7, backoffMs: 1, backoffMaxMs: 1, deadLetter: "{settled}-dead" });
  await queue.put("bad");
  const said = new Seen<string>();
  const seen = events<string>();
  await using worker = queue.process(() => Promise.reject(new Error("no")), {
    log: said.add,
    trace: seen.add,
  });
  await seen.until((event) => event.type === "failed" && event.state === "X");
  assert.equal(seen.all.filter(({ type }) => type === "failed").length, 7);
  assert.match(said.all[1] ?? "", /attempt 1: comes back after the back-off of its queue$/);
  assert.match(said.all.at(-1) ?? "", /attempt 7: moved to \{settled\}-dead, as a dead letter$/);
  await worker.stop();
});

test("task_that_ended_its_worker_too_often_is_not_run_again", async () => {
  const queue = client.queue<string>("deadly");
  const { id } = await queue.put("deadly");
  for (let time = 0; time < 5; time++) await (await queue.take())?.fail("the process ended");
  const seen = events<string>();
  await using worker = queue.process(() => assert.fail("it was run"), {
    trace: seen.add,
    log: null,
  });
  await seen.until((event) => event.type === "failed" && event.state === "B");
  const reason = (await queue.get(id))?.meta?.reason;
  const expected = "failed 5 times, while 5 are allowed: not run again; the last time: ";
  assert.equal(reason, `${expected}the process ended`);
  await worker.stop();
});

test("anything_can_be_thrown", async () => {
  class Unspeakable extends Error {
    override get message(): string {
      throw new Error("not even this");
    }
  }
  const wordless = Object.assign(new Error(), { message: { toString: null } });
  const things: unknown[] = [
    Object.create(null), new Unspeakable(), wordless, Symbol("odd"), undefined, null, 7n,
    new Proxy({}, { getPrototypeOf: () => { throw new Error("no"); } }),
  ];
  const queue = client.queue<number>("thrown");
  await queue.putMany(things.map((_, place) => place));
  const seen = events<number>();
  await using worker = queue.process((job) => { throw things[job.payload]; }, {
    trace: seen.add,
    log: null,
    failDelayMs: () => 60_000,
  });
  await seen.until(({ type }) => type === "failed", things.length);
  await worker.stop();
  const tasks = await queue.peek({ state: "W", count: 99 });
  assert.equal(tasks.length, things.length);
  const reasons = tasks.map(({ meta }) => meta?.reason);
  const wordlessOnes = reasons.filter((reason) => reason?.startsWith("something was thrown"));
  assert.equal(wordlessOnes.length, 4);
  assert.ok(reasons.includes("Symbol(odd)") && reasons.includes("undefined"));
});

test("hooks_that_throw_are_named_and_end_nothing", async () => {
  const queue = client.queue<string>("hooks");
  await queue.putMany(["bad", "good"]);
  const said = new Seen<string>();
  const bad = (): never => {
    throw new Error("a bad hook");
  };
  const worker = queue.process(
    (job) => {
      if (job.payload === "bad") throw new Error("no");
    },
    { log: said.add, failDelayMs: bad, trace: bad },
  );
  await said.until((line) => line.includes("comes back in 1000 ms"));
  await said.until((line) => line.endsWith("of hooks: a bad hook"));
  await said.until((line) => line.startsWith("a hook of the program threw: "));
  while ((await queue.stats())["acked"] !== 1);
  await worker.stop();
  for (const delayMs of [Number.NaN, -1, "soon"]) {
    const nonsense = events<string>();
    const options = { trace: nonsense.add, log: null, failDelayMs: () => delayMs as number };
    await queue.put("again");
    await using other = queue.process(() => Promise.reject(new Error("no")), options);
    await nonsense.until((event) => event.type === "failed" && event.state === "W");
    await other.stop();
  }
});

test("payload_that_cannot_be_read_is_buried_at_once", async () => {
  const raw = client.queue("foreign", { codec: text });
  await raw.putMany(["no json", "", "\u0000", "[1,"]);
  const seen = events<unknown>();
  await using worker = client.queue<unknown>("foreign").process((job) => void job.payload, {
    trace: seen.add,
    log: null,
  });
  await seen.until((event) => event.type === "failed" && event.state === "B", 4);
  await worker.stop();
  const [buried] = await raw.peek({ state: "B" });
  assert.equal(buried?.meta?.reason, "the payload is not JSON");
});

test("job_that_was_not_run_is_not_acknowledged", async () => {
  const queue = client.queue<string>("unrun");
  const generator = function* (): Generator<void> {
    yield;
  };
  const late = async function* (): AsyncGenerator<void> {
    yield;
  };
  for (const handler of [generator, late]) {
    assert.throws(() => queue.process(handler as never), /cannot be a generator/);
  }
  await queue.putMany(["a", "b"]);
  const seen = events<string>();
  const options = { trace: seen.add, log: null };
  const returns = queue.process((() => generator()) as never, options);
  const skips = queue.process(() => undefined, { ...options, around: () => Promise.resolve() });
  await seen.until(({ type }) => type === "failed", 2);
  await Promise.all([returns.stop(), skips.stop()]);
  assert.equal((await queue.stats())["acked"], 0);
});

test("jobs_of_workers_know_all_that_the_server_knows_and_leases_have_a_name", async () => {
  const queue = client.queue<string>("known");
  await queue.put("a", { key: "k" });
  const seen = events<string>();
  const names: (string | null)[] = [];
  const handler = async (): Promise<void> => {
    for await (const lease of queue.leases()) names.push(lease.name);
  };
  await using worker = queue.process(handler, { trace: seen.add, log: null });
  const [acked] = await seen.until(({ type }) => type === "acked");
  assert.ok(acked?.type === "acked");
  assert.deepEqual([acked.job.meta?.key, acked.job.meta?.attempts], ["k", 1]);
  assert.equal(names.length, 1);
  assert.match(names[0] ?? "", new RegExp(`-${process.pid}$`));
  await worker.stop();
});

test("numbers_that_json_does_not_have_are_refused", async () => {
  const queue = client.queue<unknown>("numbers");
  for (const payload of [Number.NaN, [Number.POSITIVE_INFINITY], { deep: { a: -Infinity } }]) {
    await assert.rejects(queue.put(payload), { name: "BadPayload" });
  }
  await queue.put([null, "null", { a: null }]);
  assert.deepEqual((await queue.pop())?.payload, [null, "null", { a: null }]);
  await assert.rejects(queue.take({ waitMs: Number.NaN }), /waitMs/);
  assert.throws(() => queue.process(() => undefined, { ttrMs: Number.NaN }), /ttrMs/);
  assert.throws(() => queue.process(() => undefined, { concurrency: Number.NaN }), /concurrency/);
});
