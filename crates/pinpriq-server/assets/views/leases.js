// Who holds which task of a queue.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { may } from "../session.js";
import { away } from "../format.js";
import { Name, placeLink, placePath, placeShown } from "../names.js";
import { table } from "../parts/table.js";
import { empty, quoted, redis } from "../parts/copy.js";
import { act } from "../actions/task.js";
import { button } from "../parts/dialog.js";

const COUNT = 200;

export function leases(page, place) {
  const id = (row) => Name.in(row, "id");
  const refresh = async () => {
    const answer = await read(placePath(place, ["leases"], { query: { count: COUNT } }));
    rows.show(answer.leases);
    fill(told, answer.cursor === "0" ? "" : `The first ${COUNT} leases are shown.`);
  };
  const told = h("p", { class: "told" });
  const rows = table({
    caption: `Leases of ${placeShown(place)}`,
    key: (row) => id(row).key,
    columns: [
      {
        id: "id",
        label: "Task",
        wide: true,
        mark: (row) => id(row).key,
        cell: (row) =>
          h("a", { href: placeLink(place, ["tasks", ["id", id(row)]]) }, id(row).shown),
      },
      { id: "client", label: "Held by", cell: (row) => holder(row) },
      { id: "since", label: "Since", from: "s", cell: (row) => away(row.since) },
      {
        id: "until",
        label: "Until",
        cell: (row) => (row.until ? away(row.until) : "its connection ends"),
      },
      { id: "progress", label: "Progress", cell: (row) => Name.in(row, "progress")?.shown ?? "" },
      may("manage", place.name) && {
        id: "act",
        label: "Actions",
        unseen: true,
        mark: (row) => id(row).key,
        cell: (row) =>
          button(
            "Snatch",
            async () => {
              if (await act("snatch", place, id(row), "T")) await refresh();
            },
            { kind: "small" },
          ),
      },
    ].filter(Boolean),
    none: () =>
      empty(
        "No client holds a task of this queue. A worker takes one:",
        redis(`TAKE ${quoted(place.name.shown)} TTR 60000${
            place.member ? ` MEMBER ${quoted(place.member.shown)}` : ""
          }`,
        ),
      ),
  });
  page.every(2_000, refresh);
  return [told, rows.node];
}

function holder(row) {
  if (row.client === undefined) return "no connected client";
  const name = Name.in(row, "name")?.shown;
  return [`connection ${row.client}`, name, row.address, row.door].filter(Boolean).join(" · ");
}
