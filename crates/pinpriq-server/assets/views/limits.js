// The limits that several queues use together: what they allow, and how much of that is in use.

import { h } from "../h.js";
import { change } from "../api.js";
import { may } from "../session.js";
import { away, count, DASH, span } from "../format.js";
import { Name, target } from "../names.js";
import { heading } from "../parts/page.js";
import { paged } from "../parts/paged.js";
import { table } from "../parts/table.js";
import { empty, redis } from "../parts/copy.js";
import { button, confirm, form } from "../parts/dialog.js";

const name = (row) => Name.in(row, "name");
const path = (it) => target(["v1", "limits", ["limit", it]]);

export async function limits(page) {
  page.title("Limits");
  const rows = table({
    caption: "Limits",
    key: (row) => name(row).key,
    none: nothing,
    columns: [
      { id: "name", label: "Limit", wide: true, cell: (row) => name(row).shown },
      { id: "taken", label: "Taken", num: true, cell: (row) => count(row.taken) },
      { id: "max", label: "At most", num: true, cell: (row) => count(row.max) },
      { id: "tokens", label: "Tokens", num: true, cell: (row) => count(row.tokens) },
      { id: "rate", label: "Rate", from: "s", cell: (row) => row.rate ?? DASH },
      {
        id: "opens",
        label: "Opens",
        from: "m",
        cell: (row) => (row.open_at ? away(row.open_at) : DASH),
      },
      { id: "closed", label: "Closed", num: true, from: "m", cell: (row) => span(row.closed_ms) },
      { id: "queues", label: "Queues", num: true, cell: (row) => count(row.queues) },
      may("manage") && {
        id: "act",
        label: "Actions",
        unseen: true,
        mark: (row) => `${name(row).key} ${row.max} ${row.rate} ${row.queues}`,
        cell: (row) => [
          button("Change", () => setLimit(row, list.refresh), { kind: "small" }),
          row.queues === 0 && button("Drop", () => drop(row, list.refresh), { kind: "small" }),
        ],
      },
    ].filter(Boolean),
  });
  const list = paged(page, rows, "limits", "limit");
  page.show(
    heading("Limits", {
      actions: [may("manage") && button("Set a limit", () => setLimit(null, list.refresh))],
    }),
    h("p", { class: "lead" }, "A limit counts for all queues that use it, by their setting USES."),
    list.bar,
    rows.node,
  );
  page.every(2_000, list.refresh);
}

const setLimit = (known, done) =>
  form({
    title: known ? `Change ${name(known).shown}` : "Set a limit",
    action: "Save",
    fields: [
      ...(known ? [] : [{ name: "limit", label: "Name", required: true }]),
      {
        name: "max",
        label: "At most",
        value: String(known?.max ?? "none"),
        hint: "How many tasks of all its queues may be taken at once: a number, or none.",
      },
      {
        name: "rate",
        label: "Rate",
        value: known?.rate ?? "none",
        hint: "Such as 100/60000: costs in so many milliseconds. Or none.",
      },
    ],
    work: ({ limit, max, rate }) =>
      change("PUT", path(known ? name(known) : new Name(limit)), {
        max: /^\d+$/.test(max) ? Number(max) : max || "none",
        rate: rate || "none",
      }),
    done: () => "Saved.",
  }).then((isDone) => isDone && done());

const drop = (row, done) =>
  confirm({
    title: `Drop ${name(row).shown}?`,
    action: "Drop",
    text: ["No queue uses it."],
    done: "The limit was dropped.",
    work: () => change("DELETE", path(name(row))),
  }).then((isDone) => isDone && done());

const nothing = () =>
  empty(
    "There are no limits. This one lets eight tasks of all its queues be taken at once:",
    redis("LIMIT SET partner MAX 8"),
  );
