// The topics, with how many members they have and what waits in their lanes.

import { h } from "../h.js";
import { change } from "../api.js";
import { may } from "../session.js";
import { count } from "../format.js";
import { link, Name, target } from "../names.js";
import { heading } from "../parts/page.js";
import { letter } from "../parts/states.js";
import { paged } from "../parts/paged.js";
import { table } from "../parts/table.js";
import { command, empty, origin, redis } from "../parts/copy.js";
import { button, form } from "../parts/dialog.js";

const name = (row) => Name.in(row, "topic");

// Gives a member a lane, in a topic of this name or in one that the form asks for.
export const join = (topic, done) =>
  form({
    title: topic ? `Add a member to ${topic.shown}` : "Create a topic",
    action: "Add",
    text:
      "The member gets a lane: a queue with a copy of all that is published from now on. It ends " +
      "when there was no sign of life of it for the length of its lease.",
    fields: [
      ...(topic ? [] : [{ name: "topic", label: "Topic", required: true }]),
      { name: "member", label: "Member", required: true },
      { name: "lease", label: "Lease", kind: "span", value: 3_600_000 },
    ],
    work: ({ topic: text, member, lease }) =>
      change(
        "PUT",
        target([
          "v1",
          "topics",
          ["topic", topic ?? new Name(text)],
          "members",
          ["member", new Name(member)],
        ]),
        lease === null ? {} : { lease },
      ),
    done: "The member has a lane.",
  }).then((isDone) => isDone && done());

// The columns with what waits in lanes.
export const laneColumns = () => [
  {
    id: "ready",
    label: h("span", null, letter("R"), " ready"),
    num: true,
    cell: (row) => count(row.ready),
  },
  {
    id: "taken",
    label: h("span", null, letter("T"), " taken"),
    num: true,
    cell: (row) => count(row.taken),
  },
];

export async function topics(page) {
  page.title("Topics");
  const rows = table({
    caption: "Topics",
    key: (row) => name(row).key,
    none: nothing,
    columns: [
      {
        id: "topic",
        label: "Topic",
        wide: true,
        mark: () => "",
        cell: (row) => h("a", { href: link(["topics", ["topic", name(row)]]) }, name(row).shown),
      },
      { id: "members", label: "Members", num: true, cell: (row) => count(row.members) },
      ...laneColumns(),
    ],
  });
  const list = paged(page, rows, "topics", "topic");
  page.show(
    heading("Topics", {
      actions: [may("take") && button("Create a topic", () => join(null, list.refresh))],
    }),
    h(
      "p",
      { class: "lead" },
      "What is published to a topic goes to all its members. Each has a " +
        "lane there, which is a queue of its own.",
    ),
    list.bar,
    rows.node,
  );
  page.every(2_000, list.refresh);
}

const nothing = () =>
  empty(
    "There are no topics. The first member makes one:",
    redis("JOIN news mailer LEASE 3600000"),
    command(`curl -X PUT ${origin()}/v1/topics/news/members/mailer`),
  );
