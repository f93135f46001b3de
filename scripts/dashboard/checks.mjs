// What holds for every view, with many queues, and while the server is gone.

const QUEUES = 10_000;
// Of a build for use; others are slower.
const PAGE_MS_MAX = 6_000;

// The addresses of all views, given what is in the server.
export async function addresses(api) {
  const { tasks } = await api.must("GET", "/v1/queues/mail-dead/tasks?count=1");
  return {
    overview: "#/",
    queue: "#/queues/mail",
    settings: "#/queues/mail?tab=settings",
    leases: "#/queues/mail?tab=leases",
    shares: "#/queues/mail?tab=shares",
    task: `#/queues/mail-dead/tasks/${tasks[0].id}`,
    dead: "#/dead",
    topics: "#/topics",
    topic: "#/topics/news",
    lane: "#/queues/news?member=mailer",
    schedules: "#/schedules",
    schedule: "#/schedules/nightly-report",
    batches: "#/batches",
    limits: "#/limits",
    connections: "#/connections",
    server: "#/server",
  };
}

// Goes to a view and waits until it has what it shows.
export async function visit(page, url, hash) {
  await page.goto("about:blank");
  await page.goto(`${url}/${hash}`);
  await page.locator("main h1").waitFor();
  await page.waitForLoadState("domcontentloaded");
  await page.waitForFunction(
    () =>
      document.querySelector("main tbody tr, main form, main .facts, main .payload, main .none") !==
      null,
  );
}

export async function accessible(page, axe, name) {
  // The page runs no script of others, and so not this one: it is evaluated beside it.
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, {
      resultTypes: ["violations"],
    }),
  );
  const told = found.violations.map((it) => {
    const nodes = it.nodes.flatMap((node) => [node.html, node.failureSummary]);
    return [it.id, it.help, ...nodes].join("\n  ");
  });
  if (told.length > 0) throw new Error(`axe finds in ${name}:\n${told.join("\n")}`);
}

async function views(world) {
  const all = await addresses(world.api);
  for (const colorScheme of ["light", "dark"]) {
    const { page, wrong, close } = await world.open({
      colorScheme,
      viewport: { width: 1280, height: 900 },
    });
    for (const [name, hash] of Object.entries(all)) {
      await world.step(`${name}, ${colorScheme}`, async () => {
        await visit(page, world.server.url, hash);
        await accessible(page, world.axe, `${name}, ${colorScheme}`);
        for (const width of [360, 2560]) {
          await page.setViewportSize({ width, height: 800 });
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          world.must(wide <= width, `${name} is ${wide} wide at ${width}`);
        }
        await page.setViewportSize({ width: 1280, height: 900 });
      });
    }
    world.must(wrong.length === 0, wrong.join("\n"));
    await close();
  }
  await markup(world);
  await payloads(world);
  await keyboard(world);
  await charts(world);
}

