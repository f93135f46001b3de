// The schedules, with the next slot of each.

import { h } from "../h.js";
import { change } from "../api.js";
import { may } from "../session.js";
import { away, count, moment, span } from "../format.js";
import { link, Name, placeLink, target } from "../names.js";
import { heading } from "../parts/page.js";
import { paged } from "../parts/paged.js";
import { table } from "../parts/table.js";
import { empty, redis } from "../parts/copy.js";
import { button, form } from "../parts/dialog.js";

const name = (row) => Name.in(row, "name");

// How often a schedule is due, in words.
export const rhythm = (it) =>
  it.every !== undefined
    ? `every ${span(it.every)}`
    : [Name.in(it, "cron").shown, Name.in(it, "zone")?.shown].filter(Boolean).join(" · ");

// What the form does not ask for, which a schedule that is set anew keeps.
const kept = (it) =>
  it && {
    share: it.share,
    share_base64: it.share_base64,
    cost: it.cost,
    headers: it.headers && Object.keys(it.headers).length > 0 ? it.headers : undefined,
    attempts: it.attempts_max,
    backoff: it.backoff,
    backoffmax: it.backoff_max,
  };

// A form for a schedule, with the values of one that is there already.
export const setSchedule = (known, done) =>
  form({
    title: known ? `Change ${name(known).shown}` : "Set a schedule",
    action: "Save",
    text: known ? "All of it is set anew. The figures and a pause stay." : [],
    fields: [
      ...(known ? [] : [{ name: "schedule", label: "Name", required: true }]),
      {
        name: "queue",
        label: "Queue",
        required: true,
        value: known && Name.in(known, "queue").text,
      },
      { name: "payload", label: "Payload", kind: "area", value: known?.payload },
      {
        name: "every",
        label: "Every",
        kind: "span",
        value: known?.every ?? null,
        hint: "Such as 30 s. Or a cron expression:",
      },
      {
        name: "cron",
        label: "Cron",
        value: known?.cron,
        hint: "Minute, hour, day of month, month, day of week.",
      },
      {
        name: "zone",
        label: "Time zone",
        value: known?.zone,
        hint: "Such as Europe/Berlin. Else UTC.",
      },
      { name: "priority", label: "Priority", kind: "number", value: known ? known.priority : 0 },
      { name: "key", label: "Key", value: known?.key },
      { name: "ttl", label: "TTL", kind: "span", value: known?.ttl ?? null },
      { name: "ttr", label: "TTR", kind: "span", value: known?.ttr ?? null },
      {
        name: "missed",
        label: "Slots while the server was down",
        kind: "choice",
        value: known?.on_missed ?? "one",
        options: [
          ["one", "put one task for all of them"],
          ["all", "put a task for each"],
          ["none", "put nothing"],
        ],
      },
      {
        name: "overlap",
        label: "While the task before is there",
        kind: "choice",
        value: known?.overlap ?? "allow",
        options: [
          ["allow", "put the next one too"],
          ["skip", "skip the slot"],
        ],
      },
    ],
    work: ({ schedule, every, cron, zone, priority, key, ttl, ttr, ...others }) =>
      change(
        "PUT",
        target(["v1", "schedules", ["schedule", known ? name(known) : new Name(schedule)]]),
        {
          ...others,
          every: every ?? undefined,
          cron: cron || undefined,
          zone: zone || undefined,
          at: every !== null && known?.every === every ? known?.at : undefined,
          key: key || undefined,
          priority,
          ttl: ttl ?? undefined,
          ttr: ttr ?? undefined,
          ...kept(known),
        },
      ),
    done: ({ next_at: at }) => `Set. The next slot is ${away(at)}.`,
  }).then((isDone) => isDone && done());

export async function schedules(page) {
  page.title("Schedules");
  const rows = table({
    caption: "Schedules",
    key: (row) => name(row).key,
    none: nothing,
    columns: [
      {
        id: "name",
        label: "Schedule",
        wide: true,
        mark: (row) => row.paused,
        cell: (row) => [
          h("a", { href: link(["schedules", ["schedule", name(row)]]) }, name(row).shown),
          row.paused && h("span", { class: "tag" }, "paused"),
        ],
      },
      {
        id: "queue",
        label: "Queue",
        from: "s",
        mark: (row) => Name.in(row, "queue").key,
        cell: (row) =>
          h("a", { href: placeLink({ name: Name.in(row, "queue") }) }, Name.in(row, "queue").shown),
      },
      { id: "rhythm", label: "When", from: "s", cell: rhythm },
      {
        id: "next",
        label: "Next slot",
        cell: (row) => (row.next_at ? away(row.next_at) : "never"),
      },
      { id: "at", label: "At", from: "l", cell: (row) => moment(row.next_at) },
      { id: "fired", label: "Fired", num: true, from: "m", cell: (row) => count(row.fired) },
      { id: "missed", label: "Missed", num: true, from: "m", cell: (row) => count(row.missed) },
    ],
  });
  const list = paged(page, rows, "schedules", "schedule");
  page.show(
    heading("Schedules", {
      actions: [
        may("manage") &&
          may("put") &&
          button("Set a schedule", () => setSchedule(null, list.refresh)),
      ],
    }),
    h("p", { class: "lead" }, "A schedule puts a task into a queue again and again."),
    list.bar,
    rows.node,
  );
  page.every(2_000, list.refresh);
}

const nothing = () =>
  empty(
    "There are no schedules. This one puts a task every half minute:",
    redis("SCHEDULE SET beat health check EVERY 30000"),
  );
