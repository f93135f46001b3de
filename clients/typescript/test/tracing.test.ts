// Traces as they arrive at a receiver of OTLP, to which the official SDK sends what the client and
// its workers do with a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Attributes, SpanStatusCode, trace } from "@opentelemetry/api";
import { isRefused, type Queue } from "../src/index.js";
import { ERROR, KIND, type Received, traced } from "./receiver.js";
import { started } from "./server.js";
import { events } from "./waiting.js";

const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };
const PARENT = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";

const { client, server } = await started();
const spans = await traced();
const program = trace.getTracer("the program");

// Works within a span of the program, and returns its trace.
async function within(work: () => Promise<unknown>): Promise<string> {
  return program.startActiveSpan("GET /order", async (span) => {
    await work();
    span.end();
    return span.spanContext().traceId;
  });
}

// Waits for so many spans of this name, and returns them in the order in which they ended.
async function named(name: string, count = 1): Promise<Received[]> {
  return await spans.until((span) => span.name === name, count);
}

// Works on a queue until so many jobs are acknowledged.
async function work<T>(queue: Queue<T>, count = 1, handler = (): void => undefined): Promise<void> {
  const seen = events<T>();
  await using worker = queue.process(handler, { trace: seen.add, log: null });
  await seen.until(({ type }) => type === "acked", count);
  await worker.stop();
}

function common(name: string, type: string, place: string): Attributes {
  return {
    "messaging.system": "pinpriq",
    "messaging.operation.name": name,
    "messaging.operation.type": type,
    "messaging.destination.name": place,
  };
}

const place = { "server.address": "127.0.0.1", "server.port": server.port };

test("way_of_a_task_is_one_trace_from_the_request_to_the_end", async () => {
  const queue = client.queue<string>("orders");
  const dead = client.queue<string>("{orders}-dead");
  await queue.set({ attempts: 2, backoffMs: 1, deadLetter: dead.name });
  const broken = new TypeError(`no stock ${"x".repeat(300)}`);
  let runs = 0;
  const handler = (): void => {
    program.startSpan("look into the stock").end();
    if (++runs <= 2) throw broken;
  };
  const seen = events<string>();
  await using worker = queue.process(handler, { trace: seen.add, log: null });
  let id = "";
  const traceId = await within(async () => (id = (await queue.put("one")).id));
  await seen.until((event) => event.type === "failed" && event.state === "X");
  await program.startActiveSpan("redrive", async (span) => {
    assert.equal(await dead.redrive(), 1);
    span.end();
  });
  await seen.until(({ type }) => type === "acked");
  await worker.stop();

  const [request] = await named("GET /order");
  const [put] = await named("put orders");
  const attempts = await named("process orders", 3);
  const inner = await named("look into the stock", 3);
  const [redrive] = await named("redrive");
  assert.ok(request && put && redrive);
  assert.equal(put.parentSpanId, request.spanId);
  assert.equal(put.kind, KIND.producer);
  assert.deepEqual(put.scope, { name: "pinpriq", version });
  const expected = { ...common("put", "send", "orders"), ...place, "messaging.message.id": id };
  assert.deepEqual(put.attributes, expected);
  assert.deepEqual([put.links, put.events, put.status.code ?? 0], [[], [], 0]);

  for (const [at, attempt] of attempts.entries()) {
    assert.equal(attempt.traceId, traceId);
    assert.equal(attempt.parentSpanId, put.spanId);
    assert.equal(attempt.kind, KIND.consumer);
    assert.deepEqual(attempt.links.map((link) => [link.traceId, link.spanId]), [
      [traceId, put.spanId],
    ]);
    const { "error.type": type, "messaging.message.id": message, ...rest } = attempt.attributes;
    const number = at < 2 ? at + 1 : 1;
    const attributes = { ...common("process", "process", "orders") };
    assert.deepEqual(rest, { ...attributes, "messaging.pinpriq.attempt": number });
    assert.equal(type, at < 2 ? "TypeError" : undefined);
    if (at < 2) assert.equal(message, id);
    const status = at < 2 ? { code: ERROR, message: broken.message } : {};
    assert.deepEqual({ ...attempt.status, code: attempt.status.code || undefined }, {
      code: undefined, ...status,
    });
    assert.equal(inner[at]?.parentSpanId, attempt.spanId);
  }
  const [first, second, third] = attempts.map((attempt) => attempt.events);
  assert.deepEqual(first?.map(({ name }) => name), ["exception"]);
  assert.equal(first?.[0]?.attributes["exception.type"], "TypeError");
  assert.deepEqual(second?.map(({ name }) => name), ["exception", "pinpriq.dead_letter"]);
  const left = { "pinpriq.state": "X", "pinpriq.reason": broken.message.slice(0, 200) };
  assert.deepEqual(second?.[1]?.attributes, left);
  assert.deepEqual(third, []);
  const redriven = { "messaging.destination.name": dead.name, "pinpriq.count": 1 };
  assert.deepEqual(redrive.events.map(({ name, attributes }) => [name, attributes]), [
    ["pinpriq.redrive", redriven],
  ]);
});

