// The commands of queues, against a real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BadPayload, bytes, Client, commands, isRefused, json, PinpriqError, Refused, text,
} from "../src/index.js";
import { started } from "./server.js";

const { client, server } = await started({ name: "tests" });

test("put_take_and_ack_end_a_task", async () => {
  const queue = client.queue<{ to: string }>("mails");
  const { id, isNew } = await queue.put({ to: "ann" });
  assert.equal(isNew, true);
  const job = await queue.take();
  assert.ok(job);
  assert.equal(job.id, id);
  assert.equal(job.queue, "mails");
  assert.deepEqual(job.payload, { to: "ann" });
  await job.ack();
  assert.equal(job.settlement, "acked");
  assert.equal(await queue.take(), null);
  await assert.rejects(job.ack(), (error) => isRefused(error, "STALE"));
});

test("terms_of_a_put_reach_the_server", async () => {
  const queue = client.queue<string>("terms");
  const soon = Date.now() + 3_600_000;
  const { id } = await queue.put("x", { key: "k", priority: -3, ttlMs: 7_200_000, at: soon });
  const task = await queue.get(id);
  assert.equal(task?.payload, "x");
  assert.equal(task?.meta?.state, "W");
  assert.equal(task?.meta?.key, "k");
  assert.equal(task?.meta?.priority, -3);
  assert.equal(task?.meta?.attempts, 0);
  assert.equal(task?.meta?.origin, null);
  assert.ok(Math.abs((task?.meta?.readyAt ?? 0) - soon) < 60_000);
  assert.equal(await queue.get("unknown"), null);
  assert.equal(await queue.restart(id), "R");
  await queue.update(id, { priority: null, payload: "y", ttlMs: null });
  const changed = await queue.get(id);
  assert.equal(changed?.payload, "y");
  assert.equal(changed?.meta?.priority, null);
  assert.equal(changed?.meta?.ttlAt, null);
  assert.equal(await queue.kill(id), 1);
});

test("held_task_waits_until_it_is_freed", async () => {
  const queue = client.queue<string>("approvals");
  const { id } = await queue.put("order", { held: true });
  const task = await queue.get(id);
  assert.deepEqual([task?.meta?.held, task?.meta?.readyAt], [true, null]);
  assert.equal(await queue.take(), null);
  assert.equal(await queue.restart(id), "R");
  const other = await queue.put("order", { held: true });
  const job = await queue.take({ id: other.id, withMeta: true });
  assert.deepEqual([job?.id, job?.meta?.held], [other.id, false]);
  assert.equal(await queue.take({ id: other.id }), null);
  await job?.ack();
});

test("task_has_attempts_of_its_own", async () => {
  const queue = client.queue<string>("fragile");
  const { id } = await queue.put("once", { attempts: 1, backoffMs: null, backoffMaxMs: 2_000 });
  const meta = (await queue.get(id))?.meta;
  assert.deepEqual([meta?.attemptsMax, meta?.backoffMs, meta?.backoffMaxMs], [1, "none", 2_000]);
  const job = await queue.take();
  assert.equal(await job?.fail("no"), "B");
  const other = await queue.put("more", { attempts: null, backoffMs: 5 });
  const more = (await queue.get(other.id))?.meta;
  assert.deepEqual([more?.attemptsMax, more?.backoffMs, more?.backoffMaxMs], ["none", 5, null]);
});

test("headers_travel_with_the_task", async () => {
  const queue = client.queue<string>("headers");
  const { id } = await queue.put("x", { headers: { tenant: "acme", "a.z": Buffer.from("1") } });
  const job = await queue.take({ withMeta: true });
  assert.deepEqual({ ...job?.meta?.headers }, { tenant: "acme", "a.z": "1" });
  await job?.release();
  await queue.update(id, { headers: { a: "2" } });
  assert.deepEqual({ ...(await queue.get(id))?.meta?.headers }, { a: "2" });
  await queue.update(id, { headers: {} });
  assert.deepEqual({ ...(await queue.get(id))?.meta?.headers }, {});
  await queue.put("y", { headers: {} });
  const wrong = queue.put("z", { headers: { Tenant: "acme" } });
  await assert.rejects(wrong, (error) => isRefused(error, "BADARG"));
});

