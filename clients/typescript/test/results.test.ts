// What has come of the work: said by hand and by workers, for who waits and for who looks later,
// against a real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BadPayload, bytes, Client, isRefused, json, text, type Handler, type Job, type WorkerEvent,
} from "../src/index.js";
import { Proxy } from "./proxy.js";
import { Server, started } from "./server.js";
import { events, latch, type Seen } from "./waiting.js";

const { client, server } = await started();
const FOREVER = { waitMs: Number.POSITIVE_INFINITY };
const HOUR_MS = 3_600_000;

interface Sum {
  readonly sum: number;
}

/** What a worker has told, each as a text. */
function told<T>(seen: Seen<WorkerEvent<T>>): string[] {
  return seen.all.map(({ type }) => type).filter((type) => type !== "renewed");
}

/** How often it has told that. */
function count<T>(seen: Seen<WorkerEvent<T>>, type: string): number {
  return told(seen).filter((each) => each === type).length;
}

test("who_waits_gets_the_result", async () => {
  const queue = client.queue<number[], Sum>("awaited");
  const put = queue.putAndAwait([1, 2], FOREVER);
  const job = await queue.take(FOREVER);
  await job?.ack({ result: { sum: 3 } });
  const ended = await put;
  assert.deepEqual([ended.outcome, ended.isNew, ended.id], ["acked", true, job?.id]);
  assert.deepEqual([ended.result?.sum, ended.resultBytes?.toString()], [3, '{"sum":3}']);
  const { id } = await queue.put([4]);
  const end = queue.awaitEnd(id, FOREVER);
  await (await queue.take(FOREVER))?.ack({ result: { sum: 4 } });
  const { outcome, state, result } = await end;
  assert.deepEqual([outcome, state, result], ["acked", "X", { sum: 4 }]);
  // Without a unique key the reply has another form.
  const plain = queue.putAndAwait([5], { ...FOREVER, unique: false });
  await (await queue.take(FOREVER))?.ack({ result: { sum: 5 } });
  assert.deepEqual((await plain).result, { sum: 5 });
});

test("no_result_is_undefined_and_null_is_one", async () => {
  const queue = client.queue<string>("none");
  for (const [given, bytes] of [[undefined, undefined], [null, "null"], ["", '""']] as const) {
    const put = queue.putAndAwait("a", FOREVER);
    await (await queue.take(FOREVER))?.ack({ result: given });
    const { outcome, result, resultBytes } = await put;
    assert.deepEqual([outcome, result, resultBytes?.toString()], ["acked", given, bytes]);
  }
  const late = await queue.putAndAwait("b", { waitMs: 1 });
  assert.deepEqual([late.outcome, late.result], ["timeout", undefined]);
  const end = await queue.awaitEnd(late.id);
  assert.deepEqual([end.outcome, end.state, end.result], ["timeout", "R", undefined]);
});

test("kept_task_has_its_result_until_it_comes_back", async () => {
  const queue = client.queue<string, Sum>("kept");
  await queue.set({ afterAck: "keep" });
  const { id } = await queue.put("a");
  assert.equal((await queue.get(id))?.result, undefined);
  const job = await queue.take();
  await job?.ack({ result: { sum: 1 }, payload: "b" });
  const task = await queue.get(id);
  assert.deepEqual([task?.payload, task?.result], ["b", { sum: 1 }]);
  assert.deepEqual([task?.resultBytes?.toString(), task?.meta?.result], ['{"sum":1}', '{"sum":1}']);
  assert.deepEqual((await queue.peek({ state: "D" }))[0]?.result, { sum: 1 });
  for await (const each of queue.scan()) assert.deepEqual(each.result, { sum: 1 });
  assert.deepEqual((await queue.awaitEnd(id)).result, { sum: 1 });
  await queue.restart(id);
  const again = await queue.get(id);
  assert.deepEqual([again?.payload, again?.result, again?.meta?.result], ["b", undefined, null]);
});

