// The tasks of a queue, page by page, in the order of their puts, or those that would be next.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { may } from "../session.js";
import { away, count, plural } from "../format.js";
import { keep } from "../router.js";
import { Name, placeLink, placePath, placeShown } from "../names.js";
import { badge, STATES } from "../parts/states.js";
import { preview } from "../parts/payload.js";
import { table } from "../parts/table.js";
import { choices } from "../parts/page.js";
import { command, empty, origin, quoted, redis } from "../parts/copy.js";
import { button } from "../parts/dialog.js";
import { killAll } from "../actions/task.js";

const PAGE = 25;

export function tasks(page, place, route) {
  const asked = { state: route.values.state ?? "", key: route.values.key ?? "", cursors: ["0"] };
  const chosen = new Map();
  const kill = button(
    "Kill the chosen",
    async () => {
      if (await killAll(place, [...chosen.values()])) {
        chosen.clear();
        await refresh();
      }
    },
    { kind: "danger-text" },
  );
  const note = () => {
    kill.hidden = chosen.size === 0 || !may("manage", place.name);
    kill.textContent = `Kill ${plural(chosen.size, "chosen task")}`;
  };
  const rows = table({
    caption: `Tasks of ${placeShown(place)}`,
    key: (it) => Name.in(it, "id").key,
    columns: columns(place, chosen, note),
    none: () => nothing(place, asked),
  });
  const told = h("p", { class: "told", role: "status" });
  const [back, next] = [
    button("Previous", () => turn(-1), { kind: "small" }),
    button("Next", () => turn(1), { kind: "small" }),
  ];
  const states = choices(
    "State",
    [["", "All"], ["next", "Next"], ...STATES.map(([state, word]) => [state, word])],
    asked.state,
    (state) => {
      asked.state = state;
      begin();
    },
  );
  const key = h("input", {
    type: "search",
    placeholder: "Key",
    "aria-label": "Only tasks with this " + "key",
    value: asked.key,
    autocomplete: "off",
    spellcheck: "false",
    onchange: () => {
      asked.key = key.value;
      begin();
    },
  });
  let cursor = "0";

  function begin() {
    asked.cursors = ["0"];
    keep({ state: asked.state, key: asked.key });
    return refresh();
  }

  function turn(step) {
    if (step > 0) asked.cursors.push(cursor);
    else asked.cursors.pop();
    return refresh();
  }

  // A page may be short although there is more, so it goes on until it has something to show.
  async function pageOf() {
    const { state, key: wanted, cursors } = asked;
    if (state === "next") {
      const query = { peek: true, count: PAGE };
      return { ...(await read(placePath(place, ["tasks"], { query }))), cursor: "0" };
    }
    const query = { count: PAGE, state, key: wanted, cursor: cursors[cursors.length - 1] };
    let answer = await read(placePath(place, ["tasks"], { query }));
    for (
      let round = 0;
      round < 20 && answer.tasks.length === 0 && answer.cursor !== "0";
      round += 1
    ) {
      query.cursor = answer.cursor;
      answer = await read(placePath(place, ["tasks"], { query }));
    }
    return answer;
  }

  async function refresh() {
    try {
      const answer = await pageOf();
      if (page.isOver) return;
      cursor = answer.cursor;
      chosen.clear();
      note();
      rows.show(answer.tasks);
      const from = (asked.cursors.length - 1) * PAGE + 1;
      fill(
        told,
        answer.tasks.length === 0
          ? ""
          : asked.state === "next"
            ? `the next ${count(answer.tasks.length)}, the most urgent first`
            : `from ${count(from)} on, the oldest first`,
      );
      back.disabled = asked.cursors.length < 2;
      next.disabled = cursor === "0";
      [back, next].forEach((it) => {
        it.hidden = back.disabled && next.disabled;
      });
    } catch (error) {
      page.fail(error);
    }
  }

  note();
  refresh();
  return [
    h(
      "div",
      { class: "toolbar" },
      states.node,
      key,
      button("Refresh", refresh, { kind: "small" }),
      told,
      h("div", { class: "pager" }, kill, back, next),
    ),
    rows.node,
  ];
}

function columns(place, chosen, note) {
  const id = (row) => Name.in(row, "id");
  const choose = (row) =>
    h("input", {
      type: "checkbox",
      "aria-label": `Choose task ${id(row).shown}`,
      onchange: (event) => {
        if (event.target.checked) chosen.set(id(row).key, id(row));
        else chosen.delete(id(row).key);
        note();
      },
    });
  return [
    {
      id: "id",
      label: "Id",
      wide: true,
      cell: (row) => h("a", { href: placeLink(place, ["tasks", ["id", id(row)]]) }, id(row).shown),
    },
    { id: "state", label: "State", cell: (row) => badge(row.state), mark: (row) => row.state },
    {
      id: "priority",
      label: "Priority",
      num: true,
      from: "s",
      cell: (row) => (row.priority === undefined ? "none" : String(row.priority)),
    },
    { id: "payload", label: "Payload", cell: (row) => h("code", { class: "line" }, preview(row)) },
    { id: "key", label: "Key", from: "l", cell: (row) => Name.in(row, "key")?.shown ?? "" },
    { id: "attempts", label: "Attempts", num: true, from: "m", cell: (row) => count(row.attempts) },
    { id: "failures", label: "Failures", num: true, from: "m", cell: (row) => count(row.failures) },
    {
      id: "reason",
      label: "Reason",
      from: "l",
      cell: (row) => Name.in(row, "reason")?.shown ?? "",
    },
    { id: "put", label: "Put", from: "m", cell: (row) => away(row.put_at) },
    may("manage", place.name) && { id: "choose", label: "Choose", unseen: true, cell: choose },
  ].filter(Boolean);
}

function nothing(place, { state, key }) {
  if (state !== "" || key !== "") return empty("No task is like that.");
  const name = place.name.shown;
  if (place.member) {
    return empty(
      "This lane has no tasks. What is published to its topic comes here:",
      redis(`PUBLISH ${quoted(name)} 'the door is open'`),
    );
  }
  return empty(
    "This queue has no tasks. Put one:",
    redis(`PUT ${quoted(name)} 'resize 17.png'`),
    command(
      `curl -X POST -H 'Content-Type: text/plain' -d 'resize 17.png' ` +
        quoted(`${origin()}${placePath(place, ["tasks"])}`),
    ),
  );
}
