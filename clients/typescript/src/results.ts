// What has come of the work on a task: how it becomes bytes, and how it is read.
import type { Codec } from "./codec.js";
import { BadPayload, isRefused } from "./errors.js";
import { reasonOf } from "./failing.js";
import type { Word } from "./words.js";

/** One beyond that would end the connection, so that nobody would hear why. */
const BYTES_MAX = 64 << 20;
/** So large a result is sent by itself. A hundred smaller ones fit into one request. */
const ALONE_BYTES = 8_192;

/** What has come of the work on a task. */
export interface WithResult<R> {
  /**
   * The result, or undefined if there is none. Reading it throws `BadPayload` if the bytes are not
   * what the codec expects.
   */
  readonly result: R | undefined;
  /** The result as it came. */
  readonly resultBytes: Buffer | undefined;
}

/** Adds a result that is decoded when it is read. */
export function withResult<O extends object, R>(
  about: O,
  resultBytes: Buffer | undefined,
  codec: Codec<R>,
): O & WithResult<R> {
  return {
    ...about,
    resultBytes,
    get result() {
      return decodedResult(resultBytes, codec);
    },
  };
}

/** Returns what these bytes say. Throws `BadPayload` if the codec does not know. */
export function decodedResult<R>(bytes: Buffer | undefined, codec: Codec<R>): R | undefined {
  if (bytes === undefined) return undefined;
  try {
    return codec.decode(bytes);
  } catch (cause) {
    throw new BadPayload(`the result cannot be read: ${reasonOf(cause)}`, { cause });
  }
}

/** Returns the bytes of a result, if there is one. Throws `BadPayload` if it has none. */
export function encodedResult<R>(result: R | undefined, codec: Codec<R>): Word | undefined {
  if (result === undefined) return undefined;
  let bytes: unknown;
  try {
    bytes = codec.encode(result);
  } catch (cause) {
    throw new BadPayload(`the result cannot be written: ${reasonOf(cause)}`, { cause });
  }
  // A codec that passes everything on meets what a handler happens to return.
  if (typeof bytes !== "string" && !(bytes instanceof Uint8Array)) {
    throw new BadPayload("the result cannot be written: its codec made neither a text nor bytes");
  }
  if (Buffer.byteLength(bytes) <= BYTES_MAX) return bytes;
  throw new BadPayload(`the result has more than ${BYTES_MAX} bytes`);
}

/** Whether a result goes in a request of its own. */
export function isLarge(bytes: Word | undefined): boolean {
  return bytes !== undefined && Buffer.byteLength(bytes) > ALONE_BYTES;
}

/**
 * Whether a refusal of an acknowledgement may be about its result: too large, no room for it, or a
 * server that knows of none.
 */
export function isAboutResult(error: unknown): boolean {
  return isRefused(error, "TOOLARGE", "BUSY", "BADARG");
}
