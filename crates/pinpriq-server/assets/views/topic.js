// One topic: its members, and what waits in the lane of each.

import { h } from "../h.js";
import { ask, change, read } from "../api.js";
import { may } from "../session.js";
import { away, count, plural } from "../format.js";
import { nameAt } from "../router.js";
import { Name, placeLink, target } from "../names.js";
import { heading } from "../parts/page.js";
import { table } from "../parts/table.js";
import { empty, quoted, redis } from "../parts/copy.js";
import { button, confirm, form } from "../parts/dialog.js";
import { join, laneColumns } from "./topics.js";

const member = (row) => Name.in(row, "member");

export async function topic(page, route) {
  const name = nameAt(route, 1, "topic");
  page.title(`Topic ${name.shown}`);
  const members = target(["v1", "topics", ["topic", name], "members"]);
  const refresh = async () => {
    const answer = await read(members);
    if (!page.isOver) rows.show(answer.members);
  };
  const rows = table({
    caption: `Members of ${name.shown}`,
    key: (row) => member(row).key,
    columns: columns(name, refresh),
    none: () =>
      empty(
        "This topic has no members, so what is " + "published to it goes nowhere. Add one:",
        redis(`JOIN ${quoted(name.shown)} mailer LEASE 3600000`),
      ),
  });
  page.show(
    heading(name.shown, {
      above: [h("a", { href: "#/topics" }, "Topics")],
      actions: [
        may("put", name) &&
          button("Publish", () => publish(name, refresh), { kind: "primary" }),
        may("take", name) && button("Add a member", () => join(name, refresh)),
      ],
    }),
    rows.node,
  );
  page.every(2_000, refresh);
}

function columns(topic, refresh) {
  const end = async (row) => {
    const number = row.ready + row.taken;
    const isDone = await confirm({
      title: `End the lane of ${member(row).shown}?`,
      action: "End the lane",
      text: `The lane of ${member(row).shown} in ${topic.shown} goes with its ${plural(
        number,
        "ready or taken task",
      )} and all others in it. This cannot be undone.`,
      work: () =>
        change(
          "DELETE",
          target(["v1", "topics", ["topic", topic], "members", ["member", member(row)]]),
        ),
      done: "The lane has ended.",
    });
    if (isDone) await refresh();
  };
  return [
    {
      id: "member",
      label: "Member",
      wide: true,
      mark: () => "",
      cell: (row) =>
        h("a", { href: placeLink({ name: topic, member: member(row) }) }, member(row).shown),
    },
    ...laneColumns(),
    { id: "until", label: "Lease ends", from: "s", cell: (row) => away(row.lease_until) },
    {
      id: "act",
      label: "Actions",
      unseen: true,
      cell: (row) =>
        may("take", topic) &&
        button("End the lane", () => end(row), { kind: "small danger-text" }),
      mark: (row) => `${row.ready} ${row.taken}`,
    },
  ];
}

const publish = (topic, done) =>
  form({
    title: `Publish to ${topic.shown}`,
    action: "Publish",
    fields: [
      { name: "payload", label: "Payload", kind: "area" },
      { name: "priority", label: "Priority", kind: "number", value: 0 },
      { name: "key", label: "Key" },
      { name: "ttl", label: "TTL", kind: "span" },
    ],
    work: ({ payload, priority, key, ttl }) =>
      ask(
        "POST",
        target(["v1", "topics", ["topic", topic]], {
          verb: "publish",
          query: {
            priority: priority ?? "NONE",
            key,
            ttl,
            payload: payload === "" ? "empty" : undefined,
          },
        }),
        { body: payload === "" ? undefined : payload, type: "text/plain" },
      ),
    done: ({ count: lanes }) => `Published to ${plural(lanes, "lane")}, ${count(lanes)} copies.`,
  }).then((isDone) => isDone && done());
