// The overview: all queues together, now and in the last fifteen minutes, and the table of queues.

import { fill, h } from "../h.js";
import { may } from "../session.js";
import { bytes, compact, percent, plural, rate, shortSpan, span } from "../format.js";
import { chart, flowChart } from "../chart.js";
import { history } from "../history.js";
import { heading, tile, tiles } from "../parts/page.js";
import { bar } from "../parts/states.js";
import { button } from "../parts/dialog.js";
import { createQueue } from "../actions/queue.js";
import { putTask } from "../actions/task.js";
import { queues } from "./queues.js";

export async function overview(page) {
  page.title("Overview");
  const shown = {
    came: tile("Came in"),
    left: tile("Left"),
    ready: tile("Ready", { state: "R" }),
    taken: tile("Taken", { state: "T" }),
    oldest: tile("Oldest ready"),
    failed: tile("Failures"),
    journal: tile("Journal"),
    memory: tile("Memory for tasks"),
  };
  const flow = flowChart();
  const stock = chart("Ready and taken", [
    { label: "ready", colour: "--state-R", format: compact, fill: true },
    { label: "taken", colour: "--state-T", format: compact },
  ]);
  const wait = chart("Oldest ready", [
    { label: "age", colour: "--accent", format: span, axis: shortSpan, fill: true },
  ]);
  const sync = chart("Write and sync", [
    { label: "mean", colour: "--accent", format: span, axis: shortSpan, fill: true },
  ]);
  const charts = [flow, stock, wait, sync];
  charts.forEach((it) => page.onEnd(() => it.end()));
  const states = h("div", { class: "card" });
  const list = queues(page);
  page.show(
    heading("Overview", {
      actions: [
        may("put") && button("Put a task", () => putTask(null, list.refresh)),
        may("manage") && button("Create a queue", () => createQueue(list.refresh)),
      ],
    }),
    tiles(Object.values(shown)),
    states,
    h(
      "div",
      { class: "charts" },
      charts.map((it) => it.node),
    ),
    list.node,
  );
  const push = (told) => {
    flow.push(told.at, [told.rates?.in, told.rates?.out]);
    stock.push(told.at, [told.counts.R - told.dead_letters, told.counts.T]);
    wait.push(told.at, [told.oldest_ready_ms]);
    sync.push(told.at, [told.journal.commit_ms]);
  };
  history(page, null, push, (told) => {
    tell(shown, told);
    fill(states, bar(told.counts));
  });
}

function tell(shown, told) {
  const { rates, counts, dead_letters: letters, journal, memory, takers } = told;
  const perSecond = (it) => (rates ? `${rate(it)}/s` : "–");
  shown.came.set(perSecond(rates?.in));
  shown.left.set(perSecond(rates?.out));
  // Dead letters wait for people and not for workers.
  const besides = [
    counts.W > 0 && `${compact(counts.W)} waiting`,
    letters > 0 && plural(letters, "dead letter"),
  ];
  shown.ready.set(compact(counts.R - letters), besides.filter(Boolean).join(", "));
  shown.taken.set(compact(counts.T), takers > 0 ? `${plural(takers, "blocked take")}` : "");
  shown.oldest.set(span(told.oldest_ready_ms));
  shown.failed.set(perSecond(rates?.failed), counts.B > 0 ? `${compact(counts.B)} buried` : "");
  const note = `${rate(journal.writes)} writes/s · ${bytes(journal.bytes_used)}`;
  shown.journal.set(journal.writes > 0 ? span(journal.commit_ms) : "idle", note);
  // The memory of the server is only told to those who run it.
  const most = memory.task_bytes_max;
  const share = most > 0 && `${percent(memory.task_bytes / most)} of ${bytes(most)}`;
  shown.memory.set(share ? bytes(memory.task_bytes) : "–", share || "");
}
