// The context of a trace in the headers of a task, in the form that the W3C gives it. It knows no
// tracer, and never the propagator of the program, which may use other names or send more.
import type { SpanContext, TraceState } from "@opentelemetry/api";
import type { Headers } from "./words.js";

const PARENT = "traceparent";
const STATE = "tracestate";
const PARENT_FORM =
  /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32})-((?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;
const MEMBER_FORM = /^[\da-z][\w*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}$/;
const STATE_LENGTH_MAX = 512;
const MEMBERS_MAX = 32;

// What the server takes of headers.
const HEADERS_MAX = 16;
const VALUE_BYTES_MAX = 1_024;
const ALL_BYTES_MAX = 4_096;

/** Returns the context that headers name, or undefined if there is none that can be read. */
export function contextOf(headers: Readonly<Record<string, string>>): SpanContext | undefined {
  const found = PARENT_FORM.exec(headers[PARENT] ?? "");
  if (!found) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = found;
  // A later version may say more, this one may not.
  if (version === "00" && more !== undefined) return undefined;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  const members = membersOf(headers[STATE] ?? "");
  return members.length === 0 ? context : { ...context, traceState: new State(members) };
}

/** Returns headers with a context, as far as it fits. What they say of a trace stays. */
export function withContext(headers: Headers = {}, context: SpanContext): Headers {
  if (headers[PARENT] !== undefined) return headers;
  const flags = context.traceFlags.toString(16).padStart(2, "0");
  const parent = `00-${context.traceId}-${context.spanId}-${flags}`;
  // That of a tracer which does nothing is no context.
  if (!PARENT_FORM.test(parent)) return headers;
  const state = context.traceState?.serialize();
  const small: Headers = { ...headers, [PARENT]: parent };
  const whole: Headers = state ? { [STATE]: state, ...small } : small;
  return [whole, small].find(fits) ?? headers;
}

function fits(headers: Headers): boolean {
  const pairs = Object.entries(headers);
  let bytes = 0;
  for (const [name, value] of pairs) {
    const length = Buffer.byteLength(value);
    if (length > VALUE_BYTES_MAX) return false;
    bytes += Buffer.byteLength(name) + length;
  }
  return pairs.length <= HEADERS_MAX && bytes <= ALL_BYTES_MAX;
}

function membersOf(state: string): string[] {
  if (state.length > STATE_LENGTH_MAX) return [];
  const members = state.split(",").map((member) => member.trim());
  return members.filter((member) => MEMBER_FORM.test(member)).slice(0, MEMBERS_MAX);
}

// What tracers on the way have noted, the last one first.
class State implements TraceState {
  readonly #members: readonly string[];

  constructor(members: readonly string[]) {
    this.#members = members;
  }

  get(key: string): string | undefined {
    return this.#members.find((member) => member.startsWith(`${key}=`))?.slice(key.length + 1);
  }

  set(key: string, value: string): State {
    return new State([`${key}=${value}`, ...this.unset(key).#members]);
  }

  unset(key: string): State {
    return new State(this.#members.filter((member) => !member.startsWith(`${key}=`)));
  }

  serialize(): string {
    return this.#members.join(",");
  }
}