async function markup({ open, api, server, step, must, MARKUP }) {
  const { page, wrong, close } = await open();
  await step("markup is text", async () => {
    const mustBeText = async () => {
      must((await page.evaluate(() => window.hacked)) === undefined, "markup was carried out");
      must((await page.locator("main img").count()) === 0, "there is an image");
    };
    await visit(page, server.url, "#/");
    must((await page.getByText(MARKUP, { exact: true }).count()) === 1, "the name is not text");
    const { tasks } = await api.must("GET", `/v1/queues/${encodeURIComponent(MARKUP)}/tasks`);
    await visit(page, server.url, `#/queues/${encodeURIComponent(MARKUP)}`);
    await page.locator("h1", { hasText: MARKUP }).waitFor();
    await page.locator("code", { hasText: MARKUP }).waitFor();
    await visit(page, server.url, `#/queues/${encodeURIComponent(MARKUP)}/tasks/${tasks[0].id}`);
    await page.locator(".payload", { hasText: MARKUP }).waitFor();
    await mustBeText();
    await visit(page, server.url, "#/batches");
    await page.locator("tbody th", { hasText: MARKUP }).waitFor();
    await mustBeText();
  });
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

async function payloads({ open, api, server, step, must }) {
  const { page, wrong, close } = await open();
  await step("payloads as text, JSON and hex", async () => {
    const { id } = await api.put("shapes", '{"a":[1.50,12345678901234567890]}');
    await visit(page, server.url, `#/queues/shapes/tasks/${id}`);
    const shown = () => page.locator(".payload").textContent();
    must((await shown()).includes('"a": [\n    1.50,\n    12345678901234567890\n'), await shown());
    await page.getByRole("button", { name: "Text" }).click();
    must((await shown()) === '{"a":[1.50,12345678901234567890]}', await shown());
    await page.getByRole("button", { name: "Hex" }).click();
    must((await shown()).startsWith("000000  7b 22 61 22"), await shown());
    const { tasks } = await api.must("GET", "/v1/queues/binary/tasks");
    await visit(page, server.url, `#/queues/binary/tasks/${tasks[0].id}`);
    must((await shown()).startsWith("000000  00 01 02 ff fe 41 42 0a"), await shown());
    await api.must("DELETE", "/v1/queues/shapes");
  });
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

async function keyboard({ open, server, step, must }) {
  const { page, wrong, close } = await open({ viewport: { width: 360, height: 740 } });
  await step("keyboard", async () => {
    await visit(page, server.url, "#/");
    await page.keyboard.press("Tab");
    must(
      (await page.locator(".skip:focus").count()) === 1,
      "the first stop is no way past the bar",
    );
    await page.keyboard.press("Enter");
    must((await page.locator("main:focus").count()) === 1, "the way past the bar leads nowhere");
    await page.getByRole("button", { name: "Menu" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Schedules" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Schedules" }).waitFor();
    must((await page.locator("h1:focus").count()) === 1, "the heading has no focus");
    await page.getByRole("button", { name: "Set a schedule" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("Name").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    const has = await page.getByRole("button", { name: "Set a schedule" });
    must(await has.evaluate((it) => it === document.activeElement), "the focus does not come back");
  });
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

async function charts({ open, server, step, must }) {
  const { page, wrong, close } = await open();
  await step("charts live, and after a reload", async () => {
    await visit(page, server.url, "#/");
    await page.locator(".uplot canvas").nth(3).waitFor();
    await page
      .locator(".tile", { hasText: "Came in" })
      .locator("dd", { hasText: /[1-9].*\/s/ })
      .waitFor();
    must(await page.locator(".tile", { hasText: "Ready" }).first().isVisible(), "no tile");
    await page.reload();
    await page.locator(".uplot canvas").nth(3).waitFor();
  });
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

// Many queues: pages, orders and filters stay quick.
async function many(world) {
  const { api, server, step, must } = world;
  await step(`${QUEUES} queues`, async () => {
    const names = Array.from({ length: QUEUES }, (_, at) => `many-${String(at).padStart(5, "0")}`);
    while (names.length > 0) {
      await Promise.all(
        names
          .splice(0, 50)
          .map((name, at) =>
            at % 2 ? api.put(name, "x") : api.batch(name, [{ payload: "x" }, { payload: "y" }]),
          ),
      );
    }
    await api.batch(
      "many-07777",
      Array.from({ length: 900 }, () => ({ payload: "z" })),
    );
  });
  const { page, wrong, close } = await world.open();
  await visit(page, server.url, "#/");
  await page.locator(".told", { hasText: /of 10,0\d\d queues/ }).waitFor();
  const first = page.locator("tbody tr").first();
  const timed = async (name, work) => {
    const started = Date.now();
    await step(name, work);
    must(Date.now() - started < PAGE_MS_MAX, `${name} takes ${Date.now() - started} ms`);
  };
  await timed("next page", async () => {
    await page.getByRole("button", { name: "Next" }).click();
    await page.locator(".told", { hasText: "51 to 100 of" }).waitFor();
  });
  await timed("filter by typing", async () => {
    await page.getByLabel("Filter the queues by name").pressSequentially("MANY-0123");
    await page.locator(".told", { hasText: /^10 queues/ }).waitFor();
    must((await first.textContent()).startsWith("many-01230"), await first.textContent());
  });
  await page.getByLabel("Filter the queues by name").fill("");
  await timed("order by ready tasks", async () => {
    await page.getByRole("button", { name: "ready", exact: true }).click();
    await page.locator("tbody tr").first().filter({ hasText: "many-07777" }).waitFor();
  });
  const order = page.locator("thead th", { hasText: "ready" }).first();
  must((await order.getAttribute("aria-sort")) === "descending", "the order is not told");
  must(page.url().includes("sort=ready"), "the order is not in the address");
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

// The server is killed under an open page, and started again.
async function gone({ open, server, step, must }) {
  const { page, close } = await open();
  await step("gone, and back", async () => {
    await visit(page, server.url, "#/queues/mail");
    const banner = page.locator("#banner");
    must(await banner.isHidden(), "there is a banner although all is well");
    const { ports } = server;
    await server.kill();
    await banner.waitFor({ state: "visible" });
    must(/does not answer/.test(await banner.textContent()), "the banner says something else");
    await server.start(ports);
    await banner.waitFor({ state: "hidden" });
    await page.locator("h1", { hasText: "mail" }).waitFor();
    await page.locator("main tbody tr").first().waitFor();
  });
  await close();
}

export const checks = { views, many, gone };
