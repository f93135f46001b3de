// Lost replies, lost servers, and what is sent again then.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, Closed, ConnectionLost, isRefused, type Queue, text } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { Server } from "./server.js";
import { Seen } from "./waiting.js";

let server: Server;
let proxy: Proxy;
let client: Client;
// Asks the server without the proxy.
let direct: Client;

before(async () => {
  server = await Server.start();
  proxy = await Proxy.start(server.port);
  client = await Client.connect(proxy.url, { reconnectPauseMaxMs: 100 });
  direct = await Client.connect(server.url);
});

after(async () => {
  await client?.close();
  await direct?.close();
  await proxy?.stop();
  await server?.stop();
});

function pair(name: string): [Queue<string>, Queue<string>] {
  return [client.queue(name, { codec: text }), direct.queue(name, { codec: text })];
}

test("put_whose_reply_is_lost_makes_one_task", async () => {
  const [queue, seen] = pair("lost");
  const lost = proxy.loseReplies("PUT", 2);
  const put = await queue.put("once");
  await lost;
  assert.deepEqual([put.isNew, put.repeated], [true, true]);
  const tasks = await seen.popMany(9);
  assert.deepEqual(tasks.map(({ id, payload }) => [id, payload]), [[put.id, "once"]]);
  assert.equal((await seen.stats())["duplicates"], 2);
});

test("put_whose_task_is_finished_before_it_is_sent_again_makes_no_second_one", async () => {
  const [queue, seen] = pair("finished");
  const worker = seen.process(() => undefined);
  const lost = proxy.loseReplies("PUT", 3);
  const put = await queue.putAndAwait("once", { waitMs: 20_000 });
  await lost;
  await worker.stop();
  assert.equal(put.repeated, true);
  // It is no longer known how it ended.
  assert.equal(put.outcome, null);
  assert.equal((await seen.stats())["put"], 1);
});

test("many_puts_over_lost_replies_and_cut_connections_make_each_task_once", async () => {
  const [queue, seen] = pair("many");
  const payloads = Array.from({ length: 300 }, (_, number) => `task ${number}`);
  for (let at = 0; at < payloads.length; at += 30) {
    const lost = proxy.loseReplies("PUT");
    const puts = queue.putMany(payloads.slice(at, at + 30));
    await lost;
    proxy.cut();
    await puts;
  }
  const tasks = await seen.popMany(1_000);
  assert.deepEqual(tasks.map(({ payload }) => payload).sort(), payloads.sort());
});

test("put_that_is_refused_with_unknown_is_sent_again", async () => {
  const [queue, seen] = pair("unknown");
  const replaced = proxy.replaceReply("PUT", "-UNKNOWN the owner of the shard has changed");
  const put = await queue.put("once");
  await replaced;
  assert.deepEqual([put.isNew, put.repeated], [true, true]);
  assert.equal((await seen.popMany(9)).length, 1);
});

test("put_without_a_unique_key_is_not_sent_again", async () => {
  const [queue, seen] = pair("plain");
  void proxy.loseReplies("PUT");
  await assert.rejects(queue.put("once", { unique: false }), (error) => {
    assert.ok(error instanceof ConnectionLost);
    return error.mayHaveHappened;
  });
  assert.equal((await seen.popMany(9)).length, 1);
  const unknown = "-UNKNOWN the owner of the shard has changed";
  void proxy.replaceReply("PUT", unknown);
  const refused = queue.put("once", { unique: false });
  await assert.rejects(refused, (error) => isRefused(error, "UNKNOWN"));
});

test("pop_whose_reply_is_lost_is_not_sent_again", async () => {
  const [queue, seen] = pair("popped");
  await seen.putMany(["first", "second"]);
  void proxy.loseReplies("POP");
  await assert.rejects(queue.pop(), ConnectionLost);
  assert.equal((await seen.pop())?.payload, "second");
});

test("ack_whose_reply_is_lost_says_that_it_was_repeated", async () => {
  const [queue, seen] = pair("acked");
  await seen.put("once");
  const job = await queue.take();
  void proxy.loseReplies("ACK");
  await assert.rejects(job?.ack() ?? assert.fail(), (error) => {
    return isRefused(error, "STALE") && error.repeated;
  });
  assert.equal(job?.settlement, "acked");
  assert.equal((await seen.stats())["acked"], 1);
});

test("request_that_was_not_carried_out_is_sent_again", async () => {
  const [queue, seen] = pair("moving");
  await seen.put("once");
  void proxy.replaceReply("PING", "-TRYAGAIN the owner of the shard is changing");
  await client.ping();
  assert.equal((await queue.pop())?.payload, "once");
});

test("silent_connection_is_replaced", async () => {
  const other = await Client.connect(proxy.url, { silenceMaxMs: 100 });
  const queue = other.queue<string>("silent");
  await queue.put("before");
  proxy.fallSilent();
  const put = await queue.put("after");
  assert.deepEqual([put.isNew, put.repeated], [true, true]);
  assert.equal((await queue.takeMany(9, { waitMs: 1_000 })).length, 2);
  // While a take blocks, the server has nothing to say.
  assert.equal(await queue.take({ waitMs: 300 }), null);
  await other.close();
});

test("requests_wait_for_a_server_that_is_away", async () => {
  const errors = new Seen<Error>();
  const other = await Client.connect(server.url, {
    reconnectPauseMaxMs: 100,
    onConnectionError: errors.add,
  });
  const queue = other.queue<string>("restart");
  await queue.put("before");
  const blocked = queue.take({ waitMs: 20_000, from: "max" });
  await (await blocked)?.release();
  await server.halt("SIGKILL");
  const put = queue.put("while away");
  await errors.until(() => true);
  await server.run();
  assert.equal((await put).isNew, true);
  const payloads = (await queue.popMany(9)).map(({ payload }) => payload);
  assert.deepEqual(payloads, ["before", "while away"]);
  await other.close();
});

test("request_without_a_server_ends_in_time", async () => {
  const nowhere = await Proxy.start(server.port);
  await nowhere.stop();
  const lonely = new Client(nowhere.url, { retryForMs: 200, reconnectPauseMaxMs: 20 });
  await assert.rejects(lonely.queue("q").put(1), (error) => {
    assert.ok(error instanceof ConnectionLost);
    return !error.mayHaveHappened;
  });
  await assert.rejects(Client.connect(nowhere.url, { retryForMs: 100 }), ConnectionLost);
  const signal = AbortSignal.timeout(20);
  const patient = new Client(nowhere.url);
  await assert.rejects(patient.ping({ signal }), { name: "TimeoutError" });
  await Promise.all([lonely.close(), patient.close()]);
});

test("closed_client_says_so", async () => {
  const other = await Client.connect(server.url);
  const queue = other.queue<string>("closed");
  await queue.take();
  const ended = assert.rejects(queue.take({ waitMs: 20_000 }), Closed);
  await other.close();
  await ended;
  await assert.rejects(queue.put("x"), Closed);
  await other.close();
});