test("tasks_of_one_put_many_have_one_span_and_each_its_context", async () => {
  const queue = client.queue<number>("many");
  const traceId = await within(() => queue.putMany([1, 2, 3]));
  const [put] = await named("put many");
  assert.equal(put?.traceId, traceId);
  const expected = { ...common("put", "send", "many"), ...place };
  assert.deepEqual(put?.attributes, { ...expected, "messaging.batch.message_count": 3 });
  await work(queue, 3);
  for (const attempt of await named("process many", 3)) {
    assert.deepEqual([attempt.traceId, attempt.parentSpanId], [traceId, put?.spanId]);
  }
  assert.equal(spans.all.filter(({ name }) => name === "put many").length, 1);
});

test("puts_of_a_transaction_have_spans_that_end_at_once", async () => {
  const queue = client.queue<number>("{t}-queue");
  const topic = client.topic<number>("{t}-topic");
  const member = await topic.join("mailer", { heartbeat: false });
  const traceId = await within(() =>
    client.transaction((all) => all.put(queue, 1).publish(topic, 2)),
  );
  const [put] = await named("put {t}-queue");
  const [publish] = await named("publish {t}-topic");
  assert.deepEqual(put?.attributes, common("put", "create", "{t}-queue"));
  assert.deepEqual(publish?.attributes, common("publish", "create", "{t}-topic"));
  assert.deepEqual([put?.traceId, publish?.traceId], [traceId, traceId]);
  await work(queue);
  assert.equal((await named("process {t}-queue"))[0]?.parentSpanId, put?.spanId);
  const job = await member.take({ withMeta: true });
  const { headers } = job?.meta ?? {};
  assert.equal(headers?.["traceparent"], `00-${traceId}-${publish?.spanId}-01`);
  await member.leave();
});

test("attempt_of_a_member_names_the_topic_and_the_member", async () => {
  const topic = client.topic<string>("alerts");
  const member = await topic.join("mailer", { heartbeat: false });
  const seen = events<string>();
  for (const prefetch of [0, 4]) {
    const traceId = await within(() => topic.publish("fire"));
    await using worker = member.process(() => undefined, { prefetch, trace: seen.add, log: null });
    await seen.until(({ type }) => type === "acked", prefetch === 0 ? 1 : 2);
    await worker.stop();
    const [publish] = (await named("publish alerts", prefetch === 0 ? 1 : 2)).slice(-1);
    const [attempt] = (await named("process alerts", prefetch === 0 ? 1 : 2)).slice(-1);
    const published = { ...common("publish", "send", "alerts"), ...place };
    assert.deepEqual(publish?.attributes, published);
    assert.deepEqual([publish?.kind, publish?.traceId], [KIND.producer, traceId]);
    assert.equal(attempt?.parentSpanId, publish?.spanId);
    const { "messaging.message.id": id, ...rest } = attempt?.attributes ?? {};
    assert.ok(id);
    assert.deepEqual(rest, {
      ...common("process", "process", "alerts"),
      "messaging.destination.subscription.name": "mailer",
      "messaging.pinpriq.attempt": 1,
    });
  }
  await member.leave();
});

test("put_that_is_refused_or_cannot_be_written_says_why", async () => {
  const queue = client.queue<unknown>("full");
  await queue.set({ capacity: 1 });
  await queue.put(1);
  await assert.rejects(queue.put(2), (error) => isRefused(error, "FULL"));
  await assert.rejects(queue.put(undefined), { name: "BadPayload" });
  const [, refused, unwritten] = await named("put full", 3);
  assert.equal(refused?.attributes["error.type"], "FULL");
  assert.equal(refused?.status.code, ERROR);
  assert.match(refused?.status.message ?? "", /^FULL /);
  assert.deepEqual([unwritten?.attributes["error.type"], unwritten?.status.code], [
    "BadPayload", ERROR,
  ]);
});

