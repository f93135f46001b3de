// The errors that this package throws. A wait that was aborted throws the reason of its signal.

/** What every error of this package is. */
export class PinpriqError extends Error {
  override name = "PinpriqError";
}

/** The first words of refusals. A newer server may have others. */
export type RefusalKind =
  | "BADARG" | "BUSY" | "CANCELLED" | "CLOSING" | "CLUSTERDOWN" | "CROSSSHARD" | "CROSSSLOT"
  | "ERR" | "EXECABORT" | "EXISTS" | "FULL" | "IDREQUIRED" | "MOVED" | "NOAUTH" | "NOPERM"
  | "NOPROTO" | "NOQUEUE" | "NOTFOUND" | "NOTOWNER" | "NOTTAKEN" | "PAUSED" | "READONLY" | "STALE"
  | "STORE" | "TAKEN" | "TOOLARGE" | "TRYAGAIN" | "UNKNOWN" | "WRONGPASS" | "WRONGSTATE";

/** A kind of refusal, or the word of a newer server. */
export type AnyRefusalKind = RefusalKind | (string & {});

/** The server said no. Except after `UNKNOWN`, nothing has changed. */
export class Refused extends PinpriqError {
  override name = "Refused";
  /** The first word of the refusal, such as `STALE` or `FULL`. */
  readonly kind: AnyRefusalKind;
  /**
   * Whether the request was sent before and its first reply was lost. `STALE` may then mean that
   * the first one was carried out.
   */
  readonly repeated: boolean;
  /** In a refused transaction, which of its commands was refused first: 0 is the first. */
  readonly position: number | undefined;

  constructor(
    text: string,
    options: { repeated?: boolean; position?: number; cause?: unknown } = {},
  ) {
    super(text, "cause" in options ? { cause: options.cause } : undefined);
    this.kind = text.split(" ", 1)[0] ?? "";
    this.repeated = options.repeated ?? false;
    this.position = options.position;
  }
}

/** No reply came, and the client has stopped trying. */
export class ConnectionLost extends PinpriqError {
  override name = "ConnectionLost";
  /** False if the request has certainly not reached the server. */
  readonly mayHaveHappened: boolean;

  constructor(message: string, mayHaveHappened: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayHaveHappened = mayHaveHappened;
  }
}

/** The client was closed before or during the request. */
export class Closed extends PinpriqError {
  override name = "Closed";
}

/** The bytes of a payload are not what the codec of the queue expects. */
export class BadPayload extends PinpriqError {
  override name = "BadPayload";
}

/** The task of a job was cancelled. The message is why. It is the reason of the job's signal. */
export class Cancelled extends PinpriqError {
  override name = "Cancelled";

  constructor(why: string) {
    // As the server says it in a refusal.
    super(why || "without a reason");
  }
}

/** Returns what a refusal to renew tells about a cancel, or undefined if it is about another. */
export function cancelledOf(error: unknown): Cancelled | undefined {
  if (!isRefused(error, "CANCELLED")) return undefined;
  return new Cancelled(error.message.slice(error.kind.length + 1));
}

/** Returns whether an error is a refusal of one of these kinds. */
export function isRefused(error: unknown, ...kinds: AnyRefusalKind[]): error is Refused {
  return error instanceof Refused && (kinds.length === 0 || kinds.includes(error.kind));
}
