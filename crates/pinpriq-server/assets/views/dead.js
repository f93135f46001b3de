// Dead letters over all queues, and what is buried: what needs attention, and why.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { may } from "../session.js";
import { count, plural } from "../format.js";
import { Name, placeLink } from "../names.js";
import { heading, section, tile, tiles } from "../parts/page.js";
import { table } from "../parts/table.js";
import { empty, redis } from "../parts/copy.js";
import { button } from "../parts/dialog.js";
import { sendBack } from "../actions/bulk.js";
import { plow, redrive } from "../actions/queue.js";

const EVERY_MS = 5_000;
const REASONS_MAX = 20;

export async function dead(page) {
  page.title("Dead letters");
  const shown = {
    letters: tile("Dead letters"),
    buried: tile("Buried", { state: "B" }),
    places: tile("Queues concerned"),
  };
  const reasons = h("div", { class: "card" });
  const note = h("p", { class: "quiet" });
  const rows = table({
    caption: "Queues with dead letters or buried tasks",
    key: (row) => Name.in(row, "name").key,
    columns: columns(() => refresh()),
    none: nothing,
  });

  async function refresh() {
    const answer = await read("/v1/dead-letters");
    if (page.isOver) return;
    const sum = (field) => answer.queues.reduce((all, it) => all + it[field], 0);
    shown.letters.set(count(sum("letters")));
    shown.buried.set(count(sum("buried")));
    shown.places.set(count(answer.queues.length));
    // A button that has the focus keeps it while nothing has changed.
    const all = together(answer.queues);
    const mark = JSON.stringify(all.map(({ shown, number }) => [shown, number]));
    if (reasons.dataset.mark !== mark) {
      reasons.dataset.mark = mark;
      fill(reasons, list(all, () => refresh()));
    }
    fill(
      note,
      answer.complete
        ? ""
        : "There are more than can be looked at: reasons are those of " +
            "the oldest 1,000 tasks of each queue, and of at most 10,000 in all.",
    );
    rows.show(answer.queues);
  }

  page.show(
    heading("Dead letters"),
    h(
      "p",
      { class: "lead" },
      "What has failed too often: tasks in the queues for dead letters, and " +
        "tasks that are buried. Repair the cause, then send them back.",
    ),
    tiles(Object.values(shown)),
    section("Reasons", reasons, note),
    section("Queues", rows.node),
  );
  page.every(EVERY_MS, refresh);
}

const shownReason = (it) => Name.in(it, "reason")?.shown || "no reason was given";

// The reasons of all queues with the queues that have them, the most frequent first.
function together(queues) {
  const all = new Map();
  for (const queue of queues) {
    const { letters, buried } = queue;
    const place = { name: Name.in(queue, "name") };
    for (const it of queue.reasons) {
      const shown = shownReason(it);
      const reason = Name.in(it, "reason");
      const known = all.get(shown) ?? { shown, reason, number: 0, places: [] };
      known.number += it.count;
      known.places.push({ place, letters, buried });
      all.set(shown, known);
    }
  }
  return [...all.values()].sort((one, other) => other.number - one.number).slice(0, REASONS_MAX);
}

// Those of the places that this user may send tasks back from.
const open = (places) => places.filter(({ place }) => may("put") && may("manage", place.name));

function list(all, refresh) {
  if (all.length === 0) return h("p", { class: "quiet" }, "There are none.");
  const most = all[0].number;
  return h(
    "ul",
    { class: "bars bars-wide" },
    all.map(({ shown, reason, number, places }) =>
      h(
        "li",
        null,
        h("span", { class: "bar-label", title: shown }, shown),
        h(
          "span",
          { class: "bar-space" },
          h("span", { class: "bar-fill state-B", style: { width: `${(number / most) * 100}%` } }),
        ),
        h("span", { class: "bar-value" }, count(number)),
        reason &&
          open(places).length > 0 &&
          button("Send back", () => sendBack(reason, open(places), refresh), { kind: "small" }),
      ),
    ),
  );
}

function columns(refresh) {
  const place = (row) => ({ name: Name.in(row, "name") });
  const actions = (row) =>
    h(
      "span",
      { class: "group" },
      row.letters > 0 &&
        may("manage", place(row).name) &&
        may("put") &&
        button("Redrive", () => redrive(place(row), refresh), { kind: "small" }),
      row.buried > 0 &&
        may("manage", place(row).name) &&
        button("Dig up", () => plow(place(row), refresh), { kind: "small" }),
    );
  const sources = (row) =>
    row.sources
      .map((it) => (typeof it === "string" ? new Name(it) : new Name(undefined, it.base64)).shown)
      .join(", ");
  return [
    {
      id: "name",
      label: "Queue",
      wide: true,
      mark: (row) => String(row.buried > 0),
      cell: (row) =>
        h(
          "a",
          { href: placeLink(place(row), [], row.letters > 0 ? {} : { state: "B" }) },
          place(row).name.shown,
        ),
    },
    { id: "letters", label: "Dead letters", num: true, cell: (row) => count(row.letters) },
    { id: "buried", label: "Buried", num: true, cell: (row) => count(row.buried) },
    { id: "sources", label: "For", from: "m", cell: sources },
    {
      id: "reasons",
      label: "Most frequent reason",
      from: "s",
      cell: (row) =>
        row.reasons.length > 0
          ? `${shownReason(row.reasons[0])} (${plural(row.reasons[0].count, "task")})`
          : "",
    },
    {
      id: "actions",
      label: "Actions",
      unseen: true,
      cell: actions,
      mark: (row) => `${row.letters > 0} ${row.buried > 0}`,
    },
  ];
}

const nothing = () =>
  empty(
    "No queue has dead letters, and nothing is buried. A queue keeps what " +
      "has failed too often, by this setting:",
    redis("QUEUE SET jobs ATTEMPTS 5 BACKOFF 1000 DEADLETTER '{jobs}-dead'"),
  );
