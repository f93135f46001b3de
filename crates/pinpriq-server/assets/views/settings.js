// The settings of a queue, to change in place. Only what was changed is sent.

import { fill, h } from "../h.js";
import { change } from "../api.js";
import { may } from "../session.js";
import { placePath } from "../names.js";
import { field } from "../parts/fields.js";
import { say } from "../parts/dialog.js";
import { SETTINGS } from "../printed.js";

// What is not named here is in the last group.
const GROUPS = [
  ["Leases and life", ["ttr", "ttl", "afterack", "zombie", "ids"]],
  [
    "Failures",
    ["attempts", "backoff", "backoffmax", "deadletter", "onexpiry", "releasefails"],
  ],
  ["Limits", []],
];

// Those that are not their name with a capital.
const LABELS = {
  ttr: "TTR",
  ttl: "TTL",
  afterack: "After an ack",
  backoff: "Back-off",
  backoffmax: "Longest back-off",
  deadletter: "Dead letter queue",
  onexpiry: "When the TTL has passed",
  releasefails: "A release is a failure",
  capacitybytes: "Capacity in bytes",
  overflow: "When it is full",
};

// What a lane does not have.
const OF_QUEUES = ["deadletter", "onexpiry"];

function inGroup(names) {
  const others = GROUPS.flatMap(([, names]) => names);
  const all = SETTINGS.map((it) => ({
    ...it,
    label: LABELS[it.name] ?? it.name[0].toUpperCase() + it.name.slice(1),
    options: it.options?.map((word) => [word, word]),
  }));
  return names.length > 0
    ? names.map((name) => all.find((it) => it.name === name))
    : all.filter((it) => !others.includes(it.name));
}

export function settings(page, place, known) {
  const controls = [];
  const group = ([title, names]) =>
    h(
      "fieldset",
      { disabled: isFixed },
      h("legend", null, title),
      inGroup(names)
        .filter((it) => !(place.member && OF_QUEUES.includes(it.name)))
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
    GROUPS.map(group),
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
