// A look at a moment: every view says so, and none offers what would change something.

import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { accessible, visit } from "./checks.mjs";
import { Api } from "./seed.mjs";

const VIEWS = ["#/", "#/queues/mail", "#/queues/mail?tab=settings", "#/server"];

export async function look({ program, work, serve, openAt, axe, must, step }) {
  const server = serve("data-of-look");
  await server.start();
  try {
    await new Api(server.url).put("mail", "x");
  } finally {
    await server.kill();
  }
  const shown = spawn(program, ["look", path.join(work, server.data), "--json"], {
    env: { ...process.env, TMPDIR: work },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(shown, "exit");
  try {
    const told = JSON.parse(await lineOf(shown.stdout));
    for (const colorScheme of ["light", "dark"]) {
      await step(`a look, ${colorScheme}`, () =>
        views({ told, openAt, axe, must, options: { colorScheme } }),
      );
    }
  } finally {
    shown.kill("SIGTERM");
    await ended;
  }
}

async function views({ told, openAt, axe, must, options }) {
  const url = `http://${told.http}`;
  const { page, wrong, close } = await openAt(url, options);
  for (const hash of VIEWS) {
    await visit(page, url, hash);
    await page.locator("#look", { hasText: `A look at ${told.at}: ` }).waitFor();
    const offered = await page.locator(".heading .actions button").allInnerTexts();
    must(offered.length === 0, `${hash} of a look offers ${offered}`);
    await accessible(page, axe, `${hash} of a look, ${options.colorScheme}`);
  }
  must(wrong.length === 0, wrong.join("\n"));
  await close();
}

// The first line of a stream. Undefined if it ends before.
async function lineOf(stream) {
  for await (const line of createInterface({ input: stream })) return line;
  return undefined;
}
