// Tables whose rows change in place: a row that is shown again keeps its elements, and the focus.

import { fill, h } from "../h.js";

// Makes a table. Columns have `id`, `label`, `cell(row)`, and may have `num` (figures), `from`
// (`m` or `l`: the width of the window from which they are shown), and `sort` (what ordering by
// them is called). `order` has `sort`, `desc` and `change(sort, desc)`.
export function table({ caption, columns, key, order, none }) {
  const body = h("tbody");
  const heads = columns.map((column) => head(column, order));
  const node = h(
    "div",
    { class: "table-box", role: "region", tabindex: "0", "aria-label": `${caption}, a table` },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          heads.map((it) => it.node),
        ),
      ),
      body,
    ),
  );
  const known = new Map();
  const show = (rows) => {
    heads.forEach((it) => it.mark());
    if (rows.length === 0 && none) {
      known.clear();
      fill(body, h("tr", { class: "none" }, h("td", { colspan: String(columns.length) }, none())));
      return;
    }
    const wanted = new Set();
    const lines = rows.map((row) => {
      const name = key(row);
      wanted.add(name);
      if (!known.has(name)) known.set(name, line(columns));
      known.get(name).show(row);
      return known.get(name).node;
    });
    for (const name of [...known.keys()]) if (!wanted.has(name)) known.delete(name);
    place(body, lines);
  };
  return { node, show };
}

const kinds = (column) => [
  column.num && "num",
  column.from && `from-${column.from}`,
  column.wide && "wide",
];

function head(column, order) {
  const node = h("th", { scope: "col", class: kinds(column) });
  if (!order || !column.sort) {
    fill(node, column.unseen ? h("span", { class: "unseen" }, column.label) : column.label);
    return { node, mark() {} };
  }
  const arrow = h("span", { class: "arrow", "aria-hidden": "true" });
  const press = () => {
    const isSame = order.sort === column.sort;
    order.change(column.sort, isSame ? !order.desc : Boolean(column.num));
  };
  fill(node, h("button", { type: "button", class: "sort", onclick: press }, column.label, arrow));
  const mark = () => {
    const isSame = order.sort === column.sort;
    node.setAttribute("aria-sort", isSame ? (order.desc ? "descending" : "ascending") : "none");
    arrow.textContent = isSame ? (order.desc ? "▼" : "▲") : "";
  };
  mark();
  return { node, mark };
}

// A row of cells, each of which is replaced only if what it shows has changed.
function line(columns) {
  const cells = columns.map((column, at) =>
    h(at === 0 ? "th" : "td", { class: kinds(column), scope: at === 0 ? "row" : null }),
  );
  const told = columns.map(() => undefined);
  const node = h("tr", null, cells);
  const show = (row) =>
    columns.forEach((column, at) => {
      const mark = column.mark ? column.mark(row) : undefined;
      if (mark !== undefined && mark === told[at]) return;
      const value = column.cell(row);
      if (!(value instanceof Node) && !Array.isArray(value)) {
        if (told[at] === String(value)) return;
        told[at] = String(value);
      } else told[at] = mark;
      fill(cells[at], value);
    });
  return { node, show };
}

// Puts nodes into a parent in this order, and moves only those that are elsewhere.
function place(parent, nodes) {
  nodes.forEach((node, at) => {
    const present = parent.children[at];
    if (present !== node) parent.insertBefore(node, present ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}
