// What a person does with a page: goes somewhere, presses buttons, fills in dialogs.

import { visit } from "./checks.mjs";

export class Hands {
  constructor(world, page) {
    Object.assign(this, world, { page });
  }

  go(hash) {
    return visit(this.page, this.server.url, hash);
  }

  press(name, within = this.page) {
    return within.getByRole("button", { name, exact: true }).first().click();
  }

  // Fills in a dialog, and presses the button of this name. Returns what it says.
  async give(values, action) {
    const dialog = this.page.locator("dialog");
    await dialog.getByRole("button", { name: action, exact: true }).waitFor();
    for (const [label, value] of Object.entries(values)) {
      const field = dialog.getByLabel(label, { exact: true });
      const isChoice = await field.evaluate((it) => it.tagName === "SELECT");
      if (isChoice) await field.selectOption(value);
      else await field.fill(value);
    }
    const text = await dialog.textContent();
    await dialog.getByRole("button", { name: action, exact: true }).click();
    return text;
  }

  // The same, and waits until it is done.
  async fill(values, action, said) {
    const text = await this.give(values, action);
    await this.page.locator("dialog").waitFor({ state: "detached" });
    if (said) await this.page.locator(".toast", { hasText: said }).first().waitFor();
    return text;
  }
}
