// A server with users: visitors see a form until they sign in, then what they may see.

import { spawnSync } from "node:child_process";
import path from "node:path";
import { accessible } from "./checks.mjs";

const PASSWORD = "a password for trying";

// Takes the pictures of the form.
export async function pictures({ program, work, serve, openAt, must }, folder) {
  const file = path.join(work, "users-of-pictures.toml");
  const given = { input: `${PASSWORD}\n` };
  const done = spawnSync(program, ["user", "add", "ana", "look:*", "--users", file], given);
  must(done.status === 0, "there is no user for the pictures");
  const server = serve("data-of-pictures", ["--users", file]);
  await server.start();
  try {
    for (const colorScheme of ["light", "dark"]) {
      const viewport = { width: 1120, height: 480 };
      const { page, close } = await openAt(server.url, { colorScheme, viewport });
      await page.goto(`${server.url}/`);
      await page.locator("form.login").waitFor();
      await page.locator("#user").fill("ana");
      await page.screenshot({ path: path.join(folder, `login-${colorScheme}.png`) });
      await close();
    }
  } finally {
    await server.kill();
  }
}

export async function signing({ program, work, serve, openAt, axe, must, step }) {
  const file = path.join(work, "users.toml");
  const user = (...words) => {
    const given = { input: `${PASSWORD}\n`, encoding: "utf8" };
    const done = spawnSync(program, ["user", ...words, "--users", file], given);
    must(done.status === 0, `pinpriq user ${words.join(" ")}: ${done.stderr}`);
  };
  user("add", "ana", "put:mail*", "take:mail*", "look:mail*", "manage:mail*");
  user("add", "boss", "admin", "put:*", "look:*");
  const server = serve("data-of-users", ["--users", file]);
  await server.start();
  try {
    const headers = {
      Authorization: `Basic ${btoa(`boss:${PASSWORD}`)}`,
      "Content-Type": "text/plain",
    };
    for (const queue of ["mail", "mail-dead", "other"]) {
      const url = `${server.url}/v1/queues/${queue}/tasks`;
      const { status } = await fetch(url, { method: "POST", headers, body: "x" });
      must(status === 201, `a put into ${queue} was answered ${status}`);
    }
    for (const colorScheme of ["light", "dark"]) {
      await step(`signing in, ${colorScheme}`, () =>
        visit({ server, openAt, axe, must, user, colorScheme }),
      );
    }
  } finally {
    await server.kill();
  }
}

async function visit({ server, openAt, axe, must, user, colorScheme }) {
  const { page, wrong, close } = await openAt(server.url, { colorScheme });
  const form = page.locator("form.login");
  const text = (selector) => page.locator(selector).innerText();
  const go = async (hash, sentence) => {
    await page.goto(`${server.url}/${hash}`);
    await page.getByText(sentence).first().waitFor();
  };

  await page.goto(`${server.url}/#/queues/mail`);
  await form.waitFor();
  await accessible(page, axe, `the form to sign in, ${colorScheme}`);
  for (const width of [360, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    must(wide <= width, `the form to sign in is ${wide} wide at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });

  // By keyboard alone: the first field has the focus.
  await page.keyboard.type("ana");
  await page.keyboard.press("Tab");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "wrong" }).waitFor();
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "mail", exact: true }).waitFor();
  await page.locator("#who button").waitFor();
  must((await text("#who")).startsWith("ana"), `the bar says ${await text("#who")}`);
  must((await page.evaluate(() => document.cookie)) === "", "a script can read the cookie");

  await go("#/", "mail-dead");
  must((await page.getByText("other", { exact: true }).count()) === 0, "ana sees other");
  await go("#/queues/other", "look:other");
  await go("#/server", "needs the right admin");
  await go("#/connections", "needs the right admin");
  await accessible(page, axe, `what ana may not see, ${colorScheme}`);

  // A form that changes something carries the field that a cookie needs.
  await page.goto(`${server.url}/#/queues/mail`);
  const status = await page.evaluate(async () => {
    const { change } = await import("/assets/api.js");
    try {
      await change("POST", "/v1/queues/mail:pause", {});
      await change("POST", "/v1/queues/mail:resume", {});
      return null;
    } catch (error) {
      return error.message;
    }
  });
  must(status === null, `ana cannot pause mail: ${status}`);

  // A queue without tasks shows a command, with the port of this server.
  await go("#/queues/mail?tab=leases", "No client holds a task of this queue");
  const commands = await page.locator(".command code").allInnerTexts();
  const wanted = `redis-cli -p ${server.ports.resp} --user ana --askpass TAKE mail`;
  must(commands[0].startsWith(wanted), `the command is ${commands}`);

  // Each user is offered what that user may do.
  const offered = () => page.locator(".heading .actions button").allInnerTexts();
  must((await offered()).includes("Truncate"), "ana may truncate, and is not offered it");
  await page.locator("#who button").click();
  await form.waitFor();
  await page.locator("#user").fill("boss");
  await page.locator("#password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "mail", exact: true }).waitFor();
  must((await offered()).join() === "Put a task", `boss is offered ${await offered()}`);

  await page.locator("#who button").click();
  await form.waitFor();

  // Somebody who is removed is out.
  await page.locator("#user").fill("ana");
  await page.locator("#password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#who button").waitFor();
  user("remove", "ana");
  await form.waitFor({ timeout: 30_000 });
  user("add", "ana", "put:mail*", "take:mail*", "look:mail*", "manage:mail*");
  const headers = { Authorization: `Basic ${btoa(`ana:${PASSWORD}`)}` };
  while ((await fetch(`${server.url}/v1/session`, { headers })).status !== 200);

  // A browser tells of each refusal.
  const others = wrong.filter((it) => !/status of (401|403)/.test(it));
  must(others.length === 0, others.join("\n"));
  await close();
}
