// The shares of a queue: who waits, and who is served.

import { fill, h } from "../h.js";
import { change, read } from "../api.js";
import { may } from "../session.js";
import { count, DASH, span } from "../format.js";
import { Name, placePath, placeShown } from "../names.js";
import { table } from "../parts/table.js";
import { empty, quoted, redis } from "../parts/copy.js";
import { button, form } from "../parts/dialog.js";

const COUNT = 100;
const name = (row) => Name.in(row, "share");
const shown = (row) => (name(row).text === "" ? "without a share" : name(row).shown);
const ms = (value) => (value === undefined ? DASH : span(value));

export function shares(page, place) {
  const refresh = async () => {
    let answer;
    do {
      const query = { count: COUNT, top: "true", cursor: answer?.cursor };
      answer = await read(placePath(place, ["shares"], { query }));
    } while (answer.cursor !== "0" && answer.shares.length === 0);
    rows.show(answer.shares);
    fill(
      told,
      answer.shares.length < COUNT
        ? "Those that wait longest come first. What became of tasks counts since this is looked at."
        : `The ${COUNT} shares that wait longest are shown.`,
    );
  };
  const told = h("p", { class: "told" });
  const rows = table({
    caption: `Shares of ${placeShown(place)}`,
    key: (row) => name(row).key,
    columns: [
      { id: "share", label: "Share", wide: true, cell: shown },
      { id: "ready", label: "Ready", num: true, cell: (row) => count(row.ready) },
      { id: "taken", label: "Taken", num: true, cell: (row) => count(row.taken) },
      { id: "oldest", label: "Waits for", num: true, cell: (row) => ms(row.oldest_ready_ms) },
      {
        id: "waited",
        label: "The last one waited",
        num: true,
        from: "m",
        cell: (row) => ms(row.waited_ms),
      },
      { id: "acked", label: "Acknowledged", num: true, from: "m", cell: (row) => count(row.acked) },
      { id: "failed", label: "Failed", num: true, from: "m", cell: (row) => count(row.failed) },
      { id: "rules", label: "Rules", from: "l", cell: rules },
      !place.member &&
        may("manage", place.name) && {
          id: "act",
          label: "Actions",
          unseen: true,
          mark: (row) => `${name(row).key} ${rules(row)}`,
          cell: (row) =>
            button("Change", () => changeRules(place, row, refresh), { kind: "small" }),
        },
    ].filter(Boolean),
    none: () =>
      empty(
        "No share has tasks in this queue. A put names one:",
        redis(`PUT ${quoted(place.name.shown)} hello SHARE acme`),
      ),
  });
  page.every(2_000, refresh);
  return [told, rows.node];
}

// What a share has instead of the rules of its queue.
function rules(row) {
  const all = [
    row.weight !== 1 && `weight ${row.weight}`,
    row.limit !== undefined && `limit ${row.limit}`,
    row.rate !== undefined && `rate ${row.rate}`,
  ];
  return all.filter(Boolean).join(", ") || DASH;
}

const changeRules = (place, row, done) =>
  form({
    title: `Change the rules of ${shown(row)}`,
    action: "Save",
    fields: [
      { name: "weight", label: "Weight", kind: "number", value: row.weight, required: true },
      {
        name: "limit",
        label: "Limit",
        value: row.limit === undefined ? "default" : String(row.limit),
        hint: "How many of its tasks may be taken at once: a number, none, or default.",
      },
      {
        name: "rate",
        label: "Rate",
        value: row.rate ?? "default",
        hint: "Such as 100/60000: costs in so many milliseconds. Or none, or default.",
      },
    ],
    work: ({ weight, limit, rate }) =>
      change("PUT", placePath(place, ["shares", ["share", name(row)]]), {
        weight,
        limit: /^\d+$/.test(limit) ? Number(limit) : limit || "default",
        rate: rate || "default",
      }),
    done: () => "Saved.",
  }).then((isDone) => isDone && done());