test("task_that_is_given_up_says_so_in_the_attempt", async () => {
  const queue = client.queue<string>("given-up");
  await queue.putBuried("set aside");
  const [buried] = await named("put given-up");
  assert.deepEqual([buried?.attributes["messaging.operation.type"]], ["send"]);
  await queue.put("bad");
  const seen = events<string>();
  await using worker = queue.process((job) => job.bury("no use"), { trace: seen.add, log: null });
  await seen.until(({ type }) => type === "settled");
  await worker.stop();
  const [attempt] = await named("process given-up");
  assert.deepEqual(attempt?.events.map(({ name, attributes }) => [name, attributes]), [
    ["pinpriq.dead_letter", { "pinpriq.state": "B", "pinpriq.reason": "no use" }],
  ]);
  assert.equal(attempt?.status.code ?? SpanStatusCode.UNSET, SpanStatusCode.UNSET);

  const deadly = client.queue<string>("deadly");
  await deadly.put("deadly");
  for (let time = 0; time < 5; time++) await (await deadly.take())?.fail("the process ended");
  await using other = deadly.process(() => assert.fail("it was run"), {
    trace: seen.add,
    log: null,
  });
  await seen.until((event) => event.type === "failed" && event.state === "B");
  await other.stop();
  const [unrun] = await named("process deadly");
  assert.deepEqual(unrun?.events.map(({ name }) => name), ["exception", "pinpriq.dead_letter"]);
  assert.equal(unrun?.status.code, ERROR);
});

test("attempt_whose_task_is_cancelled_has_not_failed", async () => {
  const queue = client.queue<string>("unwanted", { ttrMs: 3_600_000 });
  // The second one settles its job itself.
  for (const settles of [false, true]) {
    const { id } = await queue.put("a");
    const seen = events<string>();
    await using worker = queue.process(async (job, { signal }) => {
      if (!signal.aborted) await once(signal, "abort");
      if (settles) await job.fail("stopped");
      throw signal.reason;
    }, { prefetch: 1, trace: seen.add, log: null });
    await seen.until(({ type }) => type === "started");
    await queue.cancel(id);
    await seen.until(({ type }) => type === (settles ? "settled" : "released"));
    await worker.stop();
  }
  for (const attempt of await named("process unwanted", 2)) {
    assert.equal(attempt.attributes["pinpriq.cancelled"], true);
    assert.equal(attempt.attributes["error.type"], undefined);
    assert.equal(attempt.status.code ?? SpanStatusCode.UNSET, SpanStatusCode.UNSET);
    assert.deepEqual(attempt.events, []);
  }
});

test("anything_that_is_thrown_is_told", async () => {
  const queue = client.queue<number>("thrown");
  const things: unknown[] = ["a text", undefined, Object.create(null)];
  await queue.putMany(things.map((_, at) => at));
  const seen = events<number>();
  const options = { trace: seen.add, log: null, failDelayMs: () => 60_000 };
  const handler = (job: { payload: number }): void => { throw things[job.payload]; };
  await using worker = queue.process(handler, options);
  await seen.until(({ type }) => type === "failed", things.length);
  await worker.stop();
  const attempts = await named("process thrown", things.length);
  const types = attempts.map(({ attributes }) => attributes["error.type"]);
  assert.deepEqual(types, ["String", "_OTHER", "_OTHER"]);
  assert.ok(attempts.every(({ status }) => status.code === ERROR));
  assert.equal(attempts[0]?.events[0]?.attributes["exception.message"], "a text");
});

test("trace_that_the_caller_names_stands", async () => {
  const queue = client.queue<string>("own");
  await queue.put("a", { headers: { traceparent: PARENT, tenant: "acme" } });
  const [task] = await queue.peek();
  assert.deepEqual({ ...task?.meta?.headers }, { traceparent: PARENT, tenant: "acme" });
  await work(queue);
  const [attempt] = await named("process own");
  assert.equal(attempt?.traceId, PARENT.split("-")[1]);
  assert.equal(attempt?.parentSpanId, PARENT.split("-")[2]);
});

test("tracestate_travels_with_the_task", async () => {
  const queue = client.queue<string>("state");
  const tracestate = "last=1,first=a b,=wrong,none";
  await queue.put("a", { headers: { traceparent: PARENT, tracestate } });
  const next = client.queue<string>("state-next");
  const seen = events<string>();
  await using worker = queue.process(async (job) => void (await next.put(job.payload)), {
    trace: seen.add,
    log: null,
  });
  await seen.until(({ type }) => type === "acked");
  await worker.stop();
  const [attempt] = await named("process state");
  assert.equal(attempt?.traceState, "last=1,first=a b");
  const [put] = await named("put state-next");
  assert.equal(put?.parentSpanId, attempt?.spanId);
  const headers = (await next.peek())[0]?.meta?.headers;
  assert.equal(headers?.["tracestate"], "last=1,first=a b");
  assert.equal(headers?.["traceparent"]?.split("-")[1], PARENT.split("-")[1]);
});

