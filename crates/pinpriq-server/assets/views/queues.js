// The table of queues: pages, order and filter are made by the server, so that it stays quick with
// any number of queues.

import { fill, h } from "../h.js";
import { read } from "../api.js";
import { count, plural, rate, span } from "../format.js";
import { keep, parse } from "../router.js";
import { Name, placeLink, target } from "../names.js";
import { spark } from "../chart.js";
import { letter, STATES } from "../parts/states.js";
import { table } from "../parts/table.js";
import { section } from "../parts/page.js";
import { command, empty, origin, redis } from "../parts/copy.js";

const PAGE = 50;
const EVERY_MS = 2_000;
const SAMPLES_MAX = 60;
const SEEN_MAX = 2_000;

// The rates that were seen of each queue, for the little lines.
const seen = new Map();

function note(queue) {
  const key = Name.in(queue, "name").key;
  const samples = seen.get(key) ?? [];
  samples.push(queue.rates ? queue.rates.out : null);
  if (samples.length > SAMPLES_MAX) samples.shift();
  seen.delete(key);
  seen.set(key, samples);
  if (seen.size > SEEN_MAX) seen.delete(seen.keys().next().value);
  return samples;
}

function columns() {
  const number = ([state, word], from) => ({
    id: word,
    sort: word,
    num: true,
    from,
    label: h("span", null, letter(state), h("span", { class: "unseen" }, word)),
    mark: (row) => row.counts[state],
    cell: (row) =>
      h("span", { class: row.counts[state] ? null : "zero" }, count(row.counts[state])),
  });
  const name = (row) => {
    const it = Name.in(row, "name");
    return [
      h("a", { href: placeLink({ name: it }) }, it.shown),
      row.holds_dead_letters > 0 && h("span", { class: "tag" }, "dead letters"),
      row.paused !== "none" && h("span", { class: "tag" }, `paused ${pausedWord(row.paused)}`),
    ];
  };
  return [
    {
      id: "name",
      label: "Queue",
      sort: "name",
      wide: true,
      cell: name,
      mark: (it) => `${it.paused} ${it.holds_dead_letters}`,
    },
    ...STATES.slice(0, 4).map((state, at) => number(state, [null, "s", "m", null][at])),
    ...STATES.slice(4).map((state) => number(state, "xl")),
    {
      id: "in",
      label: "in/s",
      sort: "in",
      num: true,
      from: "m",
      cell: (row) => rate(row.rates?.in),
    },
    {
      id: "out",
      label: "out/s",
      sort: "out",
      num: true,
      from: "s",
      cell: (row) => rate(row.rates?.out),
    },
    {
      id: "oldest",
      label: "oldest ready",
      sort: "oldest",
      num: true,
      from: "l",
      // No client waits for dead letters.
      cell: (row) => span(row.holds_dead_letters > 0 ? null : row.oldest_ready_ms),
    },
    {
      id: "spark",
      label: "out, last minutes",
      from: "l",
      mark: (row) => row.samples.join(),
      cell: (row) => spark(row.samples, `left per second, now ${rate(row.rates?.out)}`),
    },
  ];
}

const pausedWord = (paused) => ({ in: "for puts", out: "for takes", both: "" })[paused] ?? paused;

export function queues(page) {
  const { values } = parse(location.hash);
  const asked = {
    sort: values.sort ?? "name",
    desc: values.desc === "true",
    contains: values.contains ?? "",
    offset: Number(values.offset) || 0,
  };
  const order = {
    get sort() {
      return asked.sort;
    },
    get desc() {
      return asked.desc;
    },
    change(sort, desc) {
      Object.assign(asked, { sort, desc, offset: 0 });
      refresh();
    },
  };
  const rows = table({
    caption: "Queues",
    columns: columns(),
    order,
    key: (row) => Name.in(row, "name").key,
    none: () => nothing(asked.contains),
  });
  const filter = h("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter by name",
    "aria-label": "Filter the queues by name",
    value: asked.contains,
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => {
      Object.assign(asked, { contains: filter.value, offset: 0 });
      clearTimeout(asked.typing);
      asked.typing = setTimeout(refresh, 120);
    },
  });
  const told = h("p", { class: "told", role: "status" });
  const pager = [button("Previous", -PAGE), button("Next", PAGE)];
  let latest = 0;

  async function refresh() {
    latest += 1;
    const mine = latest;
    const { sort, desc, contains, offset } = asked;
    keep({
      sort: sort === "name" ? undefined : sort,
      desc: desc || undefined,
      contains: contains || undefined,
      offset: offset || undefined,
    });
    const query = { sort, desc, contains: contains || undefined, offset, count: PAGE };
    const answer = await read(target(["v1", "queues"], { query }));
    if (mine !== latest || page.isOver) return;
    rows.show(answer.queues.map((it) => ({ ...it, samples: [...note(it)] })));
    const last = Math.min(offset + answer.queues.length, answer.total);
    fill(
      told,
      answer.total > PAGE
        ? `${count(offset + 1)} to ${count(last)} of ${plural(answer.total, "queue")}`
        : plural(answer.total, "queue"),
    );
    pager[0].disabled = offset === 0;
    pager[1].disabled = last >= answer.total;
    pager.forEach((it) => {
      it.hidden = answer.total <= PAGE && offset === 0;
    });
  }

  function button(label, step) {
    return h(
      "button",
      {
        type: "button",
        class: "small",
        onclick: () => {
          asked.offset = Math.max(0, asked.offset + step);
          refresh().catch((error) => page.fail(error));
        },
      },
      label,
    );
  }

  page.every(EVERY_MS, refresh);
  const node = section(
    "Queues",
    h("div", { class: "toolbar" }, filter, told, h("div", { class: "pager" }, pager)),
    rows.node,
  );
  return { node, refresh };
}

function nothing(contains) {
  if (contains !== "") return empty(`No queue has “${contains}” in its name.`);
  return empty(
    "There are no queues yet. The first task makes one:",
    redis("PUT jobs 'resize 17.png' PRIORITY 2"),
    command(
      `curl -X POST -H 'Content-Type: text/plain' -d 'resize 17.png' ` +
        `${origin()}/v1/queues/jobs/tasks`,
    ),
  );
}
