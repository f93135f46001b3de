// The six states of a task: each has a letter, a word and a colour, wherever it is shown.

import { h } from "../h.js";
import { compact, count, percent } from "../format.js";

export const STATES = [
  ["R", "ready"],
  ["T", "taken"],
  ["W", "waiting"],
  ["B", "buried"],
  ["Z", "zombie"],
  ["D", "done"],
];

const WORDS = Object.fromEntries([...STATES, ["X", "gone"]]);

export const word = (letter) => WORDS[letter] ?? letter;

// The letter of a state on its colour, with the word for those who do not see it.
export const letter = (state) =>
  h("span", { class: ["letter", `state-${state}`], "aria-hidden": "true" }, state);

export const badge = (state) => h("span", { class: "badge" }, letter(state), word(state));

export const total = (counts) => STATES.reduce((sum, [it]) => sum + (counts[it] ?? 0), 0);

// One bar for all states, and what its parts mean.
export function bar(counts, { href } = {}) {
  const all = total(counts);
  const parts = STATES.filter(([state]) => counts[state] > 0);
  const told = parts.map(([state, name]) => `${count(counts[state])} ${name}`).join(", ");
  const shares = parts.map(([state]) =>
    h(
      "span",
      {
        class: `state-${state}`,
        style: { "flex-grow": String(counts[state] / all) },
      },
      counts[state] / all > 0.04 ? state : "",
    ),
  );
  const items = STATES.map(([state, name]) => {
    const inside = [
      letter(state),
      h("span", { class: "state-word" }, name),
      h("b", { title: all > 0 ? percent(counts[state] / all) : null }, compact(counts[state])),
    ];
    return h("li", null, href ? h("a", { href: href(state) }, inside) : inside);
  });
  return h(
    "div",
    { class: "states" },
    h("div", { class: "states-bar", role: "img", "aria-label": told || "no tasks" }, shares),
    h("ul", { class: "states-key" }, items),
  );
}
