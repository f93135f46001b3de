// What can be done to a task, and the form to put one.

import { ask, change } from "../api.js";
import { Name, placePath, placeShown } from "../names.js";
import { confirm, form } from "../parts/dialog.js";
import { word } from "../parts/states.js";

const PUT = [
  { name: "payload", label: "Payload", kind: "area", hint: "Taken as it is. It may be empty." },
  {
    name: "priority",
    label: "Priority",
    kind: "number",
    value: 0,
    hint: "The lowest number goes first.",
  },
  { name: "delay", label: "Delay", kind: "span", hint: "How long it waits first, such as 10 s." },
  { name: "key", label: "Key", hint: "Tasks with the same key are a group." },
  {
    name: "ttl",
    label: "TTL",
    kind: "span",
    hint: "How long it lives. Nothing: as the queue says.",
  },
  { name: "ttr", label: "TTR", kind: "span", hint: "How long its leases last." },
  { name: "id", label: "Id", hint: "Only where the ids of the queue are given." },
  { name: "unique", label: "Unique key", hint: "While such a task is there, no other is put." },
];

// Puts a task into a queue, or into one that the form asks for.
export const putTask = (place, done) =>
  form({
    title: place ? `Put a task into ${placeShown(place)}` : "Put a task",
    action: "Put",
    fields: place ? PUT : [{ name: "queue", label: "Queue", required: true }, ...PUT],
    work: ({ queue, payload, priority, ...others }) => {
      const where = place ?? { name: new Name(queue) };
      const query = {
        ...others,
        priority: priority ?? "NONE",
        payload: payload === "" ? "empty" : undefined,
      };
      const body = payload === "" ? undefined : payload;
      return ask("POST", placePath(where, ["tasks"], { query }), { body, type: "text/plain" });
    },
    done: ({ id, new: isNew }) =>
      isNew ? `Task ${id} was put.` : `Task ${id} is there already; nothing was put.`,
  }).then((isDone) => isDone && done?.());

const path = (place, id, verb) => placePath(place, ["tasks", ["id", id]], { verb });

const DELAYS = [
  { name: "delay", label: "Delay", kind: "span", hint: "How long it waits first." },
  { name: "ttl", label: "TTL", kind: "span", hint: "A new time to live." },
];

const CANCEL = [
  { name: "reason", label: "Reason", hint: "For its holder, and for people who look at it." },
  { name: "grace", label: "Grace", kind: "span", hint: "How long it may go on at most." },
];

const given = (values) =>
  Object.fromEntries(Object.entries(values).filter(([, it]) => it !== null && it !== ""));

const nowIs = ({ state }) => `The task is ${word(state)} now.`;

// Which actions a task in each state allows.
export const ACTIONS = {
  R: ["update", "switch", "cancel", "kill"],
  T: ["cancel", "snatch", "update", "kill"],
  W: ["restart", "switch", "update", "cancel", "kill"],
  B: ["dig", "restart", "switch", "update", "cancel", "kill"],
  Z: ["restart", "switch", "kill"],
  D: ["restart", "switch", "kill"],
};

export const LABELS = {
  update: "Change priority or TTL",
  switch: "Switch",
  cancel: "Cancel the task",
  kill: "Kill",
  snatch: "Snatch",
  restart: "Restart",
  dig: "Dig up",
};

// Does one of the actions to a task. Returns whether it was done.
export function act(action, place, id, state) {
  const shown = `task ${id.shown} of ${placeShown(place)}`;
  const post = (values) => change("POST", path(place, id, action), given(values));
  return {
    kill: () =>
      confirm({
        title: `Kill ${shown}?`,
        action: "Kill 1 task",
        done: "The task is gone.",
        text:
          `This one task is ${word(state)}. It is removed` +
          `${state === "T" ? ", although somebody holds it" : ""}. This cannot be undone.`,
        work: () => change("DELETE", path(place, id)),
      }),
    cancel: () =>
      form({
        title: `Cancel ${shown}?`,
        action: state === "T" ? "Ask its holder to stop" : "Cancel 1 task",
        danger: true,
        fields: state === "T" ? CANCEL : [],
        work: post,
        text:
          state === "T"
            ? "Its holder is asked to stop and cannot renew its lease. Then the task is gone."
            : "It leaves the queue, and who waits for it hears that. This cannot be undone.",
        done: (told) => (told.state === "T" ? "Its holder is asked to stop." : "The task is gone."),
      }),
    snatch: () =>
      form({
        title: `Snatch ${shown}?`,
        action: "Snatch",
        danger: true,
        fields: DELAYS,
        work: post,
        text: "It is taken away from its holder, who can finish it no more, and is ready again.",
        done: nowIs,
      }),
    dig: () =>
      form({
        title: `Dig up ${shown}`,
        action: "Dig up",
        done: nowIs,
        text: "A buried task is ready again, with no attempts and no failures.",
        fields: [
          ...DELAYS,
          { name: "priority", label: "Priority", kind: "number", hint: "Nothing: as it was." },
        ],
        work: (values) =>
          ask(
            "POST",
            placePath(place, ["tasks", ["id", id]], { verb: "dig", query: given(values) }),
          ),
      }),
    restart: () =>
      form({
        title: `Restart ${shown}`,
        action: "Restart",
        fields: DELAYS,
        work: post,
        done: nowIs,
        text: "It is ready again as if it had never been taken.",
      }),
    switch: () =>
      form({
        title: `Switch ${shown} to another state`,
        action: "Switch",
        work: post,
        done: nowIs,
        fields: [
          {
            name: "state",
            label: "State",
            kind: "choice",
            options: ["R", "W", "B", "Z", "D"]
              .filter((it) => it !== state)
              .map((it) => [it, `${word(it)} (${it})`]),
          },
          ...DELAYS,
        ],
      }),
    update: () =>
      form({
        title: `Change ${shown}`,
        action: "Change",
        done: "Changed.",
        fields: [
          { name: "priority", label: "Priority", kind: "number", hint: "Nothing: as it is." },
          { name: "ttl", label: "TTL", kind: "span", hint: "From now on. Nothing: as it is." },
        ],
        work: (values) => change("PATCH", path(place, id), given(values)),
      }),
  }[action]();
}

// Removes several tasks.
export const killAll = (place, ids) =>
  confirm({
    title: `Kill ${ids.length} tasks of ${placeShown(place)}?`,
    action: `Kill ${ids.length} tasks`,
    text: `${ids.length} chosen tasks are removed, whatever their state. This cannot be undone.`,
    work: () =>
      change("POST", placePath(place, ["tasks"], { verb: "kill" }), {
        ids: ids.map((it) => it.text ?? { base64: it.base64 }),
      }),
    done: ({ count }) => `${count} tasks are gone.`,
  });
