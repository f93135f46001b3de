// Drives the dashboard in a real browser: every view, every action and its effect, and what must
// never happen. Called by scripts/dashboard-check, which says how.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Api, flow, MARKUP, seed } from "./seed.mjs";
import { actions } from "./actions.mjs";
import { bulk } from "./bulk.mjs";
import { checks } from "./checks.mjs";
import { look } from "./look.mjs";
import { screenshots } from "./screenshots.mjs";
import { pictures, signing } from "./signing.mjs";

const [program, modules, work, shots] = process.argv.slice(2);
const { chromium } = (
  await import(pathToFileURL(path.join(modules, "playwright-core/index.js")).href)
).default;
const axe = fs.readFileSync(path.join(modules, "axe-core/axe.min.js"), "utf8");

const CHROMIUM = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function must(truth, sentence) {
  if (!truth) throw new Error(sentence);
}

// A server on ports that stay the same when it is started again.
class Server {
  constructor(data = "data", more = []) {
    this.data = data;
    this.more = more;
  }

  async start(ports = { http: 0, resp: 0 }) {
    const flags = [
      "serve",
      "--data",
      path.join(work, this.data),
      "--pinpriq",
      "off",
      "--resp",
      `127.0.0.1:${ports.resp}`,
      "--http",
      `127.0.0.1:${ports.http}`,
      "--log-format",
      "json",
      ...this.more,
    ];
    this.process = spawn(program, flags, { stdio: ["ignore", "ignore", "pipe"] });
    this.ports = await new Promise((resolve, reject) => {
      const found = {};
      let text = "";
      this.process.once("exit", () => reject(new Error(`the server has ended:\n${text}`)));
      this.process.stderr.on("data", (data) => {
        text += data;
        for (const [, door, port] of listeners(text)) found[door] = port;
        if (found.http && found.resp) resolve(found);
      });
    });
    this.process.removeAllListeners("exit");
    this.url = `http://127.0.0.1:${this.ports.http}`;
  }

  async kill() {
    const ended = new Promise((resolve) => {
      this.process.once("exit", resolve);
    });
    this.process.kill("SIGKILL");
    await ended;
  }
}

function* listeners(text) {
  for (const line of text.split("\n")) {
    const door = /"door":"(http|resp)"/.exec(line);
    const port = /127\.0\.0\.1:(\d+)/.exec(line);
    if (door && port) yield [line, door[1], port[1]];
  }
}

// A page that notes everything that must not be.
async function openPage(browser, url, options) {
  const context = await browser.newContext({ locale: "en-GB", ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (it) => {
    if (["error", "warning"].includes(it.type())) wrong.push(`${it.text()} ${it.location().url}`);
  });
  page.on("pageerror", (error) => wrong.push(error.stack ?? error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) wrong.push(`a request to ${request.url()}`);
  });
  return { page, wrong, close: () => context.close() };
}

async function step(name, work) {
  const started = Date.now();
  await work();
  console.log(`${name}: ${Date.now() - started} ms`);
}

const server = new Server();
await server.start();
const api = new Api(server.url);
const sockets = await seed(api, server.ports.resp);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: CHROMIUM,
});
let hasFailed = false;
const stop = flow(api);
try {
  const world = {
    browser,
    server,
    api,
    axe,
    step,
    must,
    MARKUP,
    open: (options) => openPage(browser, server.url, options),
    openAt: (url, options) => openPage(browser, url, options),
    program,
    work,
    serve: (...given) => new Server(...given),
  };
  if (shots) {
    await screenshots(world, shots);
    await pictures(world, shots);
  } else {
    await checks.views(world);
    await stop();
    await actions(world);
    await bulk(world);
    await checks.many(world);
    await checks.gone(world);
    await signing(world);
    await look(world);
  }
} catch (error) {
  // At once, since what follows may wait for what has just broken.
  console.error(error);
  hasFailed = true;
} finally {
  await stop();
  sockets.forEach((it) => it.destroy());
  await browser.close();
  await server.kill();
}
process.exit(hasFailed ? 1 : 0);