test("lower_priority_goes_first_and_both_ends_can_be_taken", async () => {
  const queue = client.queue<number>("ordered");
  for (const priority of [5, 1, 9]) await queue.put(priority, { priority });
  assert.deepEqual((await queue.peek({ count: 9 })).map(({ payload }) => payload), [1, 5, 9]);
  assert.equal((await queue.pop({ from: "max" }))?.payload, 9);
  assert.deepEqual((await queue.popMany(9)).map(({ payload }) => payload), [1, 5]);
});

test("any_command_of_the_table_can_be_sent", async () => {
  const queue = client.queue<string>("any command");
  const { id } = await queue.put("a");
  assert.equal(await queue.command(commands.update, id, { priority: 4 }), "OK");
  assert.equal(await queue.command(commands.kill, [id]), 1);
});

test("text_and_bytes_pass_unchanged", async () => {
  const words = client.queue("words", { codec: text });
  await words.put("grüße");
  assert.equal((await words.pop())?.payload, "grüße");
  const raw = client.queue("raw", { codec: bytes });
  const payload = Uint8Array.from({ length: 256 }, (_, value) => value);
  await raw.put(payload);
  assert.deepEqual(Uint8Array.from((await raw.pop())?.payload ?? []), payload);
});

test("payload_that_is_not_json_is_told_when_it_is_read", async () => {
  await client.queue("mixed", { codec: text }).put("{");
  const job = await client.queue("mixed").take();
  assert.ok(job);
  assert.throws(() => job.payload, BadPayload);
  assert.equal(job.bytes.toString(), "{");
  await job.ack();
  await assert.rejects(client.queue("mixed").put(undefined), BadPayload);
  assert.equal(json<number>().decode(Buffer.from("1")), 1);
});

test("unsettled_job_is_released_when_its_block_is_left", async () => {
  const queue = client.queue<string>("blocks");
  await queue.put("again");
  await assert.rejects(async () => {
    await using job = await queue.take();
    assert.ok(job);
    throw new Error("left");
  }, /left/);
  {
    await using job = await queue.take({ withMeta: true });
    assert.equal(job?.meta?.attempts, 2);
    assert.equal(job?.meta?.failures, 0);
    await job?.ack();
  }
  assert.equal(await queue.take(), null);
});

test("history_tells_who_has_tried_a_task", async () => {
  const queue = client.queue<string>("tried");
  await queue.create({ history: 2 });
  const { id } = await queue.put("x");
  for (const reason of ["one", "two"]) {
    await (await queue.take())?.fail(reason, { delayMs: 0 });
  }
  await (await queue.take())?.release();
  const meta = (await queue.get(id))?.meta;
  const [failed, released] = meta?.history ?? [];
  assert.deepEqual([failed?.how, failed?.reason], ["failed", "two"]);
  assert.deepEqual([released?.how, released?.reason], ["released", null]);
  assert.match(released?.address ?? "", /^127\.0\.0\.1:/);
  assert.ok(released && released.client && released.endedAt >= released.takenAt);
  assert.deepEqual((await queue.peek())[0]?.meta?.history, []);
});

test("fail_bury_and_dig_follow_the_settings", async () => {
  const queue = client.queue<string>("{f}");
  await queue.create({ attempts: 2, backoffMs: 60_000, deadLetter: "{f}-dead" });
  await assert.rejects(queue.create(), (error) => isRefused(error, "EXISTS"));
  const { id } = await queue.put("hard");
  const first = await queue.take();
  assert.equal(await first?.fail("no way", { delayMs: 0 }), "R");
  const second = await queue.take({ withMeta: true });
  assert.equal(second?.meta?.reason, "no way");
  assert.equal(await second?.fail("é".repeat(2_000)), "X");
  const dead = client.queue<string>("{f}-dead");
  const [letter] = await dead.peek();
  assert.equal(letter?.meta?.origin?.id, id);
  assert.equal(letter?.meta?.reason, "é".repeat(512));
  assert.equal(await dead.redrive(), 1);
  const third = await queue.take();
  await third?.bury("later");
  const buried = await queue.peek({ state: "B" });
  assert.equal(buried[0]?.meta?.reason, "later");
  assert.equal(await queue.dig(buried[0]?.id ?? ""), "R");
  assert.equal(await queue.move("{f}-other"), 1);
  assert.equal(await client.queue("{f}-other").truncate(), 1);
});

