// Does everything that the dashboard can do, and looks at the effect over the API.

import { Hands } from "./hands.mjs";

const STATE = (api, queue, id) =>
  api.ask("GET", `/v1/queues/${queue}/tasks/${id}`).then((it) => it.body.state ?? "X");

export async function actions(world) {
  const { page, wrong, close } = await world.open();
  const hands = new Hands(world, page);
  await ofQueues(hands);
  await ofTasks(hands);
  await ofDeadLetters(hands);
  await ofTopics(hands);
  await ofSchedules(hands);
  await ofLimits(hands);
  await ofBatches(hands);
  await ofConnections(hands);
  // A refusal is a failed request to the browser too.
  const others = wrong.filter((it) => !/status of 4\d\d/.test(it));
  world.must(others.length === 0, others.join("\n"));
  await close();
}

async function ofQueues(hands) {
  const { api, step, must, page } = hands;
  await step("create a queue, put, and an error", async () => {
    await hands.go("#/");
    await hands.press("Create a queue");
    await hands.fill({ Name: "a/b:c", TTR: "45 s", Attempts: "2" }, "Create", "exists");
    const { settings } = await api.queue("a/b:c");
    must(settings.ttr === 45_000 && settings.attempts === 2, JSON.stringify(settings));
    await hands.press("Create a queue");
    await page.getByLabel("Name", { exact: true }).fill("a/b:c");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.locator("dialog .form-error", { hasText: "has been created already" }).waitFor();
    await page.keyboard.press("Escape");
    await hands.go("#/queues/a%2Fb%3Ac");
    await hands.press("Put a task");
    await hands.fill({ Payload: "hello", Priority: "-3", Key: "k" }, "Put", "was put");
    const { tasks } = await api.must("GET", "/v1/queues/a%2Fb%3Ac/tasks");
    must(tasks[0].payload === "hello" && tasks[0].priority === -3, JSON.stringify(tasks));
  });
  await step("settings", async () => {
    await hands.go("#/queues/a%2Fb%3Ac?tab=settings");
    await page.getByLabel("Limit", { exact: true }).fill("7");
    await page.getByLabel("TTR", { exact: true }).fill("");
    await hands.press("Save");
    await page.locator(".toast", { hasText: "Saved: ttr, limit." }).waitFor();
    const { settings } = await api.queue("a/b:c");
    must(settings.limit === 7 && settings.ttr === null, JSON.stringify(settings));
    await page.getByLabel("Rate", { exact: true }).fill("nonsense");
    await hands.press("Save");
    await page.locator(".settings .form-error").waitFor();
  });
  await step("pause, resume, move, truncate, drop", async () => {
    await hands.go("#/queues/a%2Fb%3Ac");
    await hands.press("Pause");
    await hands.fill({ For: "in" }, "Pause", "Paused.");
    must((await api.queue("a/b:c")).settings.paused === "in", "it is not paused");
    await page.locator(".tag", { hasText: "paused for puts" }).waitFor();
    await hands.press("Resume");
    await page.locator(".toast", { hasText: "Resumed." }).waitFor();
    must((await api.queue("a/b:c")).settings.paused === "none", "it is not resumed");
    await api.put("a/b:c", "two");
    await hands.press("Move");
    await hands.fill({ "To the queue": "elsewhere", "At most": "1" }, "Move", "1 task moved.");
    must((await api.queue("elsewhere")).stats.counts.R === 1, "nothing was moved");
    await hands.press("Truncate");
    const asked = await hands.fill({}, "Remove 1 task", "1 task removed.");
    must(asked.includes("a/b:c") && asked.includes("cannot be undone"), asked);
    must((await api.queue("a/b:c")).stats.present === 0, "it is not empty");
    await hands.press("Drop");
    await hands.fill({}, "Drop the queue", "was dropped");
    must((await api.ask("GET", "/v1/queues/a%2Fb%3Ac")).status === 404, "it is still there");
  });
}

