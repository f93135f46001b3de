// All contact with OpenTelemetry: a span for each put and for each attempt of a worker, and events
// of the span that is current. Tasks that are taken by hand and schedules have none.
//
// Nothing is imported. What the program has set is where every copy of OpenTelemetry's API, of
// either module format, keeps it and finds it. So a program without it needs nothing, a bundle
// needs nothing declared, and there is no second copy that could miss the provider. Whatever goes
// wrong in a tracer is no concern of a put or a job.
import type {
  Attributes, ContextManager, Span, SpanKind, SpanOptions, SpanStatusCode, Tracer, TracerProvider,
} from "@opentelemetry/api";
import type { Address } from "./addresses.js";
import { Elsewhere, NOWHERE } from "./contexts.js";
import { Refused } from "./errors.js";
import { reasonOf } from "./failing.js";
import type { Job } from "./job.js";
import type { StateOrGone } from "./replies.js";
import { contextOf, withContext } from "./trace_context.js";
import type { Headers } from "./words.js";

/** The version of this package, as its manifest has it. */
export const VERSION = "0.1.0";

const API = Symbol.for("opentelemetry.js.api.1");
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");
const PRODUCER: SpanKind.PRODUCER = 3;
const CONSUMER: SpanKind.CONSUMER = 4;
const ERROR: SpanStatusCode.ERROR = 2;
const REASON_LENGTH_MAX = 200;

/** What a program has set, as OpenTelemetry's API keeps it. Before that there is nothing. */
interface Program {
  readonly trace?: TracerProvider;
  readonly context?: ContextManager;
}

/** What is sent, and where to. The server is left out where it is not known. */
export interface Sending {
  readonly what: "put" | "publish";
  readonly to: string;
  readonly server?: Address | undefined;
  /** How many tasks there are, if it is a batch. */
  readonly count?: number | undefined;
}

let provider: TracerProvider | undefined;
let tracer: Tracer | undefined;

/** Returns what makes spans, or undefined while the program does not trace. */
export function tracerOfProgram(): Tracer | undefined {
  const found = program()?.trace;
  if (found === undefined) return undefined;
  if (found !== provider) {
    tracer = quietly(() => found.getTracer("pinpriq", VERSION));
    provider = tracer && found;
  }
  return tracer;
}

/** Sends within a span, whose context goes into the headers. `idOf` tells the id of the task. */
export async function sendTraced<R>(
  by: Tracer,
  sending: Sending,
  headers: Headers | undefined,
  send: (headers: Headers | undefined) => Promise<R>,
  idOf?: (result: R) => string,
): Promise<R> {
  const span = begun(by, sending, "send");
  try {
    const result = await send(headersWith(headers, span));
    quietly(() => idOf && span?.setAttribute("messaging.message.id", idOf(result)));
    return result;
  } catch (error) {
    const kind = quietly(() => (error instanceof Refused ? error.kind : undefined));
    noteFailure(span, error, kind ?? classOf(error));
    throw error;
  } finally {
    quietly(() => span?.end());
  }
}

/** Returns the headers of a task that is sent later, with the context of a span that has ended. */
export function headersForLater(sending: Sending, headers?: Headers): Headers | undefined {
  const by = tracerOfProgram();
  const span = by && begun(by, sending, "create");
  quietly(() => span?.end());
  return headersWith(headers, span);
}

/** The span of one attempt. */
export class Attempt {
  readonly #span: Span | undefined;

  /** Begins the span. Its parent is what the headers of the task name, and nothing else. */
  constructor(by: Tracer, job: Job<unknown>, member: string | null) {
    this.#span = quietly(() => {
      const attributes = commonAttributes("process", "process", job.queue);
      attributes["messaging.message.id"] = job.id;
      attributes["messaging.pinpriq.attempt"] = job.attempts;
      if (member !== null) attributes["messaging.destination.subscription.name"] = member;
      const parent = contextOf(job.headers);
      const options: SpanOptions = { kind: CONSUMER, attributes };
      if (parent) options.links = [{ context: parent }];
      const around = parent ? NOWHERE.setValue(SPAN, new Elsewhere(parent)) : NOWHERE;
      return by.startSpan(`process ${job.queue}`, options, around);
    });
  }

  /** Works while the span is current, and ends it. */
  async run(work: () => Promise<void>): Promise<void> {
    let working: Promise<void> | undefined;
    quietly(() => {
      const inSpan = NOWHERE.setValue(SPAN, this.#span);
      program()?.context?.with(inSpan, () => (working = work()));
    });
    try {
      await (working ?? work());
    } finally {
      quietly(() => this.#span?.end());
    }
  }

  /** Notes that the attempt was broken off because its task was cancelled, which is no failure. */
  noteCancelled(): void {
    quietly(() => this.#span?.setAttribute("pinpriq.cancelled", true));
  }

  /** Notes that the attempt has failed. */
  fail(error: unknown): void {
    const type = classOf(error);
    const known = quietly(() => error instanceof Error) ? (error as Error) : undefined;
    quietly(() => this.#span?.recordException(known ?? { name: type, message: reasonOf(error) }));
    noteFailure(this.#span, error, type);
  }
}

/** Notes in the span that is current that a task is given up, if it is. */
export function noteState(state: StateOrGone, reason: string | undefined): void {
  if (state !== "X" && state !== "B") return;
  const why = reason?.slice(0, REASON_LENGTH_MAX);
  noteEvent("pinpriq.dead_letter", { "pinpriq.state": state, "pinpriq.reason": why });
}

/** Notes in the span that is current that dead letters of a queue have moved back. */
export function noteRedrive(queue: string, count: number): void {
  noteEvent("pinpriq.redrive", { "messaging.destination.name": queue, "pinpriq.count": count });
}

function program(): Program | undefined {
  return (globalThis as { [API]?: Program })[API];
}

function begun(by: Tracer, { what, to, server, count }: Sending, type: string): Span | undefined {
  return quietly(() => {
    const attributes = commonAttributes(what, type, to);
    if (count !== undefined) attributes["messaging.batch.message_count"] = count;
    if (server) {
      attributes["server.address"] = server.host;
      attributes["server.port"] = server.port;
    }
    return by.startSpan(`${what} ${to}`, { kind: PRODUCER, attributes });
  });
}

function commonAttributes(name: string, type: string, place: string): Attributes {
  return {
    "messaging.system": "pinpriq",
    "messaging.operation.name": name,
    "messaging.operation.type": type,
    "messaging.destination.name": place,
  };
}

function headersWith(headers: Headers | undefined, span: Span | undefined): Headers | undefined {
  return quietly(() => span && withContext(headers, span.spanContext())) ?? headers;
}

function noteFailure(span: Span | undefined, error: unknown, type: string): void {
  quietly(() => {
    span?.setStatus({ code: ERROR, message: reasonOf(error) });
    span?.setAttribute("error.type", type);
  });
}

function noteEvent(name: string, attributes: Attributes): void {
  quietly(() => {
    const span = program()?.context?.active().getValue(SPAN) as Span | undefined;
    if (span?.isRecording()) span.addEvent(name, attributes);
  });
}

// Anything can be thrown, also what has no class.
function classOf(error: unknown): string {
  return quietly(() => (error as object).constructor.name) || "_OTHER";
}

function quietly<R>(trace: () => R): R | undefined {
  try {
    return trace();
  } catch {
    return undefined;
  }
}