test("what_does_not_fit_is_left_out", async () => {
  const queue = client.queue<string>("tight", {});
  const source = client.queue<string>("tight-source");
  const tracestate = `long=${"v".repeat(256)}`;
  await source.put("a", { headers: { traceparent: PARENT, tracestate } });
  const names = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`h${at}`, "v"]));
  const filled = (free: number): Record<string, string> => {
    const headers: Record<string, string> = { a: "", b: "", c: "", d: "" };
    const bytes = 4_096 - free - 4;
    for (const name in headers) headers[name] = "v".repeat(Math.floor(bytes / 4));
    return { ...headers, d: `${headers["d"]}${"v".repeat(bytes % 4)}` };
  };
  const state = "tracestate".length + tracestate.length;
  const parent = "traceparent".length + PARENT.length;
  const cases: [Record<string, string>, string[]][] = [
    [names(14), ["traceparent", "tracestate"]],
    [names(15), ["traceparent"]],
    [names(16), []],
    [filled(parent + state), ["traceparent", "tracestate"]],
    [filled(parent + state - 1), ["traceparent"]],
    [filled(parent), ["traceparent"]],
    [filled(parent - 1), []],
  ];
  const found: string[][] = [];
  const seen = events<string>();
  await using worker = source.process(async () => {
    for (const [headers] of cases) {
      await queue.put("b", { headers });
      const put = (await queue.pop({ withMeta: true }))?.meta?.headers ?? {};
      for (const [name, value] of Object.entries(headers)) assert.equal(put[name], value);
      found.push(Object.keys(put).filter((name) => name.startsWith("trace")).sort());
    }
  }, { trace: seen.add, log: null });
  await seen.until(({ type }) => type === "acked" || type === "failed");
  await worker.stop();
  assert.deepEqual(found, cases.map(([, left]) => left));
});

test("trace_that_cannot_be_read_does_no_harm", async () => {
  const queue = client.queue<string>("unreadable");
  const wrong = [
    "", "nonsense", `${PARENT}-more`, PARENT.replace("00-", "ff-"), PARENT.toUpperCase(),
    PARENT.replace(/-01$/, ""), `00-${"0".repeat(32)}-0123456789abcdef-01`,
    `00-0123456789abcdef0123456789abcdef-${"0".repeat(16)}-01`,
  ];
  for (const traceparent of wrong) {
    const tracestate = "\u0000,=,===";
    await queue.put("a", { headers: { traceparent, tracestate } });
  }
  await queue.put("later", { headers: { traceparent: `01${PARENT.slice(2)}-more` } });
  await work(queue, wrong.length + 1);
  const attempts = await named("process unreadable", wrong.length + 1);
  const later = attempts.pop();
  assert.equal(later?.parentSpanId, PARENT.split("-")[2]);
  for (const attempt of attempts) {
    assert.deepEqual([attempt.parentSpanId, attempt.links], [undefined, []]);
  }
  assert.equal(new Set(attempts.map(({ traceId }) => traceId)).size, wrong.length);
});

test("attempt_knows_nothing_of_where_its_worker_was_started", async () => {
  const queue = client.queue<string>("ambient");
  await queue.put("plain", { headers: { traceparent: "none" } });
  const traceId = await within(() => work(queue));
  const [attempt] = await named("process ambient");
  assert.notEqual(attempt?.traceId, traceId);
});

test("schedules_and_tasks_that_are_taken_by_hand_have_no_span", async () => {
  const queue = client.queue<string>("by-hand");
  await within(async () => {
    await client.schedules.set("{by-hand}-each", queue, "due", { everyMs: 3_600_000 });
    await client.schedules.fire("{by-hand}-each");
    const job = await queue.take({ withMeta: true });
    assert.deepEqual({ ...job?.meta?.headers }, {});
    await job?.ack();
    await client.schedules.drop("{by-hand}-each");
    await queue.put("last");
  });
  await named("put by-hand");
  assert.ok(!spans.all.some(({ name }) => name !== "put by-hand" && name.includes("by-hand")));
});
