// Dead letters of three causes, told apart on the dashboard and dealt with there in two minutes:
// what has failed for one cause is sent back, for another killed, for the third moved and then
// redriven. They are 100,000; DEAD_TASKS names another number. Beside it a client takes tasks of
// another queue. How long its takes last is printed.

import { Worker } from "node:worker_threads";
import { Hands } from "./hands.mjs";
import { Resp } from "./resp.mjs";

const TASKS = Number(process.env.DEAD_TASKS ?? 100_000);
const PLAYED_MS_MAX = 120_000;
// Far more than a take lasts on any machine, and far less than the changes.
const TAKE_MS_MAX = 1_000;
const ALONE_TAKES = 5_000;
const PAGE = 1_000;
// As small as the pages of the dashboard, since takes go on meanwhile.
const PAGE_LOOKED = 100;

const SOURCE = "{mass}";
const DEAD = "{mass}-dead";
const LATER = "{mass}-later";

// Task n fails for the cause n modulo three.
const CAUSES = ["a*b\\c is no address", "no route to host", "the customer is gone"];
const NUMBERS = CAUSES.map((_, at) => Math.ceil((TASKS - at) / CAUSES.length));

// So many tasks, as the page says it.
const tasks = (number) => `${number.toLocaleString("en-GB")} task${number === 1 ? "" : "s"}`;
const view = (queue) => `#/queues/${encodeURIComponent(queue)}`;

export async function bulk(world) {
  const { api, server, step, must } = world;
  const { page, wrong, close } = await world.open();
  page.setDefaultTimeout(PLAYED_MS_MAX);
  const hands = new Hands(world, page);
  const resp = new Resp(server.ports.resp);
  await step(`${TASKS} dead letters of three causes`, () => makeDeadLetters(resp));
  const beside = new Beside(server.ports.resp);
  const alone = await beside.takes(ALONE_TAKES);
  const started = performance.now();
  await step("three causes told apart, one sent back", () => sendBack(hands, resp));
  await step("one killed", () => kill(hands, resp));
  await step("one moved and redriven", () => moveAndRedrive(hands, resp));
  const played = performance.now() - started;
  const meanwhile = await beside.takes(1);
  await beside.end();
  resp.close();
  console.log(`takes alone: ${told(alone)}`);
  console.log(`takes beside ${Math.round(played)} ms of this: ${told(meanwhile)}`);
  console.log(`their p99 is ${(p99(meanwhile) / p99(alone)).toFixed(2)} times that of takes alone`);
  must(played < PLAYED_MS_MAX, `that took ${played} ms`);
  must(p99(meanwhile) < TAKE_MS_MAX, "takes wait for the changes");
  for (const queue of [SOURCE, DEAD, LATER]) {
    await api.must("DELETE", `/v1/queues/${encodeURIComponent(queue)}`);
  }
  // What is refused is a failed request to the browser too.
  const others = wrong.filter((it) => !/status of 4\d\d/.test(it));
  must(others.length === 0, others.join("\n"));
  await close();
}

// The client in `beside.mjs`.
class Beside {
  constructor(port) {
    const workerData = { port, queue: "beside" };
    this.worker = new Worker(new URL("./beside.mjs", import.meta.url), { workerData });
    this.failed = new Promise((_, reject) => {
      this.worker.once("error", reject);
    });
    // It is told when somebody asks.
    this.failed.catch(() => null);
  }

  // How long the takes since the last question have lasted, at least so many, the shortest first.
  async takes(least) {
    const answer = new Promise((resolve) => {
      this.worker.once("message", resolve);
    });
    this.worker.postMessage(least);
    const times = await Promise.race([answer, this.failed]);
    return times.sort((one, other) => one - other);
  }

  end() {
    return this.worker.terminate();
  }
}

const quantile = (times, share) => times[Math.floor(times.length * share)];
const p99 = (times) => quantile(times, 0.99);

function told(times) {
  const figures = { p50: quantile(times, 0.5), p99: p99(times), max: times.at(-1) };
  const all = Object.entries(figures).map(([name, ms]) => `${name} ${ms.toFixed(2)} ms`);
  return `${times.length}, ${all.join(", ")}`;
}