test("acknowledgement_keeps_one_task_and_says_its_cost", async () => {
  const queue = client.queue<string>("once");
  await queue.set({ rate: { count: 3, perMs: HOUR_MS } });
  const { id } = await queue.put("a");
  await (await queue.take())?.ack({ result: 7, keepMs: HOUR_MS, cost: 3 });
  const task = await queue.get(id);
  assert.deepEqual([task?.meta?.state, task?.result], ["Z", 7]);
  // The acknowledgement has used up the rate.
  await queue.put("b");
  assert.equal(await queue.take(), null);
});

test("results_have_a_codec_of_their_own", async () => {
  const images = client.queue("images", { codec: bytes, resultCodec: json<{ width: number }>() });
  const put = images.putAndAwait(Uint8Array.of(0xff), FOREVER);
  await (await images.take(FOREVER))?.ack({ result: { width: 640 } });
  assert.equal((await put).result?.width, 640);
  // Without one they are as payloads are.
  const raw = client.queue("raw", { codec: bytes });
  const other = raw.putAndAwait(Uint8Array.of(1), FOREVER);
  await (await raw.take(FOREVER))?.ack({ result: Uint8Array.of(0xff, 0, 0x0d, 0x0a) });
  assert.deepEqual((await other).result, Buffer.from([0xff, 0, 0x0d, 0x0a]));
  const words = client.queue<string, string>("words", { codec: text });
  const third = words.putAndAwait("a", FOREVER);
  await (await words.take(FOREVER))?.ack({ result: "grüße" });
  assert.equal((await third).result, "grüße");
});

test("result_that_cannot_be_read_is_told_when_it_is_read", async () => {
  const words = client.queue<string>("mixed", { resultCodec: text });
  const put = client.queue<string>("mixed").putAndAwait("a", FOREVER);
  await (await words.take(FOREVER))?.ack({ result: "{" });
  const ended = await put;
  assert.deepEqual([ended.outcome, ended.resultBytes?.toString()], ["acked", "{"]);
  assert.throws(() => ended.result, (error) => {
    assert.ok(error instanceof BadPayload && error.cause instanceof BadPayload);
    return error.message.startsWith("the result cannot be read: ");
  });
});

test("types_of_results_are_checked", () => {
  const queue = client.queue<string, Sum>("typed");
  const handlers: Handler<string, Sum>[] = [
    () => ({ sum: 1 }),
    async () => ({ sum: 1 }),
    () => undefined,
    async () => undefined,
    (job) => job.ack({ result: { sum: 1 } }),
    // @ts-expect-error A text is no sum.
    () => "1",
    // @ts-expect-error Neither is it as a promise.
    async () => "1",
    // @ts-expect-error Nor with an acknowledgement.
    (job) => job.ack({ result: "1" }),
  ];
  // Where nothing is said, a result may be anything.
  const any: Handler<string>[] = [() => "1", async () => 1, () => undefined, async () => null];
  const wider: Handler<string> = () => ({ sum: 1 });
  const typed: Job<string, Sum>[] = [];
  const jobs: Job<string>[] = typed;
  assert.deepEqual([handlers.length, any.length, jobs.length], [8, 4, 0]);
  assert.equal(typeof wider, "function");
  assert.equal(queue.name, "typed");
});

test("transaction_acknowledges_with_a_result", async () => {
  const queue = client.queue<string, Sum>("{t}");
  const next = client.queue<string>("{t}-next");
  const put = queue.putAndAwait("a", FOREVER);
  const job = await queue.take(FOREVER);
  assert.ok(job);
  const options = { result: { sum: 9 }, keepMs: HOUR_MS };
  await client.transaction((all) => all.ack(job, options).put(next, "b"));
  assert.deepEqual((await put).result, { sum: 9 });
  assert.deepEqual((await queue.get(job.id))?.result, { sum: 9 });
  assert.equal((await next.pop())?.payload, "b");
});

