// The settings of a queue, to change in place. Only what was changed is sent.

import { fill, h } from "../h.js";
import { change } from "../api.js";
import { may } from "../session.js";
import { placePath } from "../names.js";
import { field } from "../parts/fields.js";
import { say } from "../parts/dialog.js";

const SETTINGS = [
  [
    "Leases and life",
    [
      { name: "ttr", label: "TTR", kind: "span", hint: "How long a lease lasts." },
      {
        name: "ttl",
        label: "TTL",
        kind: "span",
        hint: "How long a task lives that says nothing else.",
      },
      {
        name: "afterack",
        label: "After an ack",
        kind: "choice",
        hint: "What becomes of the task.",
        options: [
          ["delete", "delete"],
          ["keep", "keep"],
          ["zombie", "zombie"],
        ],
      },
      {
        name: "zombie",
        label: "Zombie",
        kind: "span",
        hint: "How long a finished task stays; with “zombie”.",
      },
      {
        name: "ids",
        label: "Ids",
        kind: "choice",
        hint: "Only while the queue is empty.",
        options: ["sequence", "time64", "uuid", "given"].map((it) => [it, it]),
      },
    ],
  ],
  [
    "Failures",
    [
      { name: "attempts", label: "Attempts", kind: "number", hint: "How often a task may fail." },
      {
        name: "backoff",
        label: "Back-off",
        kind: "span",
        hint: "The wait after the first failure; then twice as long each time.",
      },
      { name: "backoffmax", label: "Longest back-off", kind: "span" },
      {
        name: "deadletter",
        label: "Dead letter queue",
        ofQueue: true,
        hint: "Gets what has failed too often. Without it such tasks are buried.",
      },
      {
        name: "onexpiry",
        label: "When the TTL has passed",
        kind: "choice",
        ofQueue: true,
        options: [
          ["delete", "delete"],
          ["deadletter", "deadletter"],
        ],
      },
      {
        name: "releasefails",
        label: "A release is a failure",
        kind: "choice",
        options: [
          ["off", "off"],
          ["on", "on"],
        ],
      },
    ],
  ],
  [
    "Limits",
    [
      {
        name: "limit",
        label: "Limit",
        kind: "number",
        hint: "The most tasks that are taken at once.",
      },
      { name: "rate", label: "Rate", hint: "Tasks per milliseconds, such as 100/1000." },
      { name: "capacity", label: "Capacity", kind: "number", hint: "The most unfinished tasks." },
      { name: "capacitybytes", label: "Capacity in bytes", kind: "number" },
      {
        name: "overflow",
        label: "When it is full",
        kind: "choice",
        options: [
          ["refuse", "refuse"],
          ["evict", "evict"],
        ],
      },
    ],
  ],
];

export function settings(page, place, known) {
  const controls = [];
  const group = ([title, all]) =>
    h(
      "fieldset",
      { disabled: isFixed },
      h("legend", null, title),
      all
        .filter((it) => !(it.ofQueue && place.member))
        .map((it) => {
          const made = field({ ...it, value: known[it.name] ?? known[`${it.name}_base64`] });
          controls.push({ ...it, ...made });
          return made.node;
        }),
    );
  const error = h("p", { class: "form-error", role: "alert", hidden: true });
  const isFixed = !may("manage", place.name);
  const save = h(
    "button",
    { type: "submit", class: "primary", disabled: true, hidden: isFixed },
    "Save",
  );
  const node = h(
    "form",
    { class: "settings card", novalidate: true },
    SETTINGS.map(group),
    error,
    h("div", { class: "buttons" }, save),
  );
  const changed = () =>
    Object.fromEntries(
      controls.flatMap(({ name, kind, read }) => {
        const value = read() === "" ? null : read();
        const before = known[name] ?? null;
        return value === before || (kind === undefined && value === null && before === null)
          ? []
          : [[name, value]];
      }),
    );
  const mark = () => {
    try {
      save.disabled = Object.keys(changed()).length === 0;
    } catch {
      save.disabled = false;
    }
  };
  node.addEventListener("input", mark);
  node.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.hidden = true;
    try {
      const values = changed();
      const answer = await change("PATCH", placePath(place), values);
      known = answer.settings;
      mark();
      say(`Saved: ${Object.keys(values).join(", ")}.`);
    } catch (wrong) {
      fill(error, wrong.message);
      error.hidden = false;
    }
  });
  return node;
}
