// How far jobs have come: progress and checkpoints, by hand and in workers, against a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client, isRefused, type Work } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { Server, started } from "./server.js";
import { events, latch, Seen } from "./waiting.js";

const { client, server } = await started();
const TAKE = { waitMs: Number.POSITIVE_INFINITY, withMeta: true };
const BYTES = Uint8Array.of(0xff, 0, 0x0d, 0x0a);
const HOUR_MS = 3_600_000;

/** A client whose requests are seen, each as a text. */
async function watched(): Promise<{ other: Client; sent: Seen<string>; end: () => Promise<void> }> {
  const proxy = await Proxy.start(server.port);
  const sent = new Seen<string>();
  proxy.onSent = (bytes) => {
    for (const request of bytes.toString("latin1").split(/(?=\*\d+\r\n\$)/)) sent.add(request);
  };
  const other = await Client.connect(proxy.url);
  const end = async (): Promise<void> => {
    await other.close();
    await proxy.stop();
  };
  return { other, sent, end };
}

/** How many requests have this word. */
function count(sent: Seen<string>, word: string): number {
  return sent.all.filter((request) => request.includes(`\r\n${word}\r\n`)).length;
}

/** A server whose tasks have this much memory, with a client. */
async function withLittleRoom(size: string): Promise<{ tight: Server; other: Client }> {
  const flags = ["--task-bytes-max", size, "--payload-bytes-max", "64KiB"];
  const tight = await Server.start(() => flags);
  return { tight, other: await Client.connect(tight.url) };
}

test("checkpoint_is_kept_from_attempt_to_attempt", async () => {
  const queue = client.queue<string>("kept");
  const { id } = await queue.put("a");
  const first = await queue.take(TAKE);
  assert.equal(first?.lastCheckpoint, undefined);
  await first?.fail("not yet", { delayMs: 1, checkpoint: BYTES });
  const second = await queue.take(TAKE);
  assert.deepEqual(second?.lastCheckpoint, Buffer.from(BYTES));
  await second?.release({ checkpoint: "row 7" });
  assert.equal((await queue.get(id))?.checkpoint?.toString(), "row 7");
  const third = await queue.take(TAKE);
  assert.equal(third?.lastCheckpoint?.toString(), "row 7");
  await third?.touch({ checkpoint: "row 8", progress: "8 of 10" });
  const task = await queue.get(id);
  assert.deepEqual([task?.checkpoint?.toString(), task?.meta?.progress], ["row 8", "8 of 10"]);
  await third?.touch({ checkpoint: "" });
  assert.equal((await queue.get(id))?.checkpoint, undefined);
  await third?.ack();
});

test("job_without_a_worker_tells_with_its_next_request", async () => {
  const queue = client.queue<string>("by-hand", { ttrMs: null });
  const { id } = await queue.put("a");
  const first = await queue.take(TAKE);
  const bytes = Uint8Array.from(BYTES);
  first?.progress("1 of 2");
  first?.checkpoint("older");
  first?.checkpoint(bytes);
  // It has a copy.
  bytes.fill(0);
  // A lease without a TTR has no deadline.
  assert.equal(await first?.touch(), null);
  const task = await queue.get(id);
  assert.deepEqual([task?.checkpoint, task?.meta?.progress], [Buffer.from(BYTES), "1 of 2"]);
  first?.progress("");
  first?.checkpoint("with the end of the block");
  await first?.[Symbol.asyncDispose]();
  const second = await queue.take(TAKE);
  assert.equal(second?.lastCheckpoint?.toString(), "with the end of the block");
  second?.checkpoint("noted");
  assert.equal(await second?.release({ checkpoint: "given" }), "R");
  const third = await queue.take(TAKE);
  assert.equal(third?.lastCheckpoint?.toString(), "given");
  third?.checkpoint("before a burial");
  await third?.bury("set aside");
  assert.equal((await queue.get(id))?.checkpoint?.toString(), "before a burial");
});

test("what_is_too_long_is_refused_at_once", async () => {
  const queue = client.queue<string>("long");
  await queue.put("a");
  const job = await queue.take(TAKE);
  assert.ok(job);
  const is = (message: string): object => ({ name: "RangeError", message });
  const long = is("a progress has at most 256 bytes, and this one has 258");
  assert.throws(() => job.progress("ä".repeat(129)), long);
  const large = is("a checkpoint has at most 65536 bytes, and this one has 65537");
  assert.throws(() => job.checkpoint(new Uint8Array(65_537)), large);
  assert.throws(() => job.checkpoint("x".repeat(65_537)), large);
  job.progress("ä".repeat(128));
  job.checkpoint(new Uint8Array(65_536));
  await job.touch();
  assert.equal((await queue.get(job.id))?.checkpoint?.length, 65_536);
  await assert.rejects(job.touch({ progress: "x".repeat(257) }), { kind: "BADARG" });
  await assert.rejects(job.touch({ checkpoint: new Uint8Array(65_537) }), { kind: "TOOLARGE" });
  await job.ack();
});

