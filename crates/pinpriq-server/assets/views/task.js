// One task: its payload, everything that is known about it, and why it is where it is.

import { fill, h } from "../h.js";
import { readOrNull, Refused } from "../api.js";
import { may } from "../session.js";
import { away, count, moment, span } from "../format.js";
import { nameAt } from "../router.js";
import { Name, link, placeLink, placePath } from "../names.js";
import { facts, headerFacts, heading, section } from "../parts/page.js";
import { badge } from "../parts/states.js";
import { payload } from "../parts/payload.js";
import { told as explained } from "../parts/explain.js";
import { button } from "../parts/dialog.js";
import { act, ACTIONS, LABELS } from "../actions/task.js";
import { FIELDS } from "../printed.js";

const EVERY_MS = 2_000;

export async function task(page, route) {
  const place = { name: nameAt(route, 1, "queue"), member: Name.in(route.values, "member") };
  const id = nameAt(route, 3, "id");
  page.title(`Task ${id.shown} of ${place.name.shown}`);
  const state = h("span");
  const buttons = h("span", { class: "group" });
  const gone = h("p", { class: "notice", role: "status", hidden: true });
  const [known, why, body] = [h("div", { class: "card" }), h("div", { class: "card" }), h("div")];
  const tried = h("div");
  let former = null;
  let bodyOf = null;

  async function refresh() {
    const steps = ["tasks", ["id", id]];
    const it = await readOrNull(placePath(place, steps));
    const why = await readOrNull(placePath(place, [...steps, "explain"]));
    if (page.isOver) return false;
    if (it) tell(it, why);
    else if (former || why) leave(why);
    return Boolean(it || why);
  }

  function tell(it, explanation) {
    if (former?.state !== it.state) {
      fill(state, badge(it.state));
      const again = () => refresh().catch((error) => page.fail(error));
      fill(
        buttons,
        (may("manage", place.name) ? ACTIONS[it.state] : []).map((action) =>
          button(
            LABELS[action],
            async () => {
              if (await act(action, place, id, it.state)) await again();
            },
            { kind: action === "kill" ? "danger-text" : "" },
          ),
        ),
      );
    }
    const mark = it.payload ?? it.payload_base64;
    if (bodyOf !== mark) fill(body, payload(it));
    bodyOf = mark;
    fill(known, facts(factsOf(it)));
    fill(tried, attempts(it.history ?? []));
    if (explanation) fill(why, explained(explanation, place, { isOfTask: true }));
    former = it;
  }

  function leave(explanation) {
    gone.hidden = false;
    fill(
      gone,
      "This task has left its queue: it was finished, removed, expired or moved." +
        (former ? " What is shown is from before." : ""),
    );
    fill(buttons);
    fill(state, badge("X"));
    if (explanation) fill(why, explained(explanation, place, { isOfTask: true }));
    else fill(why, h("p", { class: "quiet" }, "It has left."));
  }

  page.show(
    heading(`Task ${id.shown}`, {
      badges: [state],
      actions: [buttons],
      above: [
        place.member
          ? h("a", { href: link(["topics", ["topic", place.name]]) }, place.name.shown)
          : h("a", { href: "#/" }, "Queues"),
        h("a", { href: placeLink(place) }, place.member?.shown ?? place.name.shown),
      ],
    }),
    gone,
    h(
      "div",
      { class: "split" },
      section("Payload", body),
      h("div", null, section("Why it is where it is", why), section("Facts", known), tried),
    ),
  );
  if (!(await refresh())) {
    throw new Refused(404, {
      detail: "There is no such task. It may have been finished, removed or " + "moved.",
    });
  }
  page.every(EVERY_MS, refresh);
}

// The last attempts, if the queue notes them and there are any, the newest first.
function attempts(history) {
  if (history.length === 0) return [];
  const row = (it) => {
    const text = (field) => Name.in(it, field)?.shown;
    const who = [text("name"), text("address")].filter(Boolean).join(", ");
    const reason = text("reason");
    return [
      `${it.how}${reason ? `: ${reason}` : ""}`,
      `${moment(it.taken_at)} to ${moment(it.ended_at)}, by ${who || "a client without a name"}`,
    ];
  };
  return section("Attempts", h("div", { class: "card" }, facts(history.toReversed().map(row))));
}

const when = (at) => at && `${away(at)} (${moment(at)})`;

// How values are shown that are no text. What a task does not have is left out, so null means that
// it has none where its queue may have some.
const orNone = (show) => (of) => (of === null ? "none" : of !== undefined && show(of));
const SHOWS = {
  moment: when,
  number: orNone(count),
  span: orNone(span),
  truth: (of) => of && "yes",
  names: (of) => of?.map((it) => nameOf(it).shown).join(", "),
};

// A name in an array, which says so if it is no text.
const nameOf = (it) => (typeof it === "string" ? new Name(it) : new Name(undefined, it.base64));

// What else the page shows, or shows in words of its own.
const SHOWN = [
  ["queue", "member", "id", "payload", "state", "priority", "schedule", "slot", "headers"],
  ["history"],
  ["client", "client_name", "client_address"],
  ["origin_queue", "origin_id", "origin_put_at", "origin_attempts", "origin_failures", "origin_at"],
].flat();

const NAMES = {
  reason: "Last reason",
  put_at: "Put",
  ttl_at: "Expires",
  ready_at: "Ready",
  lease_until: "Lease ends",
  purge_at: "Removed",
  after: "Waits for batches",
  attempts_max: "Attempts at most",
  backoff: "Back-off",
  backoff_max: "Longest back-off",
};

function factsOf(it) {
  const text = (field) => Name.in(it, field)?.shown;
  const fact = (name, value) => value !== undefined && value !== null && [name, value];
  const origin = Name.in(it, "origin_queue");
  const schedule = Name.in(it, "schedule");
  return [
    fact(
      "Priority",
      it.priority === undefined ? "none: it leaves with its group only" : String(it.priority),
    ),
    ...FIELDS.filter(({ name }) => !SHOWN.includes(name)).map(({ name, kind }) => {
      const label = NAMES[name] ?? name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
      const shown = SHOWS[kind];
      return fact(label, shown ? shown(it[name]) || null : text(name));
    }),
    ...headerFacts(it.headers),
    fact(
      "Held by",
      it.client &&
        [
          `connection ${it.client}`,
          text("client_name") && `, ${text("client_name")}`,
          it.client_address && `, ${it.client_address}`,
        ]
          .filter(Boolean)
          .join(""),
    ),
    origin && [
      "Comes from",
      [
        h("a", { href: placeLink({ name: origin }) }, origin.shown),
        `, where it was task ${text("origin_id")}, was taken ` +
          `${count(it.origin_attempts)} times and ` +
          `failed ${count(it.origin_failures)} times, until ${moment(it.origin_at)}`,
      ],
    ],
    schedule && [
      "Schedule",
      [
        h("a", { href: link(["schedules", ["schedule", schedule]]) }, schedule.shown),
        it.slot ? `, slot ${moment(it.slot)}` : ", fired by hand",
      ],
    ],
  ];
}