test("job_whose_result_is_refused_can_be_acknowledged_again", async () => {
  const { little, other } = await withLittleRoom();
  const queue = other.queue<string>("refused");
  await queue.set({ afterAck: "keep" });
  await queue.put("a");
  const job = await queue.take();
  await assert.rejects(async () => job?.ack({ result: 1n }), (error) => {
    assert.ok(error instanceof BadPayload && error.cause instanceof TypeError);
    return error.message.startsWith("the result cannot be written: ");
  });
  await assert.rejects(async () => job?.ack({ result: () => undefined }), BadPayload);
  await assert.rejects(async () => job?.ack({ result: "x".repeat(70_000) }), { kind: "TOOLARGE" });
  await assert.rejects(async () => job?.ack({ result: "x".repeat(60_000) }), { kind: "BUSY" });
  assert.equal(job?.settlement, undefined);
  await job?.ack({ result: "x" });
  assert.deepEqual((await queue.peek({ state: "D" })).map(({ result }) => result), ["x"]);
  await other.close();
  await little.stop();
});

for (const prefetch of [0, 2]) {
  test(`worker_sends_what_its_function_returns_with_prefetch_${prefetch}`, async () => {
    const queue = client.queue<number, Sum>(`returned-${prefetch}`);
    await queue.set({ afterAck: "keep" });
    const seen = events<number>();
    const log: string[] = [];
    await using worker = queue.process(
      async ({ payload }) => (payload === 3 ? undefined : { sum: payload * 2 }),
      { prefetch, concurrency: 2, trace: seen.add, log: (line) => void log.push(line) },
    );
    const first = await queue.putAndAwait(0, FOREVER);
    assert.deepEqual(first.result, { sum: 0 });
    const puts = [1, 2, 3, 4, 5].map((number) => queue.putAndAwait(number, FOREVER));
    const sums = (await Promise.all(puts)).map(({ result }) => result?.sum);
    assert.deepEqual(sums, [2, 4, undefined, 8, 10]);
    await seen.until(({ type }) => type === "acked", 6);
    await worker.stop();
    const kept = new Map<number, unknown>();
    for await (const { payload, result } of queue.scan()) kept.set(payload, result);
    assert.deepEqual(kept.get(5), { sum: 10 });
    assert.equal(kept.get(3), undefined);
    assert.equal(count(seen, "trouble"), 0);
    assert.equal(log.length, 3, log.join("\n"));
  });

  test(`result_passes_what_is_around_the_job_with_prefetch_${prefetch}`, async () => {
    const queue = client.queue<string>(`around-${prefetch}`);
    await using worker = queue.process((job) => `${job.payload}!`, {
      prefetch,
      around: async (_, run) => {
        await run();
        await run();
      },
    });
    assert.equal((await queue.putAndAwait("a", FOREVER)).result, "a!");
    await worker.stop();
  });

  test(`what_a_settled_job_returns_does_not_count_with_prefetch_${prefetch}`, async () => {
    const queue = client.queue<string>(`settled-${prefetch}`);
    await queue.set({ afterAck: "keep" });
    const seen = events<string>();
    await using worker = queue.process(
      async (job) => {
        if (job.payload === "failed") return job.fail("no", { delayMs: HOUR_MS });
        if (job.payload === "acked") await job.ack({ result: "by hand" });
        // Nothing could be made of it.
        return () => undefined;
      },
      { prefetch, trace: seen.add, log: null },
    );
    const failed = await queue.put("failed");
    const acked = await queue.putAndAwait("acked", FOREVER);
    assert.equal(acked.result, "by hand");
    await seen.until(({ type }) => type === "settled", 2);
    await worker.stop();
    assert.equal((await queue.get(failed.id))?.meta?.state, "W");
    assert.equal((await queue.get(acked.id))?.result, "by hand");
    assert.equal(count(seen, "trouble"), 0);
  });

  test(`job_without_a_possible_result_is_acknowledged_with_prefetch_${prefetch}`, async () => {
    const queue = client.queue<string>(`unwritten-${prefetch}`);
    const seen = events<string>();
    const log: string[] = [];
    let runs = 0;
    await using worker = queue.process(
      () => {
        runs++;
        return { id: 1n };
      },
      { prefetch, trace: seen.add, log: (line) => void log.push(line) },
    );
    const { outcome, result } = await queue.putAndAwait("a", FOREVER);
    assert.deepEqual([outcome, result, runs], ["acked", undefined, 1]);
    await worker.stop();
    const [trouble] = seen.all.filter(({ type }) => type === "trouble");
    assert.ok(trouble?.type === "trouble" && trouble.error instanceof BadPayload);
    assert.equal(trouble.job?.payload, "a");
    assert.ok(log.some((line) => line.includes(": acknowledged without its result: ")));
    // Bytes and texts are passed on, and anything else cannot be.
    const raw = client.queue<Uint8Array>(`number-${prefetch}`, { codec: bytes });
    await using other = raw.process(() => 17, { prefetch, log: null });
    assert.equal((await raw.putAndAwait(Uint8Array.of(1), FOREVER)).result, undefined);
    await other.stop();
  });

  test(`job_whose_result_is_refused_is_acknowledged_with_prefetch_${prefetch}`, async () => {
    const { little, other } = await withLittleRoom();
    const queue = other.queue<number, string>("refused");
    await queue.set({ afterAck: "keep" });
    // What fits, what is too large for any server, and what this one has no room for.
    const sizes = [1, 70_000, 3, 60_000, 9_000, 5];
    await queue.putMany(sizes);
    const seen = events<number>();
    const gate = latch();
    let runs = 0;
    const worker = queue.process(
      async ({ payload }) => {
        runs++;
        await gate.promise;
        return "x".repeat(payload);
      },
      { prefetch, concurrency: sizes.length, trace: seen.add, log: null },
    );
    await seen.until(({ type }) => type === "started", sizes.length);
    gate.open();
    // What is sent again for the stop is waited for.
    await worker.stop();
    const kept = new Map<number, number | undefined>();
    for await (const { payload, result } of queue.scan()) kept.set(payload, result?.length);
    const left = sizes.map((size) => kept.get(size));
    assert.deepEqual(left, [1, undefined, 3, undefined, 9_000, 5]);
    const kinds = seen.all.map((event) => (event.type === "trouble" ? event.error : undefined));
    const refused = kinds.map((error) => (isRefused(error) ? error.kind : ""));
    assert.deepEqual(refused.filter((kind) => kind !== "").sort(), ["BUSY", "TOOLARGE"]);
    assert.deepEqual([runs, count(seen, "acked"), count(seen, "leaseLost")], [6, 6, 0]);
    assert.equal(told(seen).at(-1), "stopped");
    await other.close();
    await little.stop();
  });

  test(`server_that_knows_of_no_results_gets_none_with_prefetch_${prefetch}`, async () => {
    const proxy = await Proxy.start(server.port);
    let asked = 0;
    proxy.onSent = (sent) => {
      for (let at = 0; (at = sent.indexOf("RESULT", at)) >= 0; asked++) sent.write("UNKNWN", at);
    };
    const older = await Client.connect(proxy.url);
    const queue = older.queue<number>(`older-${prefetch}`);
    const seen = events<number>();
    await queue.putMany([1, 2, 3]);
    let runs = 0;
    await using worker = queue.process(({ payload }) => (runs++, payload), {
      prefetch, trace: seen.add, log: null,
    });
    await seen.until(({ type }) => type === "acked", 3);
    await worker.stop();
    assert.ok(asked >= 3);
    assert.deepEqual([runs, count(seen, "trouble"), count(seen, "leaseLost")], [3, 3, 0]);
    assert.equal((await queue.stats())["present"], 0);
    await older.close();
    await proxy.stop();
  });
}