test("a_filter_chooses_what_changes", async () => {
  const queue = client.queue<string>("{bulk}");
  for (let number = 0; number < 30; number += 1) {
    const key = number % 3 === 0 ? "a" : "b";
    await queue.put("x", { key, priority: number, headers: { from: `w${key}` } });
  }
  const some = { move: "{bulk}-other", key: "a", priorities: [0, 8] } as const;
  assert.deepEqual(await queue.bulk({ ...some, dry: true }), { changed: 3, looked: 30 });
  assert.deepEqual(await queue.bulk(some), { changed: 3, looked: 30 });
  const urgent = { priority: null, header: ["from", "w*"], olderMs: 0, pageSize: 5 } as const;
  assert.equal((await queue.bulk(urgent)).changed, 27);
  assert.equal((await queue.bulk({ delayMs: 60_000, share: "b", failures: 0 })).changed, 20);
  assert.equal((await queue.bulk({ cancel: true, state: "W" })).changed, 20);
  const other = client.queue<string>("{bulk}-other");
  await (await other.take())?.bury("no connection");
  assert.equal((await other.bulk({ restart: true, reason: "no *" })).changed, 1);
  assert.equal((await other.bulk({ redrive: true })).changed, 0);
  assert.equal((await other.bulk({ kill: true })).changed, 3);
  await assert.rejects(other.bulk({}), (error) => isRefused(error, "BADARG"));
  assert.equal(await queue.drop(), 7);
});

test("unique_keys_make_duplicates", async () => {
  const queue = client.queue<string>("unique");
  const first = await queue.put("a", { unique: "a" });
  const second = await queue.put("a", { unique: "a" });
  assert.deepEqual([first.isNew, second.isNew, second.id], [true, false, first.id]);
  const reject = queue.put("a", { unique: "a", onDuplicate: "reject" });
  await assert.rejects(reject, (error) => isRefused(error, "EXISTS"));
  await queue.put("b", { unique: "a", onDuplicate: "replace" });
  assert.equal((await queue.pop())?.payload, "b");
  assert.equal((await queue.put("plain", { unique: false })).isNew, true);
  assert.equal(await queue.drop(), 1);
});

test("await_tells_how_a_task_ended", async () => {
  const queue = client.queue<string>("awaited");
  const ended = queue.putAndAwait("now", { waitMs: 30_000 });
  const job = await queue.take({ waitMs: 30_000 });
  await job?.ack();
  assert.equal((await ended).outcome, "acked");
  const { id } = await queue.put("gone");
  const end = queue.awaitEnd(id, { waitMs: Number.POSITIVE_INFINITY });
  assert.equal(await queue.kill([id]), 1);
  assert.equal((await end).outcome, "killed");
});

test("lists_go_through_all_pages", async () => {
  const queue = client.queue<number>("paged");
  const puts = await queue.putMany(Array.from({ length: 250 }, (_, number) => number));
  assert.equal(new Set(puts.map(({ id }) => id)).size, 250);
  const seen: number[] = [];
  for await (const task of queue.scan({ pageSize: 100 })) seen.push(task.payload);
  assert.equal(seen.length, 250);
  const jobs = await queue.takeMany(2);
  const leases = [];
  for await (const lease of queue.leases()) leases.push(lease);
  assert.deepEqual(leases.map(({ id }) => id), jobs.map(({ id }) => id));
  assert.equal(leases[0]?.name, "tests");
  const names = [];
  for await (const name of client.queueNames({ prefix: "pag" })) names.push(name);
  assert.deepEqual(names, ["paged"]);
  const why = await queue.explain(jobs[0]?.id);
  assert.equal(why.reasons[0]?.code, "taken");
  const records = [];
  for await (const record of queue.exportRecords()) records.push(record);
  assert.equal(records.length, 250);
  assert.equal(await queue.truncate(), 250);
  assert.ok(records[0]);
  assert.ok(await client.queue("imported").importRecord(records[0]));
  await queue.drop();
});

test("settings_and_pauses_are_shown", async () => {
  const queue = client.queue("settings");
  await queue.set({ rate: { count: 5, perMs: 1_000 }, ttrMs: 500, capacity: 1, limit: null });
  const settings = await queue.show();
  assert.deepEqual(settings.rate, { count: 5, perMs: 1_000 });
  assert.equal(settings.ttrMs, 500);
  assert.equal(settings.limit, null);
  assert.equal(settings.releaseFails, false);
  await queue.put(1);
  await assert.rejects(queue.put(2), (error) => isRefused(error, "FULL"));
  await assert.rejects(queue.put(2, { roomMs: 10 }), (error) => isRefused(error, "FULL"));
  await queue.pause("in", { forMs: 60_000 });
  assert.equal((await queue.show()).paused, "in");
  await queue.resume();
  assert.equal((await queue.stats())["present"], 1);
  assert.equal(typeof (await client.stats())["put"], "number");
  await queue.drop();
  await assert.rejects(queue.show(), (error) => isRefused(error, "NOQUEUE"));
});