async function ofTasks(hands) {
  const { api, step, must, page } = hands;
  const queue = "deeds";
  await api.must("PUT", `/v1/queues/${queue}`, {});
  const { id } = await api.put(queue, "one");
  const at = `#/queues/${queue}/tasks/${id}`;
  await step("change, snatch, switch, dig, restart, kill", async () => {
    await hands.go(at);
    await hands.press("Change priority or TTL");
    await hands.fill({ Priority: "9" }, "Change", "Changed.");
    const { body } = await api.ask("GET", `/v1/queues/${queue}/tasks/${id}`);
    must(body.priority === 9, JSON.stringify(body));
    await api.take(queue);
    await hands.press("Snatch");
    await hands.fill({}, "Snatch", "The task is ready now.");
    must((await STATE(api, queue, id)) === "R", "it was not snatched");
    await hands.press("Switch");
    await hands.fill({ State: "B" }, "Switch", "The task is buried now.");
    must((await STATE(api, queue, id)) === "B", "it is not buried");
    await hands.press("Dig up");
    await hands.fill({ Delay: "1 h" }, "Dig up", "The task is waiting now.");
    must((await STATE(api, queue, id)) === "W", "it does not wait");
    await page.getByText("Its delay ends").waitFor();
    await hands.press("Restart");
    await hands.fill({}, "Restart", "The task is ready now.");
    must((await STATE(api, queue, id)) === "R", "it was not restarted");
    await hands.press("Kill");
    const asked = await hands.fill({}, "Kill 1 task", "The task is gone.");
    must(asked.includes(`task ${id} of ${queue}`), asked);
    must((await STATE(api, queue, id)) === "X", "it is still there");
    await page.getByText("This task has left its queue").waitFor();
  });
  await step("cancel a task that is taken, and one that is not", async () => {
    const { id: taken } = await api.put(queue, "two");
    await api.take(queue);
    await hands.go(`#/queues/${queue}/tasks/${taken}`);
    await hands.press("Cancel the task");
    const told = "Its holder is asked to stop.";
    await hands.fill({ Reason: "late", Grace: "1 h" }, "Ask its holder to stop", told);
    const { body } = await api.ask("GET", `/v1/queues/${queue}/tasks/${taken}`);
    must(body.state === "T" && body.cancelled === "late", JSON.stringify(body));
    await page.getByText("late").waitFor();
    await hands.press("Kill");
    await hands.fill({}, "Kill 1 task", "The task is gone.");
    const { id: ready } = await api.put(queue, "three");
    await hands.go(`#/queues/${queue}/tasks/${ready}`);
    await hands.press("Cancel the task");
    await hands.fill({}, "Cancel 1 task", "The task is gone.");
    must((await STATE(api, queue, ready)) === "X", "it is still there");
  });
  await step("free a task that is held", async () => {
    const { id: held } = await api.put(queue, "order", "held=true&attempts=3&backoff=none");
    await hands.go(`#/queues/${queue}/tasks/${held}`);
    await page.getByText("It was put as held").waitFor();
    const facts = await page.locator("dl").allTextContents();
    must(/Held\s*yes/.test(facts.join(" ")), facts.join(" "));
    must(/Back-off\s*none/.test(facts.join(" ")), facts.join(" "));
    await hands.press("Restart");
    await hands.fill({}, "Restart", "The task is ready now.");
    must((await STATE(api, queue, held)) === "R", "it was not freed");
    await api.ask("DELETE", `/v1/queues/${queue}/tasks/${held}`);
  });
  await step("choose and kill several, dig up all, snatch a lease", async () => {
    const ids = [];
    for (const payload of ["a", "b", "c"]) ids.push((await api.put(queue, payload)).id);
    await hands.go(`#/queues/${queue}`);
    await page.getByLabel(`Choose task ${ids[0]}`).check();
    await page.getByLabel(`Choose task ${ids[1]}`).check();
    await hands.press("Kill 2 chosen tasks");
    await hands.fill({}, "Kill 2 tasks", "2 tasks are gone.");
    must((await api.queue(queue)).stats.present === 1, "not two are gone");
    await api.must("POST", `/v1/queues/${queue}/tasks/${ids[2]}:switch`, { state: "B" });
    await hands.press("Dig up all");
    await hands.fill({}, "Dig up", "1 task dug up.");
    must((await STATE(api, queue, ids[2])) === "R", "it was not dug up");
    await api.take(queue);
    await hands.go(`#/queues/${queue}?tab=leases`);
    await hands.press("Snatch");
    await hands.fill({}, "Snatch", "The task is ready now.");
    must((await STATE(api, queue, ids[2])) === "R", "it was not snatched");
  });
  await step("see the shares, give one other rules", async () => {
    await hands.go(`#/queues/${queue}?tab=shares`);
    const row = page.locator("tbody tr", { hasText: "without a share" });
    await row.waitFor();
    await hands.press("Change", row);
    await hands.fill({ Weight: "3", Limit: "2" }, "Save", "Saved.");
    const { shares } = await api.must("GET", `/v1/queues/${queue}/shares`);
    must(shares[0].weight === 3 && shares[0].limit === 2, "the rules are others");
    await page.locator("tbody tr", { hasText: "weight 3, limit 2" }).waitFor();
  });
  await api.must("DELETE", `/v1/queues/${queue}`);
}

