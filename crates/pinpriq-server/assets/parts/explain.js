// What EXPLAIN answers, in plain words.

import { h } from "../h.js";
import { away, count, moment, plural, span } from "../format.js";
import { Name, placeLink } from "../names.js";
import { letter, STATES, word } from "./states.js";

const SENTENCES = {
  delayed: ({ until }) => `Its delay ends ${away(until)} (${moment(until)}).`,
  held: () => "It was put as held, so it waits until somebody restarts, takes or cancels it.",
  after: (it) =>
    `It waits for the batch “${Name.in(it, "batch").shown}”, of which ` +
    `${plural(it.pending, "task")} ${verb(it.pending, "has", "have")} not ended.`,
  taken: ({ client, since, until }) =>
    `${
      client === undefined
        ? "Its holder is no longer connected"
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
  "key-limit": (it) =>
    `${plural(it.taken, "task")} of its key “${Name.in(it, "key").shown}” ` +
    `${verb(it.taken, "is", "are")} taken, and no more may be.`,
  "key-rate": (it) =>
    `The tasks of its key “${Name.in(it, "key").shown}” have cost what they may. ` +
    `They go on ${away(it.open_at)}.`,
  "key-held": (it) =>
    `Task ${Name.in(it, "by").shown} of its key “${Name.in(it, "key").shown}” has failed and ` +
    "goes first.",
  "share-limit": (it) =>
    `${plural(it.taken, "task")} of ${share(it)} ${verb(it.taken, "is", "are")} taken, and ` +
    "no more may be.",
  "share-rate": (it) =>
    `The tasks of ${share(it)} have cost what they may. They go on ${away(it.open_at)}.`,
  "no-priority": () => "It has no priority, so it leaves only together with its group.",
  behind: ({ at_least: number }) =>
    number >= 10_000
      ? `At least ${count(number)} tasks come first.`
      : `${plural(number, "task")} ${Number(number) === 1 ? "comes" : "come"} first.`,
  "share-turn": (it) =>
    it.ahead >= 10_000
      ? `At least ${count(it.ahead)} tasks go before ${share(it)} has its turn for it.`
      : `${plural(it.ahead, "task")} ${verb(it.ahead, "goes", "go")} before ` +
        `${share(it)} has its turn for it.`,
  "no-consumer": () => "No worker waits for a task of this queue at this moment.",
  next: () => "It is the next to leave.",
  "named-limit": (it) =>
    it.open_at === undefined
      ? `The limit “${Name.in(it, "name").shown}” allows ${plural(it.n, "task")} of its queues ` +
        `to be taken at once, and ${count(it.taken)} are.`
      : `The limit “${Name.in(it, "name").shown}” goes on ${away(it.open_at)}.`,
  ended: (it) => {
    const [queue, reason] = [Name.in(it, "queue"), Name.in(it, "reason")];
    return (
      `${ENDINGS[it.outcome] ?? `It has ended: ${it.outcome}`} ${away(it.at)}` +
      (queue ? `. It is task ${Name.in(it, "id").shown} of ${queue.shown} now` : "") +
      (reason ? `. Its last reason was “${reason.shown}”.` : ".")
    );
  },
};

// What became of a task that has left.
const ENDINGS = {
  acked: "It was acknowledged",
  cancelled: "It was cancelled",
  dead: "It became a dead letter",
  evicted: "It made room for a more urgent one",
  expired: "Its TTL passed",
  killed: "It was killed",
  moved: "It was moved",
  skipped: "It was skipped, since the batches that it waited for have ended otherwise,",
};

const verb = (number, one, more) => (Number(number) === 1 ? one : more);

function share(it) {
  const { shown } = Name.in(it, "share");
  return shown === "" ? "those without a share" : `its share “${shown}”`;
}

// What the tasks of a queue wait for of which none is ready. Each sentence is about all of a state,
// and what the server tells is about the first of them.
const OF_ALL = {
  delayed: ({ until }) =>
    `Tasks wait for the end of a delay, the first until ${moment(until)} (${away(until)}).`,
  held: () => "Tasks are held until somebody frees them.",
  after: (it) => `Tasks wait for batches, the first for “${Name.in(it, "batch").shown}”.`,
  taken: ({ client, since, until }, { T }) =>
    `${plural(T, "task")} ${verb(T, "is", "are")} taken. ` +
    `${T > 1 ? "The oldest one is held by " : "Its holder is "}` +
    `${client === undefined ? "a client that is no longer connected" : `connection ${client}`}` +
    `${since ? `, since ${away(since)}` : ""}` +
    `${until ? `, and its lease ends ${away(until)}` : ""}.`,
  buried: (it, { B }) => {
    const reason = Name.in(it, "reason");
    return (
      `${plural(B, "task")} ${verb(B, "is", "are")} buried` +
      `${reason ? `, ${B > 1 ? "the oldest one " : ""}because of “${reason.shown}”` : ""}. ` +
      `Dig ${B > 1 ? "them" : "it"} up to bring ${B > 1 ? "them" : "it"} back.`
    );
  },
  expired: () => "The TTL of the oldest one has passed.",
  "no-priority": () => "Tasks without a priority leave only together with their group.",
};

// Reasons that are no trouble: the tasks are being worked on, or it is not their time yet.
const SOUND = ["taken", "delayed", "held", "after"];

function ofQueue(reasons, counts) {
  const sentence = ({ code, ...details }) =>
    h(
      "li",
      null,
      (OF_ALL[code] ?? SENTENCES[code])?.(details, numbers) ?? `The server says: ${code}.`,
    );
  // The counts may be a little older than the reasons.
  const numbers = Object.fromEntries(
    STATES.map(([it]) => [it, Math.max(1, Number(counts[it] ?? 1))]),
  );
  const isSound = reasons.every(({ code }) => SOUND.includes(code));
  return [
    h(
      "p",
      { class: isSound ? "quiet" : null },
      isSound ? "No task is ready, and nothing is held up." : "No task is ready to be taken.",
    ),
    reasons.length > 0 && h("ul", { class: "reasons" }, reasons.map(sentence)),
  ];
}

// Returns elements that tell an explanation. `counts` are those of the queue that it is about.
export function told(
  { state, since, reasons, eta_ms: eta, eta_low: low, eta_high: high, ...it },
  place,
  { isOfTask = false, counts = {} } = {},
) {
  const id = Name.in(it, "id");
  const sentence = ({ code, ...details }) =>
    h("li", null, SENTENCES[code]?.(details) ?? `The server says: ${code}.`);
  const list = h("ul", { class: "reasons" }, reasons.map(sentence));
  if (id === null) return ofQueue(reasons, counts);
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
      eta === null || eta === undefined
        ? null
        : ` As in the last minute, it goes in ${span(eta)}` +
          `${high === null ? ", or later" : ` (${span(low)} to ${span(high)})`}.`,
    ),
    list,
  ];
}
