// One connection: it connects, encrypts and signs in, sends requests as they come, and hands each
// reply to the request that it belongs to. It never sends anything twice.
import { connect, isIP, type Socket } from "node:net";
import { connect as connectEncrypted, type ConnectionOptions } from "node:tls";
import type { Address, Place } from "./addresses.js";
import { PinpriqError } from "./errors.js";
import { ErrorReply, Replies, type Reply, requestBytes } from "./resp.js";
import type { Word } from "./words.js";

/** How long a server may take until it has let the client in. */
const OPENING_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
/** How many places of requests that have their replies are kept before they are given back. */
const DONE_MAX = 1_024;

/** How a connection is opened. */
export interface ConnectionSettings {
  readonly place: Place;
  readonly name: string;
  readonly tls: ConnectionOptions | undefined;
}

/** One request, or several that are sent in one piece, and what to do when they end. */
export interface Order {
  readonly bytes: Buffer;
  /** How many replies it still gets. */
  missing: number;
  readonly replies: Reply[];
  /** Is called with all replies. */
  readonly settle: (replies: Reply[]) => void;
  /** Is called if the connection ends before the last reply. */
  readonly lose: (cause: Error) => void;
}

/** A connection to one server. */
export class Connection {
  readonly #socket: Socket;
  readonly #replies: Replies;
  readonly #underWay = new Line<Order>();
  readonly #onEnd: (cause: Error) => void;
  #cause: Error | undefined;
  #isReady = false;
  #isOver = false;
  #isGathering = false;

  /** When the server was last heard of. */
  heardAt = performance.now();

  /** Begins to connect. `onReady` is called once at most, and `onEnd` once, later than this. */
  constructor(
    settings: ConnectionSettings,
    address: Address,
    events: {
      onReady: () => void;
      onEnd: (cause: Error) => void;
      onPush?: ((message: Reply[]) => void) | undefined;
    },
  ) {
    this.#replies = new Replies(events.onPush);
    this.#onEnd = events.onEnd;
    const { isEncrypted } = settings.place;
    const socket = isEncrypted ? encrypted(address, settings.tls) : connect({ ...address });
    this.#socket = socket;
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS).setTimeout(OPENING_MS);
    socket.once("timeout", () => this.#end(new PinpriqError("the server does not answer")));
    socket.once(isEncrypted ? "secureConnect" : "connect", () => this.#greet(settings, events));
    socket.on("data", (bytes) => this.#receive(bytes));
    socket.on("error", (error) => (this.#cause ??= error));
    socket.on("close", () => {
      this.#end(this.#cause ?? new PinpriqError("the server closed the connection"));
    });
  }

  /** Whether the server has let the client in. */
  get isReady(): boolean {
    return this.#isReady && !this.#isOver;
  }

  /**
   * Sends a request. What is sent in one step of the program leaves in one piece, unless it is to
   * leave at once.
   */
  send(order: Order, atOnce = false): void {
    this.#underWay.push(order);
    if (atOnce) {
      this.#socket.write(order.bytes);
      this.#socket.uncork();
      return;
    }
    if (!this.#isGathering) {
      this.#isGathering = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#isGathering = false;
        this.#socket.uncork();
      });
    }
    this.#socket.write(order.bytes);
  }

  /**
   * Ends this side of the connection. The server then ends what blocks, sends what was under way,
   * and closes.
   */
  endInput(): void {
    this.#socket.end();
  }

  /** Ends the connection at once. */
  destroy(cause: Error): void {
    this.#end(cause);
  }

  #greet({ place, name }: ConnectionSettings, { onReady }: { onReady: () => void }): void {
    const words = ["HELLO", "3"];
    if (place.password !== undefined) words.push("AUTH", place.user ?? "default", place.password);
    words.push("SETNAME", name);
    const settle = ([reply]: Reply[]): void => {
      if (reply instanceof ErrorReply) return this.#end(reply);
      this.#socket.setTimeout(0);
      this.#isReady = true;
      onReady();
    };
    this.send(orderOf([words], settle, () => undefined));
  }

  #receive(bytes: Buffer): void {
    this.heardAt = performance.now();
    try {
      for (const reply of this.#replies.add(bytes)) this.#handOut(reply);
    } catch (error) {
      this.#end(error as Error);
    }
  }

  #handOut(reply: Reply): void {
    const order = this.#underWay.first;
    if (!order) throw new PinpriqError("the server sent a reply that no request asked for");
    order.replies.push(reply);
    if (--order.missing > 0) return;
    this.#underWay.removeFirst();
    order.settle(order.replies);
  }

  #end(cause: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    for (let order = this.#underWay.first; order; order = this.#underWay.first) {
      this.#underWay.removeFirst();
      order.lose(cause);
    }
    this.#onEnd(cause);
  }
}

/** Returns an order of these requests. */
export function orderOf(
  requests: readonly (readonly Word[])[],
  settle: (replies: Reply[]) => void,
  lose: (cause: Error) => void,
): Order {
  const [only] = requests;
  const bytes =
    requests.length === 1 && only ? requestBytes(only) : Buffer.concat(requests.map(requestBytes));
  return { bytes, missing: requests.length, replies: [], settle, lose };
}

function encrypted({ host, port }: Address, tls: ConnectionOptions | undefined): Socket {
  // The name tells the server which certificate to show. An address is no name.
  const servername = isIP(host) ? {} : { servername: host };
  return connectEncrypted({ host, port, ...servername, ...tls });
}

/** Elements in the order in which they came. */
class Line<E> {
  #elements: (E | undefined)[] = [];
  #at = 0;

  get first(): E | undefined {
    return this.#elements[this.#at];
  }

  push(element: E): void {
    this.#elements.push(element);
  }

  removeFirst(): void {
    this.#elements[this.#at++] = undefined;
    if (this.#at < DONE_MAX && this.#at < this.#elements.length) return;
    // Moving all the others each time would take ever longer with more of them.
    if (this.#at * 2 < this.#elements.length) return;
    this.#elements = this.#elements.slice(this.#at);
    this.#at = 0;
  }
}
