// A TCP proxy that loses what a test wants it to lose.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Stands between a client and a server. */
export class Proxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #upstreamPort: number;
  #port = 0;
  #held: (() => void)[] | undefined;
  #losing: { command: string; times: number; instead?: string; onLost: () => void } | undefined;

  private constructor(upstreamPort: number) {
    this.#upstreamPort = upstreamPort;
    this.#server = createServer((client) => this.#join(client));
  }

  static async start(upstreamPort: number): Promise<Proxy> {
    const proxy = new Proxy(upstreamPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    proxy.#port = (proxy.#server.address() as AddressInfo).port;
    return proxy;
  }

  /** Is given all bytes that clients send. */
  onSent: ((bytes: Buffer) => void) | undefined;

  /** Where it listens, or has listened. */
  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  /**
   * Lets requests with this command through, and cuts the connection when the reply comes. The
   * promise settles when that has happened so many times.
   */
  loseReplies(command: string, times = 1): Promise<void> {
    return new Promise((onLost) => (this.#losing = { command, times, onLost }));
  }

  /**
   * Lets a request with this command through, and sends this line instead of its reply. No other
   * request may be under way on that connection.
   */
  replaceReply(command: string, instead: string): Promise<void> {
    return new Promise((onLost) => (this.#losing = { command, times: 1, instead, onLost }));
  }

  /** Stops passing bytes over the connections that are there, as if a cable were cut. */
  fallSilent(): void {
    for (const socket of this.#sockets) socket.removeAllListeners("data").resume();
  }

  /** Holds back what clients send from now on. */
  hold(): void {
    this.#held = [];
  }

  /** Passes on what was held back. */
  letGo(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const passOn of held) passOn();
  }

  /** Cuts all connections. New ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    const upstream = connect(this.#upstreamPort, "127.0.0.1");
    let isDoomed = false;
    const pair = [client, upstream];
    for (const socket of pair) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        for (const other of pair) other.destroy();
      });
    }
    client.on("data", (bytes) => {
      isDoomed ||= this.#losing !== undefined && bytes.includes(`\r\n${this.#losing.command}\r\n`);
      this.onSent?.(bytes);
      if (this.#held) this.#held.push(() => upstream.write(bytes));
      else upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (!isDoomed) {
        client.write(bytes);
        return;
      }
      const losing = this.#losing;
      if (losing && --losing.times <= 0) {
        this.#losing = undefined;
        losing.onLost();
      }
      if (losing?.instead !== undefined) {
        isDoomed = false;
        client.write(`${losing.instead}\r\n`);
        return;
      }
      for (const socket of pair) socket.destroy();
    });
  }
}
