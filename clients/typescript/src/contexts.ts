// Contexts in which jobs run, and what stands in them for a span of another process. They take over
// nothing that is current: a job has nothing to do with the place where its worker was started.
// They know no headers and begin no spans.
import type { Context, Span, SpanContext } from "@opentelemetry/api";

/** What is current while something runs. */
class OwnContext implements Context {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown>) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): OwnContext {
    return new OwnContext(new Map(this.#values).set(key, value));
  }

  deleteValue(key: symbol): OwnContext {
    const values = new Map(this.#values);
    values.delete(key);
    return new OwnContext(values);
  }
}

/** Nothing is current. */
export const NOWHERE: Context = new OwnContext(new Map());

/** A span of another process, of which only the context is known. */
export class Elsewhere implements Span {
  readonly #context: SpanContext;

  constructor(context: SpanContext) {
    this.#context = context;
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  isRecording(): boolean {
    return false;
  }

  setAttribute(): this {
    return this;
  }

  setAttributes(): this {
    return this;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  setStatus(): this {
    return this;
  }

  updateName(): this {
    return this;
  }

  recordException(): void {}

  end(): void {}
}
