// One queue, or the lane of a member in a topic: what is in it, how fast it moves, and what can be
// done about it.

import { fill, h } from "../h.js";
import { read, readOrNull } from "../api.js";
import { compact, count, percent, plural, rate, shortSpan, span } from "../format.js";
import { keep, nameAt } from "../router.js";
import { may } from "../session.js";
import { Name, link, placeLink, placePath } from "../names.js";
import { chart, flowChart } from "../chart.js";
import { history } from "../history.js";
import { choices, heading, section, tile, tiles } from "../parts/page.js";
import { bar } from "../parts/states.js";
import { attempt, button } from "../parts/dialog.js";
import { told as explained } from "../parts/explain.js";
import { changeMany } from "../actions/bulk.js";
import * as actions from "../actions/queue.js";
import { putTask } from "../actions/task.js";
import { tasks } from "./tasks.js";
import { leases } from "./leases.js";
import { shares } from "./shares.js";
import { settings } from "./settings.js";

export async function queue(page, route) {
  const place = { name: nameAt(route, 1, "queue"), member: Name.in(route.values, "member") };
  page.title(place.member ? `${place.name.shown} · ${place.member.shown}` : place.name.shown);
  // Whether it exists is known before anything is shown.
  const first = await read(placePath(place));
  if (page.isOver) return;
  const paused = h("span");
  const purpose = h("span");
  const sides = h("span", { class: "group" });
  const shown = {
    came: tile("Came in"),
    left: tile("Left"),
    oldest: tile("Oldest ready"),
    waited: tile("Waited, on average"),
    held: tile("Held, on average"),
    consumers: tile("Consumers"),
    failures: tile("Failures"),
  };
  const flow = flowChart();
  const wait = chart("Wait", [
    { label: "oldest ready", colour: "--accent", format: span, axis: shortSpan, fill: true },
    { label: "waited", colour: "--state-T", format: span },
  ]);
  [flow, wait].forEach((it) => page.onEnd(() => it.end()));
  const states = h("div", { class: "card" });
  const priorities = h("div", { class: "card" });
  const why = h("div", { class: "card" });
  const panel = h("div", { class: "stack" });
  const again = () => page.again();
  page.show(
    heading(place.member?.shown ?? place.name.shown, {
      above: crumbs(place),
      badges: [purpose, paused],
      actions: actionsOf(place, again, sides),
    }),
    states,
    tiles(Object.values(shown)),
    h("div", { class: "charts" }, flow.node, wait.node),
    h(
      "div",
      { class: "charts" },
      section("Ready by priority", priorities),
      section("What holds it up", why),
    ),
    tabs(page, place, route, first, panel),
    panel,
  );
  let rates = null;
  let counts = first.stats.counts;
  const tell = (it) => {
    if (!it) {
      page.fail(new Error("This queue no longer exists."));
      return;
    }
    const { stats } = it;
    counts = stats.counts;
    showFigures(shown, stats, rates);
    const href = (state) => placeLink(place, [], { tab: "tasks", state });
    const mark = JSON.stringify([stats.counts, stats.priorities]);
    if (states.dataset.mark !== mark) {
      states.dataset.mark = mark;
      fill(states, bar(stats.counts, { href }));
      fill(priorities, histogram(stats.priorities, stats.counts.R));
    }
    fill(purpose, stats.holds_dead_letters > 0 && h("span", { class: "tag" }, "for dead letters"));
    tellPause(place, stats.paused, { paused, sides, again });
  };
  tell(first);
  history(
    page,
    place,
    ({ at, queue: it }) => {
      if (!it) return;
      flow.push(at, [it.rates?.in, it.rates?.out]);
      wait.push(at, [it.oldest_ready_ms, it.waited_ms]);
    },
    ({ queue: it }) => {
      rates = it?.rates ?? null;
    },
  );
  page.every(2_000, async () => tell(await readOrNull(placePath(place))));
  page.every(5_000, async () => {
    const answer = await read(placePath(place, ["explain"]));
    fill(why, explained(answer, place, { counts }));
  });
}

const crumbs = ({ name, member }) =>
  member
    ? [
        h("a", { href: "#/topics" }, "Topics"),
        h("a", { href: link(["topics", ["topic", name]]) }, name.shown),
      ]
    : [h("a", { href: "#/" }, "Queues")];

