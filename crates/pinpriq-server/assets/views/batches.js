// The batches: how many tasks of each are pending, and what waits for it.

import { h } from "../h.js";
import { change, read } from "../api.js";
import { may } from "../session.js";
import { away, count, plural } from "../format.js";
import { Name, target } from "../names.js";
import { heading } from "../parts/page.js";
import { paged } from "../parts/paged.js";
import { table } from "../parts/table.js";
import { empty, redis } from "../parts/copy.js";
import { button, confirm, form } from "../parts/dialog.js";

const name = (row) => Name.in(row, "name");
const path = (row, verb) => target(["v1", "batches", ["batch", name(row)]], { verb });
const figure = (id, label, from) => ({
  id,
  label,
  from,
  num: true,
  cell: (row) => count(row[id]),
});

export async function batches(page) {
  page.title("Batches");
  const rows = table({
    caption: "Batches",
    key: (row) => name(row).key,
    none: nothing,
    columns: [
      { id: "name", label: "Batch", wide: true, cell: (row) => name(row).shown },
      { id: "state", label: "State", cell: (row) => row.state },
      figure("pending", "Pending"),
      figure("buried", "Buried", "m"),
      figure("acked", "Acked", "s"),
      figure("failed", "Failed", "s"),
      figure("waiting", "Waiting for it", "m"),
      { id: "opened", label: "Opened", from: "l", cell: (row) => away(row.opened_at) },
      {
        id: "act",
        label: "Actions",
        unseen: true,
        mark: (row) => `${name(row).key} ${row.state} ${row.waiting > 0}`,
        cell: (row) => actions(row, list.refresh),
      },
    ],
  });
  const list = paged(page, rows, "batches", "batch");
  page.show(
    heading("Batches"),
    h(
      "p",
      { class: "lead" },
      "A batch is done once it is closed and none of its tasks is pending. Then the tasks that " +
        "wait for it are ready.",
    ),
    list.bar,
    rows.node,
  );
  page.every(2_000, list.refresh);
}

// What can be done to a batch in its state, by who looks at it.
function actions(row, done) {
  const offer = (label, work) => button(label, () => work(row, done), { kind: "small" });
  const isDone = row.state === "done";
  return [
    row.state === "open" && may("put", name(row)) && offer("Close", close),
    !isDone && may("manage", name(row)) && offer("Cancel", cancel),
    isDone && !(row.waiting > 0) && may("manage", name(row)) && offer("Forget", forget),
  ];
}

const close = (row, done) =>
  form({
    title: `Close ${name(row).shown}?`,
    action: "Close",
    text: "It is done as soon as none of its tasks is pending.",
    work: () => change("POST", path(row, "close"), {}),
    done: ({ pending }) =>
      Number(pending) > 0 ? `Closed: ${plural(pending, "task")} to go.` : "Closed.",
  }).then((isDone) => isDone && done());

async function cancel(row, done) {
  // As many as there are now: the button may be older.
  const { pending } = await read(path(row));
  const isDone = await form({
    title: `Cancel ${name(row).shown}?`,
    action: `Cancel ${plural(pending, "task")}`,
    danger: true,
    fields: [
      { name: "reason", label: "Reason", hint: "For holders, and for people who look at it." },
      { name: "grace", label: "Grace", kind: "span", hint: "How long holders may go on at most." },
    ],
    text:
      `It is closed, and ${plural(pending, "task")} of it ` +
      `${Number(pending) === 1 ? "is" : "are"} cancelled: those that somebody holds are ` +
      "asked to stop, and the others leave their queues. This cannot be undone.",
    work: ({ reason, grace }) =>
      change("POST", path(row, "cancel"), {
        reason: reason || undefined,
        grace: grace ?? undefined,
      }),
    done: ({ count: number }) => `${plural(number, "task")} had not ended.`,
  });
  if (isDone) done();
}

const forget = (row, done) =>
  confirm({
    title: `Forget ${name(row).shown}?`,
    action: "Forget",
    text: "It is done. A task that names it later is refused, or makes a new batch of this name.",
    done: "The batch was forgotten.",
    work: () => change("DELETE", path(row)),
  }).then((isDone) => isDone && done());

const nothing = () =>
  empty(
    "There are no batches. The first put that names one makes it:",
    redis("PUT thumbs 1.png BATCH album-7"),
  );
