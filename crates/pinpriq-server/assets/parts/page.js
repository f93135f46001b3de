// What views have in common: a heading with actions, tiles with figures, sections, tabs.

import { fill, freshId, h } from "../h.js";

// The head of a view: where it is, its title, and what can be done.
export function heading(title, { above, badges = [], actions = [] } = {}) {
  return h(
    "div",
    { class: "heading" },
    h(
      "div",
      { class: "heading-text" },
      above && h("nav", { class: "crumbs", "aria-label": "Where this is" }, above),
      h("h1", { tabindex: "-1" }, title, " ", badges),
    ),
    h("div", { class: "actions" }, actions),
  );
}

// A figure with its name. `set` shows another value, and a line below it.
export function tile(label, { state } = {}) {
  const value = h("dd", null, "–");
  const note = h("dd", { class: "note" });
  const node = h(
    "div",
    { class: ["tile", state && `tile-${state}`] },
    h("dt", null, label),
    value,
    note,
  );
  return {
    node,
    set: (text, below = "") => {
      if (value.textContent !== text) value.textContent = text;
      if (note.textContent !== below) note.textContent = below;
    },
  };
}

export const tiles = (all) =>
  h(
    "dl",
    { class: `tiles tiles-${all.length}` },
    all.map((it) => it.node),
  );

export function section(title, ...inside) {
  const id = freshId("section");
  return h("section", { class: "section", "aria-labelledby": id }, h("h2", { id }, title), inside);
}

// A list of facts: pairs of a name and a value.
export const facts = (pairs) =>
  h(
    "dl",
    { class: "facts" },
    pairs
      .filter(Boolean)
      .map(([name, it]) => h("div", null, h("dt", null, name), h("dd", null, it))),
  );

// A row of choices of which one holds.
export function choices(label, options, chosen, change) {
  const buttons = options.map(([value, text]) =>
    h(
      "button",
      {
        type: "button",
        "data-value": value,
        "aria-pressed": String(value === chosen),
        onclick: () => {
          mark(value);
          change(value);
        },
      },
      text,
    ),
  );
  const mark = (value) =>
    buttons.forEach((it) =>
      it.setAttribute("aria-pressed", String(it.getAttribute("data-value") === value)),
    );
  return {
    node: h("div", { class: "choices", role: "group", "aria-label": label }, buttons),
    mark,
  };
}

// Shows an error in place of what was asked for.
export const failure = (node, error) =>
  fill(node, h("p", { class: "form-error", role: "alert" }, error.message));

// The headers of a task or a schedule, as facts.
export const headerFacts = (headers) =>
  Object.entries(headers ?? {}).map(([name, value]) => [
    `Header ${name}`,
    value.base64 === undefined ? value : `${value.base64} (base64)`,
  ]);