test("one_refused_result_does_not_spoil_the_others_of_a_take", async () => {
  const { little, other } = await withLittleRoom();
  const queue = other.queue<number, string>("together");
  await queue.set({ afterAck: "keep" });
  await queue.putMany([10, 8_000, 20, 30]);
  // Room for some bytes, and less than for 8,000 more.
  const filler = other.queue<string>("filler");
  const fill = async (): Promise<string> => {
    for (let last = ""; ; ) {
      try {
        last = (await filler.put("x".repeat(2_000), { unique: false })).id;
      } catch (error) {
        if (isRefused(error, "BUSY")) return last;
        throw error;
      }
    }
  };
  await filler.kill(await fill());
  const seen = events<number>();
  const gate = latch();
  await using worker = queue.process(
    async ({ payload }) => {
      await gate.promise;
      return "x".repeat(payload);
    },
    { concurrency: 3, trace: seen.add, log: null },
  );
  await seen.until(({ type }) => type === "started", 3);
  // The next one is there, so that no take blocks, and one acknowledges all of them.
  gate.open();
  await seen.until(({ type }) => type === "acked", 4);
  await worker.stop();
  const kept = new Map<number, number | undefined>();
  for await (const { payload, result } of queue.scan()) kept.set(payload, result?.length);
  assert.deepEqual([10, 8_000, 20, 30].map((size) => kept.get(size)), [10, undefined, 20, 30]);
  assert.equal(count(seen, "trouble"), 1);
  await other.close();
  await little.stop();
});