async function ofDeadLetters({ api, step, must, page, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  await step("dead letters: reasons, redrive, dig up", async () => {
    await hands.go("#/dead");
    await page.locator(".bars", { hasText: "timed out after 30 s" }).waitFor();
    const row = page.locator("tbody tr", { hasText: "webhooks-dead" });
    must((await row.textContent()).includes("17"), await row.textContent());
    await hands.press("Redrive", row);
    await hands.fill({}, "Redrive", "17 tasks moved back.");
    const dead = await api.ask("GET", "/v1/queues/webhooks-dead");
    must(dead.status === 404 || dead.body.stats.counts.R === 0, "the letters are still there");
    await hands.press("Dig up", page.locator("tbody tr", { hasText: "reports" }));
    await hands.fill({}, "Dig up", "2 tasks dug up.");
    must((await api.queue("reports")).stats.counts.B === 0, "they are still buried");
  });
}

async function ofTopics({ api, step, must, page, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  await step("topics: create, publish, add and end a lane", async () => {
    await hands.go("#/topics");
    await page.locator("tbody tr", { hasText: "news" }).waitFor();
    await hands.press("Create a topic");
    await hands.fill({ Topic: "fresh", Member: "first" }, "Add", "has a lane");
    await page.getByRole("link", { name: "fresh" }).click();
    await hands.press("Add a member");
    await hands.fill({ Member: "second" }, "Add", "has a lane");
    await hands.press("Publish");
    await hands.fill({ Payload: "hear, hear" }, "Publish", "Published to 2 lanes");
    const members = async () => (await api.must("GET", "/v1/topics/fresh/members")).members;
    must(
      (await members()).every((it) => it.ready === 1),
      JSON.stringify(await members()),
    );
    await page
      .locator("tbody tr", { hasText: "second" })
      .locator("td", { hasText: "1" })
      .first()
      .waitFor();
    await hands.press("End the lane", page.locator("tbody tr", { hasText: "second" }));
    const asked = await hands.fill({}, "End the lane", "The lane has ended.");
    must(asked.includes("second") && asked.includes("1 ready or taken task"), asked);
    must((await members()).length === 1, "the lane is still there");
    await page.getByRole("link", { name: "first" }).click();
    await page.locator("code", { hasText: "hear, hear" }).waitFor();
  });
}

async function ofSchedules({ api, step, must, page, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  const known = async () => (await api.ask("GET", "/v1/schedules/tick")).body;
  await step("schedules: set, change, fire, pause, resume, drop", async () => {
    await hands.go("#/schedules");
    await hands.press("Set a schedule");
    await hands.fill({ Name: "tick", Queue: "ticks", Payload: "t", Every: "1 h" }, "Save", "Set.");
    must((await known()).every === 3_600_000, JSON.stringify(await known()));
    await page.getByRole("link", { name: "tick", exact: true }).click();
    await hands.press("Change");
    await hands.fill(
      { Every: "", Cron: "0 4 * * *", "Time zone": "Europe/Berlin" },
      "Save",
      "Set.",
    );
    must((await known()).cron === "0 4 * * *", JSON.stringify(await known()));
    await hands.press("Fire now");
    await page.locator(".toast", { hasText: "was put." }).waitFor();
    must((await api.queue("ticks")).stats.counts.R === 1, "nothing was put");
    await hands.press("Pause");
    await page.locator(".tag", { hasText: "paused" }).waitFor();
    must((await known()).paused, "it is not paused");
    await hands.press("Resume");
    await page.locator(".tag").waitFor({ state: "detached" });
    must(!(await known()).paused, "it is not resumed");
    await hands.press("Drop");
    await hands.fill({}, "Drop the schedule", "was dropped");
    must((await known()).code === "NOTFOUND", "it is still there");
  });
}

async function ofLimits({ api, step, must, page, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  const known = async () => (await api.ask("GET", "/v1/limits/calls")).body;
  await step("limits: set, change, drop", async () => {
    await hands.go("#/limits");
    await hands.press("Set a limit");
    await hands.fill({ Name: "calls", "At most": "1" }, "Save", "Saved.");
    must((await known()).max === 1, JSON.stringify(await known()));
    const row = page.locator("tbody tr", { hasText: "calls" });
    await row.waitFor();
    await row.locator("td", { hasText: /^0 ms$/ }).waitFor();
    await hands.press("Change", row);
    await hands.fill({ "At most": "none", Rate: "10/1000" }, "Save", "Saved.");
    must((await known()).rate === "10/1000", JSON.stringify(await known()));
    must((await known()).max === undefined, JSON.stringify(await known()));
    await hands.press("Drop", row);
    await hands.fill({}, "Drop", "was dropped");
    must((await known()).code === "NOTFOUND", "it is still there");
  });
}

async function ofBatches({ api, step, must, page, MARKUP, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  const known = async (name) =>
    (await api.ask("GET", `/v1/batches/${encodeURIComponent(name)}`)).body;
  const ack = (queue, { receipt }) =>
    api.must("POST", `/v1/queues/${queue}/receipts/${receipt}:ack`);
  const row = (name) => page.locator("tbody tr", { hasText: name });
  const offered = (name, action) => row(name).getByRole("button", { name: action, exact: true });
  const isDone = (name) => row(name).locator("td", { hasText: "done" }).waitFor();
  await step("batches: close one, which is done with its last task", async () => {
    await hands.go("#/batches");
    await hands.press("Close", row("album-7"));
    await hands.fill({}, "Close", "Closed: 3 tasks to go.");
    must((await known("album-7")).state === "closed", "it is not closed");
    await offered("album-7", "Close").waitFor({ state: "detached" });
    for (const it of await api.take("thumbs", 3)) await ack("thumbs", it);
    await isDone("album-7");
    const { state, acked } = await known("album-7");
    must(state === "done" && acked === 3, `it is ${state}, and ${acked} are acknowledged`);
  });
  await step("batches: cancel one that another task waits for", async () => {
    const [held] = await api.take("imports");
    // The question counts at once, whatever the table has shown.
    await api.put("imports", "part 3", "batch=import-9");
    await hands.press("Cancel", row("import-9"));
    const values = { Reason: "wrong file", Grace: "1 h" };
    const asked = await hands.fill(values, "Cancel 3 tasks", "3 tasks had not ended.");
    must(asked.includes("import-9"), asked);
    await row("import-9").locator("td").nth(4).filter({ hasText: /^2$/ }).waitFor();
    const { body } = await api.ask("GET", `/v1/queues/imports/tasks/${held.id}`);
    must(body.state === "T" && body.cancelled === "wrong file", JSON.stringify(body));
    must((await known("import-9")).pending === 1, JSON.stringify(await known("import-9")));
    must((await api.queue("imported")).stats.counts.W === 1, "the other task does not wait");
    await ack("imports", held);
    await isDone("import-9");
    await offered("import-9", "Forget").waitFor();
    must((await api.queue("imported")).stats.counts.R === 1, "the other task still waits");
  });
  await step("batches: forget one, also with markup in its name", async () => {
    await hands.press("Forget", row("export-3"));
    await hands.fill({}, "Forget", "The batch was forgotten.");
    await row("export-3").waitFor({ state: "detached" });
    must((await known("export-3")).code === "NOTFOUND", "it is still there");
    await hands.press("Cancel", row(MARKUP));
    const asked = await hands.fill({}, "Cancel 1 task", "1 task had not ended.");
    must(asked.includes(MARKUP), asked);
    await isDone(MARKUP);
    await hands.press("Forget", row(MARKUP));
    await hands.fill({}, "Forget", "The batch was forgotten.");
    await row(MARKUP).waitFor({ state: "detached" });
    must((await known(MARKUP)).code === "NOTFOUND", "it is still there");
  });
}

async function ofConnections({ api, step, must, page, ...others }) {
  const hands = new Hands({ api, ...others }, page);
  await step("connections: end one", async () => {
    await hands.go("#/connections");
    await hands.press("End", page.locator("tbody tr", { hasText: "worker-2" }));
    const asked = await hands.fill({}, "End 1 connection", "has ended");
    must(asked.includes("worker-2"), asked);
    await page.locator("tbody tr", { hasText: "worker-2" }).waitFor({ state: "detached" });
    const { connections } = await api.must("GET", "/v1/connections");
    must(!connections.some((it) => it.name === "worker-2"), "it is still there");
  });
}
