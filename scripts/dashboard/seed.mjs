// Fills a server with what a real one has: queues of several kinds, tasks in all states, dead
// letters with reasons, topics with members, schedules, batches, and workers that come and go.
// Everything goes over the API, but for a few connections with names over RESP.

import net from "node:net";
import { encode } from "./resp.mjs";

export class Api {
  constructor(url) {
    this.url = url;
  }

  async ask(method, path, body, type = "application/json") {
    const headers = body === undefined ? {} : { "Content-Type": type };
    const isBytes = typeof body === "string" || body instanceof Uint8Array;
    const text = body === undefined || isBytes ? body : JSON.stringify(body);
    const response = await fetch(this.url + path, { method, headers, body: text });
    const answer = await response.text();
    const isJson = /\bjson$|\+json$/.test(response.headers.get("content-type") ?? "");
    return { status: response.status, body: isJson && answer ? JSON.parse(answer) : answer };
  }

  async must(method, path, body, type) {
    const answer = await this.ask(method, path, body, type);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  put(queue, payload, query = "") {
    return this.must(
      "POST",
      `/v1/queues/${encodeURIComponent(queue)}/tasks?${query}`,
      payload,
      "text/plain",
    );
  }

  batch(queue, lines) {
    const body = lines.map((it) => JSON.stringify(it)).join("\n");
    return this.must(
      "POST",
      `/v1/queues/${encodeURIComponent(queue)}/tasks:batch`,
      body,
      "application/x-ndjson",
    );
  }

  async take(queue, count = 1, ttr = 600_000) {
    const path = `/v1/queues/${encodeURIComponent(queue)}:take`;
    return (await this.must("POST", path, { count, ttr })).tasks;
  }

  async queue(name) {
    return await this.must("GET", `/v1/queues/${encodeURIComponent(name)}`);
  }
}

// A connection over RESP that sends these commands, and stays.
export function connect(port, ...commands) {
  const socket = net.connect(Number(port), "127.0.0.1");
  socket.on("data", () => {});
  socket.on("error", () => {});
  for (const words of commands) socket.write(encode(words));
  return socket;
}

const NAMES = ["ada", "bob", "cid", "dan", "eve", "fay", "gus", "hal", "ivy", "jon"];
const REASONS = [
  "no connection",
  "mailbox is full",
  "timed out after 30 s",
  "HTTP 502 from upstream",
  "invalid address",
];

export const MARKUP = '<img src=x onerror="window.hacked=1">';

// Names of queues with a steady flow of tasks.
const FLOWS = ["resize", "mail", "invoices", "search-index", "webhooks"];

export async function seed(api, respPort) {
  const sockets = [];
  await api.must("PUT", "/v1/queues/mail", {
    ttr: 30_000,
    attempts: 3,
    backoff: 60_000,
    deadletter: "mail-dead",
  });
  await api.must("PUT", "/v1/queues/webhooks", {
    attempts: 1,
    deadletter: "webhooks-dead",
    ttr: 5_000,
  });
  await api.must("PUT", "/v1/queues/reports", { attempts: 1, limit: 2, afterack: "keep" });
  await api.must("PUT", "/v1/queues/thumbnails", { zombie: 3_600_000 });
  for (const queue of FLOWS) {
    await api.batch(
      queue,
      Array.from({ length: 120 }, (_, at) => ({
        payload: JSON.stringify({
          to: `${NAMES[at % 10]}@example.org`,
          template: "welcome",
          n: at,
          amounts: [1.5, 2.25],
          urgent: at % 7 === 0,
        }),
        priority: [0, 1, 1, 2, 2, 2, 5][at % 7],
        key: at % 3 === 0 ? `customer-${at % 5}` : undefined,
      })),
    );
  }
  await api.batch(
    "reports",
    [5, 6, 7, 8].map((at) => ({ payload: `report ${at}`, priority: at })),
  );
  for (const at of [0, 1, 2])
    await api.put("mail", `later ${at}`, `delay=${3_600_000 + at * 60_000}`);
  await failSome(api, "mail", 6, REASONS);
  await failSome(api, "webhooks", 17, REASONS.slice(2));
  await failSome(api, "reports", 2, ["division by zero", "no such month"]);
  const [done] = await api.take("reports");
  await api.must("POST", `/v1/queues/reports/receipts/${done.receipt}:ack`);
  await api.batch(
    "thumbnails",
    Array.from({ length: 5 }, (_, at) => ({ payload: `${at}.png` })),
  );
  for (const it of await api.take("thumbnails", 3)) {
    await api.must("POST", `/v1/queues/thumbnails/receipts/${it.receipt}:ack`);
  }
  await api.must("POST", "/v1/queues/invoices:pause", { out: true });
  await api.put("binary", Buffer.from([0, 1, 2, 255, 254, 65, 66, 10]), "");
  await api.put(MARKUP, MARKUP, `key=${encodeURIComponent(MARKUP)}`);
  for (const [topic, members] of [
    ["news", ["mailer", "archive", "search"]],
    ["prices", ["web"]],
  ]) {
    for (const member of members) {
      await api.must("PUT", `/v1/topics/${topic}/members/${member}`, { lease: 3_600_000 });
    }
    for (const at of [1, 2, 3]) {
      await api.must("POST", `/v1/topics/${topic}:publish`, `${topic} ${at}`, "text/plain");
    }
  }
  await api.must("PUT", "/v1/schedules/nightly-report", {
    queue: "reports",
    payload: '{"kind":"day"}',
    cron: "30 2 * * *",
    zone: "Europe/Berlin",
    overlap: "skip",
  });
  await api.must("PUT", "/v1/schedules/heartbeat", {
    queue: "health",
    payload: "check",
    every: 30_000,
  });
  await api.must("PUT", "/v1/schedules/billing", {
    queue: "invoices",
    payload: "all",
    cron: "@monthly",
  });
  await api.must("POST", "/v1/schedules/billing:pause", {});
  await api.must("PUT", "/v1/limits/partner", { max: 8, rate: "100/60000" });
  await makeBatches(api);
  sockets.push(
    connect(respPort, ["CLIENT", "SETNAME", "worker-1"], ["TAKE", "resize", "TTR", "600000"]),
    connect(respPort, ["CLIENT", "SETNAME", "worker-2"], ["TAKE", "mail", "TTR", "600000"]),
    connect(respPort, ["CLIENT", "SETNAME", "waiter"], ["TAKE", "idle", "WAIT", "600000"]),
  );
  return sockets;
}

// An open batch, a closed one that a task waits for, one that is done, and one with markup.
async function makeBatches(api) {
  const put = (queue, payload, batch) =>
    api.put(queue, payload, `batch=${encodeURIComponent(batch)}`);
  for (const at of [1, 2, 3]) await put("thumbs", `${at}.png`, "album-7");
  for (const at of [1, 2]) await put("imports", `part ${at}`, "import-9");
  await api.must("POST", "/v1/batches/import-9:close", {});
  await api.put("imported", "all parts are there", "after=import-9");
  await put("exports", "all", "export-3");
  await api.must("POST", "/v1/batches/export-3:close", {});
  const [it] = await api.take("exports");
  await api.must("POST", `/v1/queues/exports/receipts/${it.receipt}:ack`);
  await put("imports", MARKUP, MARKUP);
}

async function failSome(api, queue, number, reasons) {
  for (let at = 0; at < number; at += 1) {
    for (let round = 0; round < 3; round += 1) {
      const [it] = await api.take(queue);
      if (!it) break;
      const reason = encodeURIComponent(reasons[at % reasons.length]);
      const path = `/v1/queues/${queue}/receipts/${it.receipt}:fail?delay=0&reason=${reason}`;
      const { state } = await api.must("POST", path);
      if (state === "X" || state === "B") break;
    }
  }
}

// Lets tasks come and go until it is stopped, so that there are rates to show.
export function flow(api) {
  let ended = false;
  const work = (async () => {
    for (let round = 0; !ended; round += 1) {
      const wave = 4 + Math.round(3 * Math.sin(round / 9));
      for (const [at, queue] of ["resize", "mail", "search-index"].entries()) {
        const lines = Array.from({ length: wave + at }, (_, n) => ({
          payload: JSON.stringify({ n, round }),
          priority: n % 4,
        }));
        await api.batch(queue, lines).catch(() => null);
        const tasks = await api.take(queue, wave + at).catch(() => []);
        const receipts = tasks.map((it) => it.receipt);
        if (receipts.length > 0) {
          await api
            .must("POST", `/v1/queues/${queue}/receipts:ack`, { receipts })
            .catch(() => null);
        }
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 150);
      });
    }
  })();
  return async () => {
    ended = true;
    await work;
  };
}
