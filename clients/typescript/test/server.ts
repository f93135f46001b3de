// Starts a real server for a test, on a free loopback port with a directory of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server that runs. */
export class Server {
  readonly #directory: string;
  #process: ChildProcess | undefined;
  #port = 0;
  /** What the server has logged. */
  readonly log: string[] = [];

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Starts a server and waits until it listens. */
  static async start(): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "pinpriq-ts-")));
    await server.run();
    return server;
  }

  /** Where it listens. It keeps its port over a restart. */
  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  /** Runs the program, again if it was stopped. */
  async run(): Promise<void> {
    const flags = ["--pinpriq", "127.0.0.1:0", "--http", "off", "--log-format", "json"];
    const places = ["--data", join(this.#directory, "data"), "--resp", `127.0.0.1:${this.#port}`];
    const child = spawn(program(), ["serve", ...places, ...flags], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`the server ended: ${this.log.join("\n")}`)));
      createInterface({ input: child.stderr }).on("line", (line) => {
        this.log.push(line);
        const address = /"address":"127\.0\.0\.1:(\d+)","door":"resp"/.exec(line);
        if (!address) return;
        this.#port = Number(address[1]);
        resolve();
      });
    });
  }

  /** Stops it in order, or with SIGKILL, and waits until it has ended. Its data stays. */
  async halt(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  /** Stops it and removes its data. */
  async stop(): Promise<void> {
    await this.halt();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Returns the path of the program to test. */
export function program(): string {
  const path = process.env["PINPRIQ_PROGRAM"];
  if (!path) {
    throw new Error("PINPRIQ_PROGRAM is not set: give it the path of the pinpriq program to test");
  }
  return path;
}