async function makeDeadLetters(resp) {
  for (const queue of [DEAD, LATER]) await resp.ask("QUEUE", "CREATE", queue);
  await resp.ask("QUEUE", "CREATE", SOURCE, "ATTEMPTS", 1, "DEADLETTER", DEAD);
  const fail = ([, , receipt, payload]) => {
    const cause = CAUSES[Number(payload) % CAUSES.length];
    return ["FAIL", SOURCE, receipt, "REASON", cause];
  };
  for (let first = 0; first < TASKS; first += PAGE) {
    const number = Math.min(PAGE, TASKS - first);
    await resp.askAll(Array.from({ length: number }, (_, at) => ["PUT", SOURCE, first + at]));
    const taken = await resp.ask("TAKE", SOURCE, "COUNT", number);
    await resp.askAll(taken.map(fail));
  }
}

// Looks at all tasks of a queue: those of these causes must be there, and no others.
async function mustHave({ must }, resp, queue, causes) {
  const found = CAUSES.map(() => 0);
  let cursor = "0";
  do {
    const [next, page] = await resp.ask("SCAN", queue, "COUNT", PAGE_LOOKED, "CURSOR", cursor);
    for (const [, , , payload] of page) found[Number(payload) % CAUSES.length] += 1;
    cursor = next;
  } while (cursor !== "0");
  const wanted = NUMBERS.map((number, at) => (causes.includes(at) ? number : 0));
  must(found.join() === wanted.join(), `${queue} has ${found} tasks of the causes, not ${wanted}`);
}

async function sendBack(hands, resp) {
  const { page, must } = hands;
  const bar = (cause) => page.locator(".bars li", { hasText: cause });
  await hands.go("#/dead");
  for (const cause of CAUSES) {
    const number = await bar(cause).locator(".bar-value").innerText();
    must(/^[1-9]/.test(number), `${number} tasks have failed for: ${cause}`);
  }
  const [cause] = CAUSES;
  const number = tasks(NUMBERS[0]);
  await hands.press("Send back", bar(cause));
  const asked = await hands.fill({}, `Send back ${number}`, `${number} sent back.`);
  must(asked.includes(cause), asked);
  await bar(cause).waitFor({ state: "detached" });
  must((await bar(CAUSES[1]).count()) === 1, "the second cause is not shown any more");
  must((await bar(CAUSES[2]).count()) === 1, "the third cause is not shown any more");
  await mustHave(hands, resp, SOURCE, [0]);
  await mustHave(hands, resp, DEAD, [1, 2]);
}

async function kill(hands, resp) {
  const number = tasks(NUMBERS[1]);
  await hands.go(view(DEAD));
  await hands.press("Change many");
  const values = { Reason: "*no route*", "Put at least this long ago": "1 s" };
  await hands.give({ "What to do": "kill", ...values }, "Count them");
  await hands.fill({}, `Kill ${number}`, `${number} killed.`);
  await mustHave(hands, resp, DEAD, [2]);
}

async function moveAndRedrive(hands, resp) {
  const number = tasks(NUMBERS[2]);
  const values = { "What to do": "move", "To the queue": LATER, Reason: "the customer*" };
  await hands.go(view(DEAD));
  await hands.press("Change many");
  await hands.give({ ...values, "Priority from": "1", "Priority to": "2" }, "Count them");
  const error = hands.page.locator("dialog .form-error", { hasText: "There is no such task." });
  await error.waitFor();
  await hands.give({ "Priority from": "0" }, "Count them");
  await hands.fill({}, `Move ${number}`, `${number} moved.`);
  await mustHave(hands, resp, DEAD, []);
  await mustHave(hands, resp, LATER, [2]);
  await hands.go(view(LATER));
  await hands.press("Change many");
  await hands.give({ "What to do": "redrive" }, "Count them");
  await hands.fill({}, `Redrive ${number}`, `${number} moved back.`);
  await mustHave(hands, resp, LATER, []);
  await mustHave(hands, resp, SOURCE, [0, 2]);
}