test("several_queues_are_tried_in_order", async () => {
  const [urgent, usual] = [client.queue<string>("{s}1"), client.queue<string>("{s}2")];
  await usual.put("usual");
  await urgent.put("urgent");
  const jobs = await client.takeFrom([urgent, usual], { count: 2 });
  assert.deepEqual(jobs.map(({ queue, payload }) => [queue, payload]), [
    ["{s}1", "urgent"],
    ["{s}2", "usual"],
  ]);
  for (const job of jobs) await job.release({ toTail: true });
  assert.equal(await urgent.snatch((await urgent.take())?.id ?? ""), "R");
});

test("transaction_happens_as_a_whole_or_not_at_all", async () => {
  const [orders, parcels] = [client.queue<string>("orders"), client.queue<string>("parcels")];
  await orders.put("17");
  const job = await orders.take();
  assert.ok(job);
  const step = () => client.transaction((all) => all.ack(job).put(parcels, "17", { priority: 1 }));
  const [acked, id] = await step();
  assert.equal(acked, "OK");
  assert.equal(typeof id, "string");
  await assert.rejects(step(), (error) => {
    assert.ok(error instanceof Refused);
    assert.equal(error.kind, "EXECABORT");
    assert.equal(error.position, 0);
    return isRefused(error.cause, "STALE");
  });
  assert.equal((await parcels.popMany(9)).length, 1);
  await assert.rejects(client.transaction(async () => undefined), PinpriqError);
});

test("schedule_puts_tasks", async () => {
  const queue = client.queue<string>("{n}reports");
  const at = Date.now() + 3_600_000;
  const every = { everyMs: 86_400_000, at };
  const next = await client.schedules.set("{n}nightly", queue, "sales", every);
  assert.ok(Math.abs(next - at) < 60_000);
  await client.schedules.pause("{n}nightly");
  assert.equal((await client.schedules.show("{n}nightly")).isPaused, true);
  await client.schedules.resume("{n}nightly");
  const id = await client.schedules.fire("{n}nightly");
  const info = await client.schedules.show("{n}nightly");
  assert.deepEqual([info.queue, info.isPaused, info.lastId], ["{n}reports", false, id]);
  assert.equal(info.bytes.toString(), '"sales"');
  assert.equal(info.everyMs, 86_400_000);
  assert.equal((await queue.get(id))?.meta?.schedule, "{n}nightly");
  const names = [];
  for await (const name of client.schedules.list()) names.push(name);
  assert.deepEqual(names, ["{n}nightly"]);
  assert.equal(await client.schedules.drop("{n}nightly"), true);
  assert.equal(await client.schedules.drop("{n}nightly"), false);
});

test("aborted_take_throws_the_reason_and_loses_no_task", async () => {
  const queue = client.queue<string>("aborted");
  const control = new AbortController();
  const taken = queue.take({ waitMs: Number.POSITIVE_INFINITY, signal: control.signal });
  const isBlocked = async () => (await queue.stats())["takers"] === 1;
  while (!(await isBlocked()));
  control.abort(new Error("enough"));
  await assert.rejects(taken, /enough/);
  assert.equal((await queue.stats())["takers"], 0);
  await assert.rejects(queue.take({ signal: control.signal }), /enough/);
  await queue.put("kept");
  assert.equal((await queue.pop())?.payload, "kept");
});

test("take_that_is_given_up_while_it_connects_leaves_no_connection", async () => {
  const connections = async () => {
    return String(await client.command(["CLIENT", "LIST"])).trim().split("\n").length;
  };
  const before = await connections();
  const other = await Client.connect(server.url);
  for (let round = 0; round < 10; round++) {
    const control = new AbortController();
    const taken = other.queue("brief").take({ waitMs: 60_000, signal: control.signal });
    control.abort(new Error("enough"));
    await assert.rejects(taken, /enough/);
  }
  await other.close();
  while ((await connections()) > before);
});