test("checkpoint_that_was_not_sent_goes_with_the_failure", async () => {
  const { other, sent, end } = await watched();
  for (const prefetch of [0, 2]) {
    const queue = other.queue<string>(`unsent-${prefetch}`, { ttrMs: HOUR_MS });
    await queue.put("a");
    const seen = events<string>();
    const found: (string | undefined)[] = [];
    await using worker = queue.process(
      (job) => {
        const last = job.lastCheckpoint?.toString();
        found.push(last);
        job.progress("never seen");
        job.checkpoint(`${last ?? "row"}+`);
        if (found.length < 3) throw new Error("later");
      },
      { prefetch, trace: seen.add, failDelayMs: () => 1, log: null },
    );
    await seen.until(({ type }) => type === "acked");
    await worker.stop();
    assert.deepEqual(found, [undefined, "row+", "row++"]);
  }
  assert.deepEqual([count(sent, "TOUCH"), count(sent, "PROGRESS")], [0, 0]);
  assert.deepEqual([count(sent, "FAIL"), count(sent, "CHECKPOINT")], [4, 4]);
  await end();
});

test("worker_that_stops_releases_with_the_checkpoint", async () => {
  const queue = client.queue<string>("stopped", { ttrMs: HOUR_MS });
  await queue.put("a");
  const seen = events<string>();
  const worker = queue.process(
    (job) => {
      job.checkpoint("half");
      return new Promise(() => undefined);
    },
    { trace: seen.add, log: null },
  );
  await seen.until(({ type }) => type === "started");
  await worker.stop({ graceMs: 1 });
  const job = await queue.take(TAKE);
  assert.equal(job?.lastCheckpoint?.toString(), "half");
  await job?.ack();
});

test("job_that_is_given_up_keeps_its_checkpoint", async () => {
  const queue = client.queue<string>("given-up", { ttrMs: HOUR_MS });
  const { id } = await queue.put("a");
  const seen = events<string>();
  let runs = 0;
  await using worker = queue.process(
    (job) => {
      job.checkpoint(`run ${++runs}`);
      throw new Error("no");
    },
    { trace: seen.add, failDelayMs: () => 1, log: null },
  );
  await seen.until((event) => event.type === "failed" && event.state === "B");
  await worker.stop();
  assert.equal((await queue.get(id))?.checkpoint?.toString(), "run 5");
});

test("others_see_how_far_a_job_of_a_worker_has_come", async () => {
  for (const prefetch of [0, 2]) {
    // Long before it would renew its leases.
    const queue = client.queue<string>(`shown-${prefetch}`, { ttrMs: HOUR_MS });
    const { id } = await queue.put("a");
    const seen = events<string>();
    const gate = latch();
    await using worker = queue.process(
      (job) => {
        job.progress("3 of 10");
        job.checkpoint(BYTES);
        return gate.promise;
      },
      { prefetch, trace: seen.add },
    );
    await seen.until(({ type }) => type === "renewed");
    const task = await queue.get(id);
    assert.deepEqual([task?.meta?.progress, task?.checkpoint], ["3 of 10", Buffer.from(BYTES)]);
    for await (const lease of queue.leases()) assert.equal(lease.progress, "3 of 10");
    const [reason] = (await queue.explain(id)).reasons;
    assert.deepEqual([reason?.code, reason?.["progress"]], ["taken", "3 of 10"]);
    gate.open();
    await seen.until(({ type }) => type === "acked");
    await worker.stop();
    assert.equal(seen.all.filter(({ type }) => type === "renewed").length, 1);
  }
});

test("worker_tells_once_a_second_and_only_the_newest", async () => {
  const { other, sent, end } = await watched();
  const queue = other.queue<string>("often", { ttrMs: HOUR_MS });
  const { id } = await queue.put("a");
  const seen = events<string>();
  const gate = latch();
  const at: number[] = [];
  let told = 0;
  await using worker = queue.process(
    async (job) => {
      const tell = (): void => {
        job.progress(`${++told}`);
        job.checkpoint(`row ${told}`);
      };
      for (; at.length < 3; await pause(10)) tell();
      tell();
      await gate.promise;
    },
    {
      trace: (event) => {
        seen.add(event);
        if (event.type === "renewed") at.push(performance.now());
      },
    },
  );
  await seen.until(({ type }) => type === "renewed", 3);
  const distances = at.slice(1).map((moment, before) => moment - (at[before] ?? 0));
  assert.ok(distances.every((ms) => ms > 900), `${distances.join(", ")} ms`);
  // The last values follow.
  await seen.until(({ type }) => type === "renewed", 4);
  const task = await queue.get(id);
  assert.equal(task?.meta?.progress, `${told}`);
  assert.equal(task?.checkpoint?.toString(), `row ${told}`);
  assert.equal(count(sent, "TOUCH"), 4);
  gate.open();
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  await end();
});

test("what_is_new_goes_with_a_renewal_that_is_due_anyway", async () => {
  const { other, sent, end } = await watched();
  const queue = other.queue<string>("due", { ttrMs: 1_500 });
  await queue.put("a");
  const seen = events<string>();
  await using worker = queue.process(
    async (job) => {
      job.progress("begun");
      await seen.until(({ type }) => type === "renewed", 2);
    },
    { trace: seen.add },
  );
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  assert.equal(count(sent, "PROGRESS"), 1);
  const first = sent.all.find((request) => request.includes("TOUCH"));
  assert.ok(first?.includes("begun"));
  await end();
});

