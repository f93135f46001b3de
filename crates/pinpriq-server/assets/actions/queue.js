// What can be done to a queue. What cannot be undone asks first, and says what and how many.

import { change, read } from "../api.js";
import { plural } from "../format.js";
import { Name, placePath, placeShown, target } from "../names.js";
import { confirm, form, say } from "../parts/dialog.js";
import { total, word } from "../parts/states.js";

export const createQueue = (done) =>
  form({
    title: "Create a queue",
    action: "Create",
    text:
      "A queue that was created exists even when it is empty. The first task of a queue makes it " +
      "too, so this is only needed for settings.",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "ttr", label: "TTR", kind: "span", hint: "How long a lease lasts, such as 30 s." },
      { name: "attempts", label: "Attempts", kind: "number", hint: "How often a task may fail." },
      {
        name: "deadletter",
        label: "Dead letter queue",
        hint:
          "Gets what has failed too often. With several shards both names need a common part " +
          "in braces.",
      },
    ],
    work: ({ name, ttr, attempts, deadletter }) =>
      change("PUT", target(["v1", "queues", ["queue", new Name(name)]]), {
        ttr: ttr ?? undefined,
        attempts: attempts ?? undefined,
        deadletter: deadletter || undefined,
      }),
    done: (_, { name }) => `The queue ${name} exists.`,
  }).then((isDone) => isDone && done?.());

// The figures of a place at this moment, for questions that name how many.
const counts = async (place) => (await read(placePath(place))).stats.counts;

const verb = (place, name, values, query) =>
  change("POST", placePath(place, [], { verb: name, query }), values);

const moved =
  (what) =>
  ({ count }) =>
    `${plural(count, "task")} ${what}.`;

// How many tasks are moved at once.
const atMost = {
  name: "count",
  label: "At most",
  kind: "number",
  value: 1_000,
  required: true,
  hint: "Up to 10,000 at once.",
};

export const pause = (place, done) =>
  form({
    title: `Pause ${placeShown(place)}`,
    action: "Pause",
    text:
      "A pause for takes hands out nothing. A pause for puts refuses new tasks. What is taken " +
      "can still be finished.",
    fields: [
      {
        name: "side",
        label: "For",
        kind: "choice",
        value: "out",
        options: [
          ["out", "takes"],
          ["in", "puts"],
          ["both", "both"],
        ],
      },
    ],
    work: ({ side }) => verb(place, "pause", side === "both" ? {} : { [side]: true }),
    done: "Paused.",
  }).then((isDone) => isDone && done());

export async function resume(place, done) {
  await verb(place, "resume", {});
  say("Resumed.");
  done();
}

export async function truncate(place, done) {
  const number = total(await counts(place));
  const isDone = await confirm({
    title: `Remove all tasks of ${placeShown(place)}?`,
    action: `Remove ${plural(number, "task")}`,
    text:
      `${plural(number, "task")} in all states are removed, also those that are taken. ` +
      "The settings stay. This cannot be undone.",
    work: () => verb(place, "truncate", {}),
    done: moved("removed"),
  });
  if (isDone) done();
}

export async function drop(place, done) {
  const number = total(await counts(place));
  const isDone = await confirm({
    title: `Drop the queue ${placeShown(place)}?`,
    action: "Drop the queue",
    text:
      `The queue goes with its settings, its pause and ${plural(number, "task")}. ` +
      "This cannot be undone.",
    work: () => change("DELETE", placePath(place)),
    done: "The queue was dropped.",
  });
  if (isDone) done();
}

export async function redrive(place, done) {
  const { R } = await counts(place);
  const isDone = await form({
    title: `Redrive ${placeShown(place)}`,
    action: "Redrive",
    text:
      `Ready dead letters go back to the queues that they come from, the oldest first, and ` +
      `begin anew there. ${plural(R, "task")} of this queue are ready; those that are no dead ` +
      "letters stay.",
    fields: [atMost],
    work: ({ count }) => verb(place, "redrive", { count }),
    done: moved("moved back"),
  });
  if (isDone) done();
}

export const move = (place, done, state = "R") =>
  form({
    title: `Move tasks of ${placeShown(place)}`,
    action: "Move",
    danger: true,
    text: "The oldest tasks of one state go to another queue, and keep their state there.",
    fields: [
      { name: "to", label: "To the queue", required: true },
      {
        name: "state",
        label: "State",
        kind: "choice",
        value: state,
        options: ["R", "W", "B", "Z", "D"].map((it) => [it, `${word(it)} (${it})`]),
      },
      atMost,
    ],
    work: (values) => verb(place, "move", values),
    done: moved("moved"),
  }).then((isDone) => isDone && done());

export async function plow(place, done) {
  const { B } = await counts(place);
  const isDone = await form({
    title: `Dig up buried tasks of ${placeShown(place)}`,
    action: "Dig up",
    text:
      `${plural(B, "task")} are buried. The oldest are made ready again, with no attempts and ` +
      "no failures.",
    fields: [
      { name: "count", label: "At most", kind: "number", hint: "Nothing means all of them." },
      { name: "delay", label: "Delay", kind: "span", hint: "How long they wait first." },
    ],
    work: ({ count, delay }) =>
      verb(place, "plow", { count: count ?? undefined, delay: delay ?? undefined }),
    done: moved("dug up"),
  });
  if (isDone) done();
}
