// One schedule: when it is due, what it puts, and what it has done.

import { fill, h } from "../h.js";
import { change, readOrNull, Refused } from "../api.js";
import { may } from "../session.js";
import { away, count, moment, span } from "../format.js";
import { nameAt } from "../router.js";
import { Name, placeLink, target } from "../names.js";
import { facts, headerFacts, heading, section, tile, tiles } from "../parts/page.js";
import { payload } from "../parts/payload.js";
import { attempt, button, confirm } from "../parts/dialog.js";
import { rhythm, setSchedule } from "./schedules.js";

const orNone = (show, of) => (of === null ? "none" : show(of));

export async function schedule(page, route) {
  const name = nameAt(route, 1, "schedule");
  page.title(`Schedule ${name.shown}`);
  const path = (verb) => target(["v1", "schedules", ["schedule", name]], { verb });
  const shown = {
    next: tile("Next slot"),
    last: tile("Last slot"),
    fired: tile("Fired"),
    missed: tile("Missed"),
  };
  const [paused, buttons, known, body] = [
    h("span"),
    h("span", { class: "group" }),
    h("div", { class: "card" }),
    h("div"),
  ];
  let former = null;

  async function refresh() {
    const it = await readOrNull(path());
    if (page.isOver || !it) return Boolean(it);
    shown.next.set(it.next_at ? away(it.next_at) : "never", it.next_at ? moment(it.next_at) : "");
    shown.last.set(
      it.last_slot ? away(it.last_slot) : "–",
      it.last_slot ? moment(it.last_slot) : "",
    );
    shown.fired.set(count(it.fired));
    shown.missed.set(count(it.missed));
    const mark = JSON.stringify(
      { ...it, next_at: 0, last_slot: 0, fired: 0, missed: 0, last_id: 0 },
      (_, value) => (typeof value === "bigint" ? String(value) : value),
    );
    if (former !== mark) tell(it);
    former = mark;
    return true;
  }

  function tell(it) {
    fill(paused, it.paused && h("span", { class: "tag" }, "paused"));
    fill(body, payload(it));
    const queue = Name.in(it, "queue");
    fill(
      known,
      facts([
        ["When", rhythm(it)],
        ["Queue", h("a", { href: placeLink({ name: queue }) }, queue.shown)],
        ["Priority", it.priority === undefined ? "none" : String(it.priority)],
        Name.in(it, "key") && ["Key", Name.in(it, "key").shown],
        it.ttl !== undefined && ["TTL", span(it.ttl)],
        it.ttr !== undefined && ["TTR", span(it.ttr)],
        Name.in(it, "share") && ["Share", Name.in(it, "share").shown],
        it.cost !== 1 && ["Cost", count(it.cost)],
        ...headerFacts(it.headers),
        it.attempts_max !== undefined && ["Attempts at most", orNone(count, it.attempts_max)],
        it.backoff !== undefined && ["Back-off", orNone(span, it.backoff)],
        it.backoff_max !== undefined && ["Longest back-off", span(it.backoff_max)],
        ["Slots while the server was down", it.on_missed],
        ["While the task before is there", it.overlap],
      ]),
    );
    const post = (verb, done) =>
      attempt(async () => {
        const answer = await change("POST", path(verb), {});
        await refresh();
        return answer;
      }, done);
    if (!may("manage", queue)) {
      fill(buttons);
      return;
    }
    fill(
      buttons,
      button("Fire now", () => post("fire", ({ id }) => `Task ${id} was put.`), {
        kind: "primary",
      }),
      it.paused
        ? button("Resume", () => post("resume", "Resumed."))
        : button("Pause", () => post("pause", "Paused: its slots put nothing.")),
      may("put", queue) &&
        it.payload !== undefined &&
        queue.text !== undefined &&
        button("Change", () => setSchedule(it, refresh)),
      button("Drop", drop, { kind: "danger-text" }),
    );
  }

  async function drop() {
    const isDone = await confirm({
      title: `Drop the schedule ${name.shown}?`,
      action: "Drop the schedule",
      done: "The schedule was dropped.",
      text:
        "This one schedule puts no more tasks. Those that it has put stay. This cannot be " +
        "undone.",
      work: () => change("DELETE", path()),
    });
    if (isDone) location.hash = "#/schedules";
  }

  page.show(
    heading(name.shown, {
      above: [h("a", { href: "#/schedules" }, "Schedules")],
      badges: [paused],
      actions: [buttons],
    }),
    tiles(Object.values(shown)),
    h("div", { class: "split" }, section("Payload", body), section("Facts", known)),
  );
  if (!(await refresh())) throw new Refused(404, { detail: "There is no such schedule." });
  page.every(1_000, refresh);
}
