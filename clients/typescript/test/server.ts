// Starts a real server for a test, on a free loopback port with a directory of its own.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { Client, type ClientOptions } from "../src/index.js";

// A test that takes too long is ended by this signal. Then its servers end too.
process.once("SIGTERM", () => process.exit(1));

/** A server that runs. */
export class Server {
  readonly #directory: string;
  #process: ChildProcess | undefined;
  #port = 0;
  /** What the server has logged. */
  readonly log: string[] = [];

  #flags: readonly string[] = [];
  /** Where it listens for encrypted connections, if it does. */
  encryptedPort = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Starts a server and waits until it listens. `prepare` may write into its directory, and returns
   * further flags.
   */
  static async start(
    prepare: (directory: string) => readonly string[] = () => [],
  ): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "pinpriq-ts-")));
    server.#flags = prepare(server.#directory);
    await server.run();
    return server;
  }

  /** Where its files are. */
  get directory(): string {
    return this.#directory;
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
    const child = spawn(program(), ["serve", ...places, ...flags, ...this.#flags], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    // A run that is ended early leaves no server behind.
    process.once("exit", () => child.kill("SIGKILL"));
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`the server ended: ${this.log.join("\n")}`)));
      createInterface({ input: child.stderr }).on("line", (line) => {
        this.log.push(line);
        const address = /"address":"127\.0\.0\.1:(\d+)","door":"resp","tls":(\w+)/.exec(line);
        if (!address) return;
        const [, port, isEncrypted] = address;
        if (isEncrypted === "true") this.encryptedPort = Number(port);
        else this.#port = Number(port);
        const wantsEncryption = this.#flags.includes("--resps");
        if (this.#port > 0 && (!wantsEncryption || this.encryptedPort > 0)) resolve();
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

/** Why there are no certificates, or false if there are. */
export const NO_OPENSSL = spawnSync("openssl", ["version"]).error ? "there is no openssl" : false;

/** Prepares a server that also listens for encrypted connections. */
export function withCertificate(directory: string): string[] {
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  const files = ["-keyout", key, "-out", cert, "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...name, ...files], { stdio: "ignore" });
  return ["--resps", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
}

/** Starts a server with a client for the tests of a file, which are ended behind them. */
export async function started(
  options?: ClientOptions,
): Promise<{ server: Server; client: Client }> {
  const server = await Server.start();
  const client = await Client.connect(server.url, options);
  after(async () => {
    await client.close();
    await server.stop();
  });
  return { server, client };
}
