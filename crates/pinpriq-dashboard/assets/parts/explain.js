// What EXPLAIN answers, in plain words.

import { h } from "../h.js";
import { away, count, moment, plural } from "../format.js";
import { Name, placeLink } from "../names.js";
import { letter, word } from "./states.js";

const SENTENCES = {
  delayed: ({ until }) => `Its delay ends ${away(until)} (${moment(until)}).`,
  taken: ({ client, since, until }) =>
    `${
      client === undefined
        ? "Its holder is not connected any more"
        : `Connection ${client} holds it`
    }${since ? `, since ${away(since)}` : ""}${
      until ? `. The lease ends ${away(until)}` : ", as long as it is connected"
    }.`,
  buried: (it) => {
    const reason = Name.in(it, "reason");
    return reason
      ? `It was buried: “${reason.shown}”. Dig it up to bring it back.`
      : "It was buried. Dig it up to bring it back.";
  },
  expired: () => "Its TTL has passed. Give it a new one if it is to live on.",
  paused: () => "The queue is paused for takes. Resume it to go on.",
  limit: ({ taken, n }) =>
    `The queue allows ${plural(n, "task")} to be taken at once, and ` +
    `${count(taken)} are. Finish some, or raise the limit.`,
  rate: ({ next_at: at }) =>
    `The queue has handed out as many as its rate allows. It goes on ` + `${away(at)}.`,
  "no-priority": () => "It has no priority, so it leaves only together with its group.",
  behind: ({ at_least: number }) =>
    number >= 10_000
      ? `At least ${count(number)} tasks come first.`
      : `${plural(number, "task")} ${Number(number) === 1 ? "comes" : "come"} first.`,
  "no-consumer": () => "Nobody waits for a task of this queue at this moment.",
  next: () => "It is the next to leave.",
};

// Returns elements that tell an explanation.
export function told({ state, since, reasons, ...it }, place, isOfTask = false) {
  const id = Name.in(it, "id");
  const sentence = ({ code, ...details }) =>
    h("li", null, SENTENCES[code]?.(details) ?? `The server says: ${code}.`);
  const list = h("ul", { class: "reasons" }, reasons.map(sentence));
  if (id === null) {
    return reasons.length === 0
      ? h("p", { class: "quiet" }, "There is no task to be taken, and nothing is held up.")
      : [h("p", null, "No task can be taken now. Of the tasks that are here:"), list];
  }
  const name = isOfTask
    ? "This task"
    : h("a", { href: placeLink(place, ["tasks", ["id", id]]) }, `Task ${id.shown}`);
  return [
    h(
      "p",
      null,
      isOfTask ? "" : "The next one: ",
      name,
      " is ",
      letter(state),
      " ",
      word(state),
      since ? `, since ${away(since)}.` : ".",
    ),
    list,
  ];
}
