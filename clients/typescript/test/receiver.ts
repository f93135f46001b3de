// A receiver of OTLP over HTTP, to which the official SDK and its exporter send what a test traces.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { Seen } from "./waiting.js";

/** The numbers of OTLP for what spans are, and for how they ended. */
export const KIND = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 };
export const ERROR = 2;

type Value = string | number | boolean | undefined;

/** An event or a link of a span. */
interface Noted {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Record<string, Value>;
}

/** A span as it arrived. */
export interface Received {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Record<string, Value>;
  readonly events: readonly Noted[];
  readonly links: readonly Noted[];
  readonly status: { readonly code?: number; readonly message?: string };
  readonly traceState?: string;
  readonly scope: { readonly name: string; readonly version?: string };
}

/** Attributes as JSON has them. */
type Pairs = readonly { readonly key: string; readonly value: Record<string, Value> }[];

/** A span, an event or a link as JSON has it. */
type Raw<O> = Omit<O, "attributes" | "events" | "links" | "scope"> & {
  readonly attributes?: Pairs;
};

interface RawSpan extends Raw<Received> {
  readonly events?: readonly Raw<Noted>[];
  readonly links?: readonly Raw<Noted>[];
}

/** What an exporter sends. */
interface Export {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly scope: Received["scope"];
      readonly spans: readonly RawSpan[];
    }[];
  }[];
}

/** Starts to trace in this process, and returns what arrives at the receiver. */
export async function traced(): Promise<Seen<Received>> {
  const spans = new Seen<Received>();
  const server = createServer((request, response) => void receive(request, response, spans));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const exporter = new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces` });
  const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: 20 });
  const provider = new NodeTracerProvider({ spanProcessors: [processor] });
  provider.register();
  after(async () => {
    trace.disable();
    await provider.shutdown();
    server.close();
    server.closeAllConnections();
  });
  return spans;
}

async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  spans: Seen<Received>,
): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
  const { resourceSpans } = JSON.parse(Buffer.concat(pieces).toString()) as Export;
  for (const { scope, spans: some } of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)) {
    for (const span of some) spans.add(received(span, scope));
  }
}

function received(span: RawSpan, scope: Received["scope"]): Received {
  const noted = (some: readonly Raw<Noted>[] = []): Noted[] =>
    some.map((one) => ({ ...one, attributes: valuesOf(one.attributes) }));
  return {
    ...span,
    attributes: valuesOf(span.attributes),
    events: noted(span.events),
    links: noted(span.links),
    scope,
  };
}

function valuesOf(attributes: Pairs = []): Record<string, Value> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
