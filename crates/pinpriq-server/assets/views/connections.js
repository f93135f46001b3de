// Who is connected, and what each connection is about.

import { fill, h } from "../h.js";
import { change, read } from "../api.js";
import { isAdmin } from "../session.js";
import { count, plural, span } from "../format.js";
import { target } from "../names.js";
import { heading } from "../parts/page.js";
import { table } from "../parts/table.js";
import { button, confirm } from "../parts/dialog.js";

const SHOWN_MAX = 500;
const ORDERS = {
  id: (it) => it.id,
  age: (it) => it.age,
  name: (it) => String(it.name),
  door: (it) => it.door,
  waiting: (it) => it.waiting,
};

export async function connections(page) {
  page.title("Connections");
  const order = {
    sort: "id",
    desc: false,
    change(sort, desc) {
      Object.assign(order, { sort, desc });
      tell();
    },
  };
  let all = [];
  const told = h("p", { class: "told", role: "status" });
  const filter = h("input", {
    type: "search",
    placeholder: "Filter",
    autocomplete: "off",
    "aria-label": "Filter the connections by name or address",
    oninput: () => tell(),
  });
  const rows = table({
    caption: "Connections",
    key: (row) => String(row.id),
    order,
    columns: columns(() => refresh()),
    none: () => h("p", { class: "quiet" }, "None is like that."),
  });

  function tell() {
    const wanted = filter.value.toLowerCase();
    const isWanted = (it) =>
      `${it.name} ${it.addr} ${it.door} ${it.lib_name}`.toLowerCase().includes(wanted);
    const by = ORDERS[order.sort];
    const sign = order.desc ? -1 : 1;
    const compare = (one, other) => (by(one) < by(other) ? -sign : by(one) > by(other) ? sign : 0);
    const some = all.filter(isWanted).sort(compare);
    rows.show(some.slice(0, SHOWN_MAX));
    fill(
      told,
      some.length > SHOWN_MAX
        ? `${count(SHOWN_MAX)} of ${plural(some.length, "connection")}`
        : plural(some.length, "connection"),
    );
  }

  async function refresh() {
    const answer = await read("/v1/connections");
    if (page.isOver) return;
    all = answer.connections;
    tell();
  }

  page.show(
    heading("Connections"),
    h(
      "p",
      { class: "lead" },
      "Everybody who is connected, over all protocols. HTTP connections " +
        "come and go, and mean nothing for leases.",
    ),
    h("div", { class: "toolbar" }, filter, told),
    rows.node,
  );
  page.every(2_000, refresh);
}

function columns(refresh) {
  const end = async (row) => {
    const isDone = await confirm({
      title: `End connection ${row.id}?`,
      action: "End 1 connection",
      text:
        `The connection of ${row.name || row.addr} ends. Leases without a TTR end with it, and ` +
        "their tasks are ready again.",
      work: () => change("DELETE", target(["v1", "connections", String(row.id)])),
      done: "The connection has ended.",
    });
    if (isDone) await refresh();
  };
  return [
    { id: "id", label: "Number", sort: "id", num: true, cell: (row) => String(row.id) },
    { id: "name", label: "Name", sort: "name", wide: true, cell: (row) => `${row.name || "–"}` },
    { id: "addr", label: "Address", from: "s", cell: (row) => String(row.addr) },
    { id: "door", label: "Protocol", sort: "door", cell: (row) => row.door },
    {
      id: "age",
      label: "Age",
      sort: "age",
      num: true,
      from: "s",
      cell: (row) => span(row.age * 1_000),
    },
    { id: "blocked", label: "Blocked", from: "m", cell: (row) => (row.blocked ? "in a take" : "") },
    {
      id: "waiting",
      label: "Under way",
      sort: "waiting",
      num: true,
      from: "m",
      cell: (row) => count(row.waiting),
    },
    {
      id: "lib",
      label: "Library",
      from: "l",
      cell: (row) => `${row.lib_name ?? ""} ${row.lib_ver ?? ""}`.trim(),
    },
    { id: "shard", label: "Shard", num: true, from: "l", cell: (row) => String(row.shard ?? "") },
    {
      id: "end",
      label: "Actions",
      unseen: true,
      mark: () => "",
      cell: (row) => isAdmin() && button("End", () => end(row), { kind: "small danger-text" }),
    },
  ];
}