function actionsOf(place, again, sides) {
  const gone = () => {
    location.hash = place.member ? "#/topics" : "#/";
  };
  return [
    !place.member &&
      may("put", place.name) &&
      button("Put a task", () => putTask(place, again), { kind: "primary" }),
    ...(may("manage", place.name) ? changes(place, again, sides, gone) : []),
  ];
}

// What only those may do who may manage the queue. To move tasks they must be put elsewhere.
const changes = (place, again, sides, gone) => [
  sides,
  may("put") && button("Redrive", () => actions.redrive(place, again)),
  button("Dig up all", () => actions.plow(place, again)),
  button("Change many", () => changeMany(place, again)),
  may("put") && button("Move", () => actions.move(place, again)),
  button("Truncate", () => actions.truncate(place, again), { kind: "danger-text" }),
  !place.member && button("Drop", () => actions.drop(place, gone), { kind: "danger-text" }),
];

function tellPause(place, word, { paused, sides, again }) {
  if (sides.dataset.word === word) return;
  sides.dataset.word = word;
  const what = { in: "paused for puts", out: "paused for takes", both: "paused" }[word];
  fill(paused, what && h("span", { class: "tag" }, what));
  fill(
    sides,
    word !== "both" && button("Pause", () => actions.pause(place, again)),
    word !== "none" && button("Resume", () => attempt(() => actions.resume(place, again))),
  );
}

function showFigures(shown, stats, rates) {
  const { oldest_ready_ms: oldest, takers, subscribers } = stats;
  const perSecond = (it) => (rates ? `${rate(it)}/s` : "–");
  const mean = (times) => (times?.count > 0 ? span(times.sum / times.count) : "–");
  shown.came.set(perSecond(rates?.in), `${compact(stats.put)} in all`);
  shown.left.set(perSecond(rates?.out), `${compact(stats.acked)} acknowledged`);
  shown.oldest.set(span(oldest));
  shown.waited.set(mean(stats.waited_ms), quantile(stats.waited_ms));
  shown.held.set(mean(stats.held_ms), quantile(stats.held_ms));
  shown.consumers.set(
    count(takers + subscribers),
    `${plural(takers, "take")}, ${plural(subscribers, "subscription")}`,
  );
  shown.failures.set(compact(stats.failures), `${compact(stats.dead)} dead letters made`);
}

// The bound under which nine of ten times were.
function quantile(times) {
  if (!times?.count) return "";
  const bounds = Object.entries(times).filter(([name]) => name.startsWith("le_"));
  const [name] = bounds.find(([, it]) => it >= times.count * 0.9) ?? ["le_inf"];
  const bound = name.slice(3);
  return bound === "inf" ? "some more than 1 h" : `${percent(0.9)} within ${span(bound)}`;
}

function histogram(priorities, ready) {
  const all = Object.entries(priorities ?? {});
  if (all.length === 0) return h("p", { class: "quiet" }, "No task with a priority is ready.");
  const most = Math.max(...all.map(([, it]) => it));
  const row = ([priority, number]) =>
    h(
      "li",
      null,
      h("span", { class: "bar-label" }, priority),
      h(
        "span",
        { class: "bar-space" },
        h("span", {
          class: "bar-fill",
          style: { width: `${Math.max(1, (number / most) * 100)}%` },
        }),
      ),
      h(
        "span",
        { class: "bar-value", title: ready > 0 ? percent(number / ready) : null },
        count(number),
      ),
    );
  return [
    h("ul", { class: "bars" }, all.map(row)),
    all.length >= 32 && h("p", { class: "quiet" }, "These are the 32 most urgent priorities."),
  ];
}

function tabs(page, place, route, first, panel) {
  const views = {
    tasks: () => tasks(page, place, route),
    settings: () => settings(page, place, first.settings),
    leases: () => leases(page, place),
    shares: () => shares(page, place),
  };
  const open = (name) => {
    fill(panel, views[name]());
  };
  const chosen = Object.hasOwn(views, route.values.tab) ? route.values.tab : "tasks";
  const options = [
    ["tasks", "Tasks"],
    ["settings", "Settings"],
    ["leases", "Leases"],
    ["shares", "Shares"],
  ];
  open(chosen);
  return choices("Parts of this queue", options, chosen, (name) => {
    keep({ tab: name });
    open(name);
  }).node;
}
