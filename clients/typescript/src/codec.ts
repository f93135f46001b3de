// How payloads become bytes and bytes payloads.
import { BadPayload } from "./errors.js";

/** Turns payloads into bytes and back. */
export interface Codec<T> {
  /** Returns the bytes of a payload. A string stands for its UTF-8. */
  encode(payload: T): Uint8Array | string;
  /** Returns the payload of these bytes, or throws. */
  decode(bytes: Buffer): T;
}

/**
 * Payloads are JSON. A payload that JSON has no text for, such as `undefined` or a number that is
 * NaN or infinite, is refused.
 */
export function json<T>(): Codec<T> {
  return {
    encode(payload) {
      const text = JSON.stringify(payload) as string | undefined;
      if (text === undefined) throw new BadPayload("the payload cannot be written as JSON");
      // Such numbers would silently become null. Only where there is one need they be looked for.
      if (text.includes("null")) JSON.stringify(payload, refuseNoNumber);
      return text;
    },
    decode(bytes) {
      try {
        return JSON.parse(bytes.toString("utf8")) as T;
      } catch (cause) {
        throw new BadPayload("the payload is not JSON", { cause });
      }
    },
  };
}

function refuseNoNumber(_: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new BadPayload(`${value} cannot be written as JSON`);
}

/** Payloads are text in UTF-8. */
export const text: Codec<string> = {
  encode: (payload) => payload,
  decode: (bytes) => bytes.toString("utf8"),
};

/** Payloads are bytes, as they are. */
export const bytes: Codec<Uint8Array> = {
  encode: (payload) => payload,
  decode: (bytes) => bytes,
};