test("results_of_finished_jobs_go_with_the_next_take", async () => {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  const queue = other.queue<number, number>("numbers");
  await queue.set({ afterAck: "keep" });
  await queue.putMany(Array.from({ length: 50 }, (_, number) => number));
  const seen = events<number>();
  const sent = { TAKE: 0, ACK: 0 };
  proxy.onSent = (some) => {
    for (const [word] of some.toString().matchAll(/(?<=\r\n)(TAKE|ACK)(?=\r\n)/g)) {
      sent[word as "TAKE" | "ACK"]++;
    }
  };
  const worker = queue.process((job) => job.payload * 2, { trace: seen.add });
  await seen.until(({ type }) => type === "acked", 50);
  await worker.stop();
  assert.equal(sent.ACK, 0);
  for await (const { payload, result } of queue.scan()) assert.equal(result, payload * 2);
  await other.close();
  await proxy.stop();
});

test("function_may_use_the_bytes_of_its_result_again", async () => {
  for (const prefetch of [0, 2]) {
    const queue = client.queue(`reused-${prefetch}`, { codec: bytes, resultCodec: bytes });
    await queue.set({ afterAck: "keep" });
    await queue.putMany([1, 2, 3].map((number) => Uint8Array.of(number)));
    const seen = events<Uint8Array>();
    const buffer = new Uint8Array(2);
    await using worker = queue.process(({ payload }) => (buffer.set(payload, 1), buffer), {
      prefetch, trace: seen.add, log: null,
    });
    await seen.until(({ type }) => type === "acked", 3);
    await worker.stop();
    for await (const { bytes, resultBytes } of queue.scan()) {
      assert.deepEqual(resultBytes, Buffer.from([0, ...bytes]));
    }
  }
});

test("lane_of_a_member_has_results", async () => {
  const topic = client.topic<string, number>("alerts");
  await using member = await topic.join("mailer");
  await topic.publish("four");
  const [task] = await member.peek();
  assert.ok(task);
  const end = member.awaitEnd(task.id, FOREVER);
  await using worker = member.process((job) => job.payload.length, { prefetch: 1 });
  assert.equal((await end).result, 4);
  await worker.stop();
  await member.leave();
});

/** A server that can keep little, with a client. */
async function withLittleRoom(): Promise<{ little: Server; other: Client }> {
  const flags = ["--task-bytes-max", "64KiB", "--payload-bytes-max", "64KiB"];
  const little = await Server.start(() => flags);
  const other = await Client.connect(little.url);
  await other.queue<string>("filler").put("x".repeat(25_000));
  return { little, other };
}
