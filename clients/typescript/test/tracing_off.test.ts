// A program that does not trace, or not yet, or with a tracer that is broken: nothing is added, and
// no put and no job notices.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProxyTracerProvider, trace, type TracerProvider } from "@opentelemetry/api";
import {
  InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { Client } from "../src/index.js";
import { Proxy } from "./proxy.js";
import { started } from "./server.js";
import { events } from "./waiting.js";

const { client, server } = await started();

// Puts a task and has it worked on. Returns its headers and what was sent meanwhile.
async function roundTrip(name: string): Promise<{ headers: string[]; sent: string }> {
  const proxy = await Proxy.start(server.port);
  const other = await Client.connect(proxy.url);
  let sent = "";
  proxy.onSent = (bytes) => (sent += bytes.toString());
  const queue = other.queue<string>(name);
  await queue.put("a");
  await queue.putMany(["b"]);
  await other.transaction((all) => all.put(queue, "c"));
  const seen = events<string>();
  const headers: string[] = [];
  await using worker = queue.process(
    (job) => {
      headers.push(...Object.keys(job.meta?.headers ?? {}));
      if (job.payload === "b" && job.meta?.attempts === 1) throw new Error("no");
    },
    { trace: seen.add, log: null, failDelayMs: () => 0 },
  );
  await seen.until(({ type }) => type === "acked", 3);
  await worker.stop();
  await other.close();
  await proxy.stop();
  return { headers, sent };
}

test("nothing_is_added_without_a_provider", async () => {
  const { headers, sent } = await roundTrip("off");
  assert.deepEqual(headers, []);
  assert.doesNotMatch(sent, /HEADERS|trace/);
});

test("provider_that_stands_for_none_is_none", async () => {
  for (const none of [new ProxyTracerProvider(), undefined]) {
    trace.setGlobalTracerProvider(none as TracerProvider);
    const { headers, sent } = await roundTrip("none");
    trace.disable();
    assert.deepEqual(headers, []);
    assert.doesNotMatch(sent, /HEADERS|trace/);
  }
});

test("provider_counts_from_when_it_is_set_until_it_is_disabled", async () => {
  const exporter = new InMemorySpanExporter();
  const processor = new SimpleSpanProcessor(exporter);
  const provider = new NodeTracerProvider({ spanProcessors: [processor] });
  provider.register();
  const queue = client.queue<string>("late");
  await queue.put("a");
  assert.ok((await queue.pop({ withMeta: true }))?.meta?.headers["traceparent"]);
  trace.disable();
  await queue.put("b");
  assert.deepEqual({ ...(await queue.pop({ withMeta: true }))?.meta?.headers }, {});
  assert.deepEqual(exporter.getFinishedSpans().map(({ name }) => name), ["put late"]);
  await provider.shutdown();
});

test("broken_tracer_harms_no_put_and_no_job", async () => {
  const broken = (): never => {
    throw new Error("a broken tracer");
  };
  const span = new globalThis.Proxy({}, { get: () => broken });
  const halfBroken = { startSpan: () => span };
  for (const getTracer of [broken, () => ({ startSpan: broken }), () => halfBroken]) {
    trace.setGlobalTracerProvider({ getTracer } as unknown as TracerProvider);
    const { headers } = await roundTrip("broken");
    trace.disable();
    assert.deepEqual(headers, []);
  }
});
