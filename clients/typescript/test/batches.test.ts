// Batches of tasks and what waits for them, against a real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commands, isRefused, Refused } from "../src/index.js";
import { started } from "./server.js";

const { client } = await started();

test("what_waits_for_a_batch_comes_when_it_is_done", async () => {
  const parts = client.queue<string>("{fan}-parts");
  const joined = client.queue<string>("{fan}-joined");
  const sorry = client.queue<string>("{fan}-sorry");
  const batch = client.batch("{fan}-one");
  const [callback, apology] = await batch.fill(async (same) => {
    assert.equal(same, batch);
    for (const part of ["a", "b"]) await same.put(parts, part);
    return [
      await same.putAfter(joined, "all", { onlyIf: "acked" }),
      await same.putAfter(sorry, "no", { onlyIf: "failed" }),
    ] as const;
  });
  const { state, total, waiting, doneAt } = await batch.show();
  assert.deepEqual([state, total, waiting, doneAt], ["closed", 2, 2, null]);
  const meta = (await joined.get(callback.id))?.meta;
  assert.deepEqual([meta?.state, meta?.held, meta?.readyAt], ["W", false, null]);
  assert.deepEqual([meta?.after, meta?.batch], [["{fan}-one"], null]);
  assert.equal(await joined.take(), null);

  await parts.put("another");
  const found = [];
  for await (const task of parts.scan({ batch: batch.name })) found.push(task.payload);
  assert.deepEqual(found, ["a", "b"]);
  assert.equal((await parts.bulk({ kill: true, dry: true, batch: batch.name })).changed, 2);
  for (const name of [batch.name, batch.name, null]) {
    const job = await parts.take({ withMeta: true });
    assert.deepEqual([job?.meta?.batch, job?.meta?.after], [name, []]);
    await job?.ack();
  }
  const end = await batch.awaitEnd({ waitMs: 10_000 });
  assert.deepEqual([end.outcome, end.state, end.acked, end.failed], ["done", "done", 2, 0]);
  assert.ok(end.doneAt !== null && end.doneAt >= end.openedAt);
  const job = await joined.take({ waitMs: 10_000 });
  assert.deepEqual([job?.id, job?.payload], [callback.id, "all"]);
  await job?.ack();
  assert.equal((await sorry.awaitEnd(apology.id, { waitMs: 10_000 })).outcome, "skipped");

  await assert.rejects(batch.put(parts, "late"), (error) => isRefused(error, "WRONGSTATE"));
  assert.equal(await batch.drop(), true);
  assert.equal(await batch.drop(), false);
  await assert.rejects(batch.show(), (error) => isRefused(error, "NOTFOUND"));
  await assert.rejects(batch.putAfter(joined, "x"), (error) => isRefused(error, "NOTFOUND"));
});

test("one_task_waits_for_several_batches", async () => {
  const queue = client.queue<string>("several");
  const [first, second] = [client.batch(), client.batch()];
  const id = await first.fill((one) =>
    second.fill(async (two) => {
      await one.put(queue, "killed");
      return (await two.putAfter(queue, "never", { after: [one.name], onlyIf: "acked" })).id;
    }),
  );
  assert.deepEqual((await queue.get(id))?.meta?.after, [first.name]);
  const ended = queue.awaitEnd(id, { waitMs: 10_000 });
  const [task] = await queue.peek();
  assert.equal(await queue.kill(task?.id ?? ""), 1);
  assert.equal((await ended).outcome, "skipped");
});

test("error_cancels_the_tasks", async () => {
  const queue = client.queue<string>("{stop}");
  const after = client.queue<string>("{stop}-after");
  const batch = client.batch("{stop}-one");
  const filled = batch.fill(async () => {
    await batch.put(queue, "a");
    await batch.put(queue, "b", { delayMs: 60_000 });
    await batch.putAfter(after, "clean up", { onlyIf: "failed" });
    throw new RangeError("no such film");
  });
  await assert.rejects(filled, RangeError);
  const { outcome, failed } = await batch.awaitEnd({ waitMs: 10_000 });
  assert.deepEqual([outcome, failed], ["done", 2]);
  const job = await after.take({ waitMs: 10_000 });
  assert.equal(job?.payload, "clean up");
  await job?.ack();
});

test("holders_of_its_tasks_are_asked_to_stop", async () => {
  const queue = client.queue<string>("{stop}");
  const batch = client.batch("{stop}-two");
  await batch.open({ ttlMs: 3_600_000 });
  await assert.rejects(batch.open(), (error) => isRefused(error, "EXISTS"));
  await client.transaction((all) => all.put(queue, "x", { batch: batch.name }));
  const job = await queue.take();
  assert.ok(job);
  assert.equal(await batch.cancel({ reason: "the customer left", graceMs: 60_000 }), 1);
  await assert.rejects(job.touch(), { kind: "CANCELLED", message: "CANCELLED the customer left" });
  await assert.rejects(batch.drop(), (error) => isRefused(error, "WRONGSTATE"));
  const { outcome, state, pending } = await batch.awaitEnd();
  assert.deepEqual([outcome, state, pending], ["timeout", "closed", 1]);
  assert.equal(await job.fail("stopped"), "X");
  const ended = await batch.awaitEnd({ waitMs: Number.POSITIVE_INFINITY });
  assert.equal(ended.outcome, "done");
  assert.equal(await batch.close(), 0);
  const names = [];
  for await (const name of client.batchNames({ prefix: "{stop}-t" })) names.push(name);
  assert.deepEqual(names, ["{stop}-two"]);
});

test("transaction_makes_fills_and_closes_a_batch", async () => {
  const [parts, joined] = [client.queue<string>("{whole}"), client.queue<string>("{whole}-joined")];
  const [batch, empty] = [client.batch("{whole}-one"), client.batch("{whole}-empty")];
  const made = await client.transaction((all) =>
    all
      .openBatch(batch, { ttlMs: 3_600_000 })
      .put(parts, "part", { batch: batch.name })
      .put(joined, "all", { after: [batch.name] })
      .closeBatch(batch),
  );
  assert.deepEqual([made[0], made[3]], ["OK", 1]);
  assert.equal((await batch.show()).state, "closed");
  const job = await parts.take();
  assert.ok(job);
  const replies = await client.transaction((all) =>
    all.ack(job).openBatch(empty).closeBatch(empty).dropBatch(empty).dropBatch(empty),
  );
  assert.deepEqual(replies, ["OK", "OK", 0, 1, 0]);
  const callback = await joined.take({ waitMs: 10_000 });
  assert.equal(callback?.payload, "all");
  await callback?.ack();

  const refused = client.transaction((all) =>
    all.dropBatch(batch).openBatch(empty).dropBatch(empty),
  );
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof Refused);
    assert.deepEqual([error.kind, error.position], ["EXECABORT", 2]);
    return isRefused(error.cause, "WRONGSTATE");
  });
  const names = [];
  for await (const name of client.batchNames({ prefix: "{whole}" })) names.push(name);
  assert.deepEqual(names, [batch.name]);
});

test("names_are_counted", () => {
  const options = { batch: "c", after: ["a", "b"], onlyIf: "failed" } as const;
  const expected = ["PUT", "q", "x", "AFTER", "2", "a", "b", "IF", "failed", "BATCH", "c"];
  assert.deepEqual(commands.put("q", "x", options).list, expected);
  assert.deepEqual(commands.put("q", "x", { after: [] }).list, ["PUT", "q", "x"]);
});
