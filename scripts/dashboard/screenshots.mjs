// Takes the pictures of docs/dashboard.md: each view, light and dark.

import fs from "node:fs";
import path from "node:path";
import { addresses, visit } from "./checks.mjs";

const HEIGHTS = { overview: 900, queue: 900, server: 820, settings: 900 };
const WATCHED_MS = 60_000;

export async function screenshots({ open, server, api, step }, folder) {
  fs.mkdirSync(folder, { recursive: true });
  const all = await addresses(api);
  const pages = [];
  for (const colorScheme of ["light", "dark"]) {
    const viewport = { width: 1120, height: 720 };
    pages.push({ colorScheme, ...(await open({ colorScheme, viewport })) });
  }
  // Charts are empty at first.
  await Promise.all(pages.map(({ page }) => visit(page, server.url, "#/queues/mail")));
  await Promise.all(pages.map(({ page }) => visit(page, server.url, "#/")));
  await pages[0].page.waitForTimeout(WATCHED_MS);
  for (const { colorScheme, page, close } of pages) {
    for (const [name, hash] of Object.entries(all)) {
      await step(`${name}-${colorScheme}`, async () => {
        await page.setViewportSize({ width: 1120, height: HEIGHTS[name] ?? 640 });
        await page.goto(`${server.url}/${hash}`);
        await page.waitForTimeout(2_500);
        await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}.png`) });
      });
    }
    await close();
  }
  const { page, close } = await open({ viewport: { width: 360, height: 720 } });
  await page.goto(`${server.url}/#/`);
  await page.waitForTimeout(2_500);
  await page.screenshot({ path: path.join(folder, "narrow-light.png") });
  await close();
}
