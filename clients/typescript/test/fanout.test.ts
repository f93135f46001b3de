// Topics and members, against a real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isRefused } from "../src/index.js";
import { started } from "./server.js";
import { events, latch, Seen } from "./waiting.js";

const { client } = await started();

test("each_member_gets_a_copy", async () => {
  const news = client.topic<string>("news");
  assert.equal(await news.publish("unheard"), 0);
  await using mailer = await news.join("mailer");
  await using archive = await news.join("archive", { leaseMs: 3_600_000 });
  assert.equal(await news.publish("the door is open", { priority: 3, ttlMs: 60_000 }), 2);
  const deadline = new Date(Date.now() - 1_000);
  assert.equal(await news.publish("too late", { deadline }), 0);
  const members = await news.members();
  assert.deepEqual(members.map(({ member, ready }) => [member, ready]), [
    ["archive", 1],
    ["mailer", 1],
  ]);
  const job = await mailer.take({ withMeta: true });
  assert.equal(job?.payload, "the door is open");
  assert.deepEqual([job?.queue, job?.meta?.priority], ["news", 3]);
  await job?.ack();
  assert.equal((await archive.stats())["present"], 1);
  assert.equal((await archive.peek())[0]?.payload, "the door is open");
  await archive.set({ capacity: 1 });
  assert.equal((await archive.show()).capacity, 1);
  assert.equal(await news.publish("again"), 1);
  assert.equal(await mailer.leave(), true);
  assert.equal(await archive.leaveAll(), 1);
  await assert.rejects(archive.take(), (error) => isRefused(error, "NOTFOUND"));
});

test("heartbeat_keeps_a_member_alive", async () => {
  const topic = client.topic<string>("beats");
  const rejoined = new Seen<number>();
  const member = await topic.join("m", { leaseMs: 300, onRejoined: rejoined.add });
  const first = (await topic.members())[0]?.leaseUntil ?? 0;
  for (let last = first; last < first + 600; ) {
    const [info] = await topic.members();
    assert.ok(info, "the member has ended");
    last = info.leaseUntil;
  }
  assert.deepEqual(rejoined.all, []);
  await member.leave();
});

test("member_that_has_ended_joins_again", async () => {
  const topic = client.topic<string>("ends");
  const rejoined = latch<number>();
  const member = await topic.join("m", { leaseMs: 200, onRejoined: rejoined.open });
  const before = member.incarnation;
  await client.command(["LEAVE", "m"]);
  assert.equal(await rejoined.promise, member.incarnation);
  assert.notEqual(member.incarnation, before);
  assert.equal(await topic.publish("heard"), 1);
  assert.equal((await member.pop())?.payload, "heard");
  await member.leave();
});

for (const prefetch of [0, 3]) {
  test(`worker_of_a_member_goes_on_after_its_lane_has_ended_with_prefetch_${prefetch}`, async () => {
    const topic = client.topic<string>("worked");
    const rejoined = latch<number>();
    const member = await topic.join("m", { onRejoined: rejoined.open });
    const done = new Seen<string>();
    const worker = member.process((job) => done.add(job.payload), { prefetch });
    await topic.publish("first");
    await done.until((payload) => payload === "first");
    await client.command(["LEAVE", "m"]);
    await rejoined.promise;
    await topic.publish("second");
    await done.until((payload) => payload === "second");
    await worker.stop();
    await member.leave();
  });
}

test("what_a_worker_of_a_member_has_not_started_is_called_back", async () => {
  const topic = client.topic<string>("recalled");
  const member = await topic.join("m");
  const gate = latch();
  const order: string[] = [];
  const seen = events<string>();
  const handler = (job: { payload: string }): Promise<void> => {
    order.push(job.payload);
    return gate.promise;
  };
  const worker = member.process(handler, { prefetch: 1, trace: seen.add });
  for (const payload of ["first", "late"]) await topic.publish(payload, { priority: 5 });
  await seen.until(({ type }) => type === "taken", 2);
  await topic.publish("urgent", { priority: 1 });
  await seen.until(({ type }) => type === "recalled");
  await seen.until(({ type }) => type === "taken", 3);
  gate.open();
  await seen.until(({ type }) => type === "acked", 3);
  await worker.stop();
  assert.deepEqual(order, ["first", "urgent", "late"]);
  await member.leave();
});
