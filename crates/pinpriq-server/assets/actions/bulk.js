// Changes of many tasks at once. They are counted first, then asked about, and go on page by page
// until the last one or until the dialog is left.

import { change } from "../api.js";
import { plural } from "../format.js";
import { Name, base64Of, bytesOf, placePath, placeShown } from "../names.js";
import { form } from "../parts/dialog.js";
import { word } from "../parts/states.js";

// Pages are small, so that those who take tasks meanwhile hardly wait.
const PAGE_CHANGES = 50;
// Counting costs less.
const PAGE_COUNTED = 250;

// Goes through all pages of these changes, each of them `[place, values]`. Returns how many tasks
// have changed, or would change. `tell` gets that on the way, and stops it if it returns false.
async function pages(changes, dry, tell) {
  let changed = 0;
  for (const [place, values] of changes) {
    let cursor = "0";
    do {
      const path = placePath(place, [], { verb: "bulk" });
      const count = dry ? PAGE_COUNTED : PAGE_CHANGES;
      const page = await change("POST", path, { ...values, cursor, dry, count });
      changed += page.changed;
      cursor = page.cursor;
      if (!tell(changed)) return changed;
    } while (cursor !== "0");
  }
  return changed;
}

const counted = (tell, what) => (number) => tell(`${plural(number, "task")} ${what} …`);

// Asks about a change of so many tasks, and makes it.
const ask = ({ title, text, verb, done }, number, changes) =>
  form({
    title,
    text: [
      text,
      "What somebody is working on is left alone, unless it is cancelled or killed. This cannot " +
        "be undone.",
    ],
    action: `${verb} ${plural(number, "task")}`,
    danger: true,
    work: (_, tell) => pages(changes, false, counted(tell, done)),
    done: (changed) => `${plural(changed, "task")} ${done}.`,
  });

// What can be done, with the words for it.
const DEEDS = {
  redrive: ["Redrive dead letters", "Redrive", "moved back"],
  restart: ["Restart", "Restart", "brought back"],
  move: ["Move to another queue", "Move", "moved"],
  priority: ["Give a priority", "Change", "changed"],
  delay: ["Delay", "Delay", "delayed"],
  cancel: ["Cancel", "Cancel", "cancelled"],
  kill: ["Kill", "Kill", "killed"],
};

const FIELDS = [
  {
    name: "do",
    label: "What to do",
    kind: "choice",
    value: "redrive",
    options: Object.entries(DEEDS).map(([name, [label]]) => [name, label]),
  },
  { name: "to", label: "To the queue", hint: "For a move." },
  { name: "priority", label: "New priority", kind: "number", hint: "For a priority." },
  { name: "delay", label: "New delay", kind: "span", hint: "For a delay." },
  {
    name: "state",
    label: "State",
    kind: "choice",
    value: "",
    options: [["", "any"], ...["R", "W", "T", "B", "Z", "D"].map((it) => [it, word(it)])],
    hint: "A restart is about buried tasks unless another state is chosen.",
  },
  {
    name: "reason",
    label: "Reason",
    hint: "A pattern, such as *timed out*: * stands for anything.",
  },
  { name: "key", label: "Key" },
  { name: "share", label: "Share" },
  { name: "batch", label: "Batch", hint: "Tasks that are pending in it." },
  { name: "low", label: "Priority from", kind: "number" },
  { name: "high", label: "Priority to", kind: "number" },
  { name: "older", label: "Put at least this long ago", kind: "span" },
  { name: "failures", label: "Failures, at least", kind: "number" },
  { name: "header", label: "Header", hint: "Its name." },
  { name: "pattern", label: "Value of the header", hint: "A pattern." },
];

// The request for what a form says.
function asked({ low, high, header, pattern, ...others }) {
  const values = { ...others };
  if ((low === null) !== (high === null)) {
    throw new Error("Priorities have a lowest and a highest one: give both.");
  }
  if (low !== null) values.priorities = [low, high];
  if (header) values.header = [header, pattern || "*"];
  if (values.do !== "move") delete values.to;
  if (values.do !== "priority") delete values.priority;
  if (values.do !== "delay") delete values.delay;
  const isGiven = ([name, it]) => name === "priority" || (it !== "" && it !== null);
  return Object.fromEntries(Object.entries(values).filter(isGiven));
}

// Changes tasks of one queue, which a filter chooses.
export async function changeMany(place, done) {
  let changes = [];
  let number = 0;
  const isCounted = await form({
    title: `Change many tasks of ${placeShown(place)}`,
    action: "Count them",
    text: "Everything that is given has to hold for a task. Nothing changes yet.",
    fields: FIELDS,
    work: async (values, tell) => {
      changes = [[place, asked(values)]];
      number = await pages(changes, true, counted(tell, "so far"));
      if (number === 0) throw new Error("There is no such task.");
    },
  });
  if (!isCounted) return;
  const [, verb, what] = DEEDS[changes[0][1].do];
  const title = `${verb} ${plural(number, "task")} of ${placeShown(place)}?`;
  const text = "Those are the tasks that were counted.";
  if (await ask({ title, text, verb, done: what }, number, changes)) done();
}

// The pattern that matches this text alone.
function exactly(text) {
  const special = [..."*\\"].map((it) => it.charCodeAt(0));
  if (text.text !== undefined) return new Name(text.text.replace(/[*\\]/g, "\\$&"));
  const bytes = [...bytesOf(text.base64)].flatMap((it) => (special.includes(it) ? [92, it] : [it]));
  return new Name(undefined, base64Of(bytes));
}

// Sends everything back that has failed for one reason: dead letters to their queues, and buried
// tasks to where they are.
export async function sendBack(reason, places, done) {
  const values = (deed) => exactly(reason).addTo({ do: deed }, "reason");
  const changes = places.flatMap(({ place, letters, buried }) => [
    ...(letters > 0 ? [[place, values("redrive")]] : []),
    ...(buried > 0 ? [[place, values("restart")]] : []),
  ]);
  const number = await pages(changes, true, () => true);
  const isDone = await ask(
    {
      title: `Send ${plural(number, "task")} back?`,
      text:
        `They have failed because of “${reason.shown}”. Dead letters go back to the queues that ` +
        "they come from, buried tasks become ready, and all of them begin anew.",
      verb: "Send back",
      done: "sent back",
    },
    number,
    changes,
  );
  if (isDone) done();
}