test("nothing_is_told_of_a_job_that_is_done_or_cancelled", async () => {
  const { other, sent, end } = await watched();
  // Without a prefetch a cancel is heard of at a renewal.
  for (const [prefetch, ttrMs] of [[0, 3_000], [2, HOUR_MS]] as const) {
    const queue = other.queue<string>(`over-${prefetch}`, { ttrMs });
    await queue.put("a");
    const seen = events<string>();
    const handler = async (
      job: { payload: string; checkpoint(value: string): void },
      { signal }: Work,
    ): Promise<void> => {
      job.checkpoint("before");
      if (job.payload === "a") return;
      if (!signal.aborted) await once(signal, "abort");
      job.checkpoint("behind");
      throw signal.reason;
    };
    await using worker = queue.process(handler, { prefetch, trace: seen.add, log: null });
    await seen.until(({ type }) => type === "acked");
    assert.equal(count(sent, "CHECKPOINT"), 0);
    const { id } = await queue.put("b");
    await seen.until(({ type }) => type === "started", 2);
    await client.queue(`over-${prefetch}`).cancel(id);
    await seen.until(({ type }) => type === "released");
    await worker.stop();
    assert.equal(await queue.get(id), null);
    const ends = sent.all.filter((request) => request.includes("RELEASE"));
    assert.ok(ends.length > 0 && ends.every((request) => !request.includes("CHECKPOINT")));
    sent.all.length = 0;
  }
  await end();
});

test("lease_is_renewed_where_there_is_no_room_for_a_checkpoint", async () => {
  const { tight, other } = await withLittleRoom("200KiB");
  const queue = other.queue<string>("tight", { ttrMs: 1_500 });
  const { id } = await queue.put("a");
  const filler = other.queue<string>("filler");
  const fill = async (): Promise<void> => {
    for (;;) {
      try {
        await filler.put("x".repeat(8_000), { unique: false });
      } catch (error) {
        if (isRefused(error, "BUSY")) return;
        throw error;
      }
    }
  };
  await fill();
  const seen = events<string>();
  const gate = latch();
  await using worker = queue.process(
    (job) => {
      job.progress("on");
      job.checkpoint(new Uint8Array(60_000));
      return gate.promise;
    },
    { trace: seen.add },
  );
  await seen.until(({ type }) => type === "renewed", 4);
  const task = await queue.get(id);
  assert.deepEqual([task?.meta?.progress, task?.checkpoint], ["on", undefined]);
  // With room again, it is told by itself.
  await filler.truncate();
  const until = performance.now() + 10_000;
  while (!(await queue.get(id))?.checkpoint && performance.now() < until) await pause(50);
  assert.equal((await queue.get(id))?.checkpoint?.length, 60_000);
  gate.open();
  await worker.stop();
  assert.equal(seen.all.some(({ type }) => type === "trouble" || type === "leaseLost"), false);
  await other.close();
  await tight.stop();
});

test("job_fails_without_its_checkpoint_where_there_is_no_room", async () => {
  const { tight, other } = await withLittleRoom("64KiB");
  const queue = other.queue<string>("tight", { ttrMs: HOUR_MS });
  await queue.put("a");
  const seen = events<string>();
  const found: unknown[] = [];
  await using worker = queue.process(
    (job) => {
      found.push(job.lastCheckpoint);
      job.checkpoint(new Uint8Array(65_536));
      if (found.length === 1) throw new Error("later");
    },
    { trace: seen.add, failDelayMs: () => 1, log: null },
  );
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  assert.deepEqual(found, [undefined, undefined]);
  assert.equal(seen.all.filter(({ type }) => type === "failed").length, 1);
  await queue.put("b");
  const job = await queue.take(TAKE);
  const checkpoint = new Uint8Array(65_536);
  // Who gives it with a request hears of it.
  await assert.rejects(async () => job?.touch({ checkpoint }), { kind: "BUSY" });
  await assert.rejects(async () => job?.fail("later", { checkpoint }), { kind: "BUSY" });
  await job?.ack();
  await other.close();
  await tight.stop();
});

test("server_that_knows_of_neither_renews_all_the_same", async () => {
  const proxy = await Proxy.start(server.port);
  let asked = 0;
  proxy.onSent = (bytes) => {
    const at = bytes.indexOf("PROGRESS");
    if (at < 0) return;
    asked++;
    // No server knows this word.
    bytes.write("UNHEARD!", at);
  };
  const older = await Client.connect(proxy.url);
  const queue = older.queue<string>("older", { ttrMs: 1_500 });
  await queue.put("a");
  const seen = events<string>();
  await using worker = queue.process(
    async (job) => {
      job.progress("on");
      await seen.until(({ type }) => type === "renewed", 4);
    },
    { trace: seen.add },
  );
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  assert.equal(asked, 1);
  assert.equal(seen.all.some(({ type }) => type === "trouble" || type === "leaseLost"), false);
  await older.close();
  await proxy.stop();
});
