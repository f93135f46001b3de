// Begins the dashboard: the navigation, the banner, and the view that the address names.

import { fill, h } from "./h.js";
import { change, Gone, onSignedOut, read } from "./api.js";
import { learn } from "./session.js";
import { parse } from "./router.js";
import { end as endLive, every, onChange } from "./live.js";
import { plural } from "./format.js";
import { login } from "./views/login.js";
import { overview } from "./views/overview.js";
import { queue } from "./views/queue.js";
import { task } from "./views/task.js";
import { dead } from "./views/dead.js";
import { topics } from "./views/topics.js";
import { topic } from "./views/topic.js";
import { schedules } from "./views/schedules.js";
import { schedule } from "./views/schedule.js";
import { batches } from "./views/batches.js";
import { limits } from "./views/limits.js";
import { connections } from "./views/connections.js";
import { server } from "./views/server.js";

const VIEWS = [
  ["", "Overview"],
  ["dead", "Dead letters"],
  ["topics", "Topics"],
  ["schedules", "Schedules"],
  ["batches", "Batches"],
  ["limits", "Limits"],
  ["connections", "Connections"],
  ["server", "Server"],
];

const FACTS_MS = 10_000;

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const banner = document.getElementById("banner");
const look = document.getElementById("look");
const menu = document.getElementById("menu");

fill(
  nav,
  h(
    "ul",
    null,
    VIEWS.map(([step, label]) =>
      h("li", null, h("a", { href: `#/${step}`, "data-step": step }, label)),
    ),
  ),
);

menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));

function openMenu(isOpen) {
  menu.setAttribute("aria-expanded", String(isOpen));
  nav.classList.toggle("open", isOpen);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

function viewOf({ steps }) {
  const [first, , third] = steps;
  const known = { dead, batches, limits, connections, server };
  if (first === undefined) return overview;
  if (first === "queues" && steps.length === 2) return queue;
  if (first === "queues" && third === "tasks" && steps.length === 4) return task;
  if (first === "topics") return [topics, topic][steps.length - 1];
  if (first === "schedules") return [schedules, schedule][steps.length - 1];
  return steps.length === 1 ? known[first] : undefined;
}

let current = null;

// Shows the view of the address. It has a `page`: where it puts its nodes, and what ends with it.
async function show(takeFocus) {
  current?.end();
  const route = parse(location.hash);
  const page = makePage();
  current = page;
  const step = ["queues", undefined].includes(route.steps[0]) ? "" : route.steps[0];
  for (const it of nav.querySelectorAll("a")) {
    if (it.dataset.step === step) it.setAttribute("aria-current", "page");
    else it.removeAttribute("aria-current");
  }
  openMenu(false);
  const view = viewOf(route);
  try {
    if (view) await view(page, route);
    else lost(page);
  } catch (error) {
    if (page.isOver || isOut) return;
    page.title("Not shown");
    if (!(error instanceof Gone)) {
      fill(
        main,
        h("h1", { tabindex: "-1" }, "This cannot be shown"),
        h("p", null, error.message),
        h("p", null, h("a", { href: "#/" }, "Back to the overview")),
      );
    }
  }
  if (takeFocus && !page.isOver) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus();
  }
}

function makePage() {
  const ends = [];
  return {
    root: main,
    isOver: false,
    title: (text) => {
      document.title = text ? `${text} – pinpriq` : "pinpriq";
    },
    show: (...nodes) => fill(main, ...nodes),
    onEnd: (end) => ends.push(end),
    every(ms, work) {
      ends.push(every(ms, work, (error) => this.fail(error)));
    },
    again: () => show(false),
    fail(error) {
      if (this.isOver) return;
      this.error ??= h("p", { class: "form-error", role: "alert" });
      this.error.textContent = error.message;
      if (!this.error.isConnected) main.prepend(this.error);
    },
    end() {
      this.isOver = true;
      ends.forEach((it) => it());
    },
  };
}

function lost(page) {
  page.title("Not found");
  page.show(
    h("h1", { tabindex: "-1" }, "There is no such view"),
    h("p", null, h("a", { href: "#/" }, "Back to the overview")),
  );
}

onChange((gone) => {
  banner.hidden = !gone;
  fill(
    banner,
    gone &&
      "The server does not answer. What is shown is from before. This page looks " +
        "again every second and goes on by itself.",
  );
  document.body.classList.toggle("gone", gone);
  if (!gone && !isOut) begin();
});

// Shows the view when it is known who looks.
async function begin() {
  await learn().catch(() => null);
  if (!isOut) show(false);
}

// The server asks for a sign-in, perhaps again. Then the page begins anew, with the same view.
let isOut = false;
onSignedOut(() => {
  if (isOut) return;
  isOut = true;
  current?.end();
  endLive();
  document.body.classList.add("out");
  login(main, () => location.reload());
});

async function signOut() {
  await change("DELETE", "/v1/session").catch(() => null);
  location.reload();
}

// Facts in the bar, whatever the view. Another version has another page.
let version = null;
every(FACTS_MS, async () => {
  const who = await learn();
  if (version !== null && version !== who.pinpriq_version) location.reload();
  version = who.pinpriq_version;
  fill(
    document.getElementById("who"),
    who.user && who.user,
    who.user && h("button", { type: "button", class: "small", onclick: signOut }, "Sign out"),
  );
  if (!who.admin) {
    fill(document.getElementById("facts"), version);
    return;
  }
  const { server: it, persistence, clients } = await read("/v1/server");
  tellLook(it.look_at_ms);
  const hasFailed = persistence.journal_failure !== "none";
  fill(
    document.getElementById("facts"),
    hasFailed && h("strong", { class: "bad" }, "The store has failed "),
    `${version} · ${persistence.durability} · ${plural(clients.connected_clients, "connection")}`,
  );
});

// A server that only shows a moment says so above every view. In UTC, as the command does.
function tellLook(ms) {
  const at = ms !== null && new Date(ms).toISOString();
  const text = at ? `A look at ${at}: nothing changes here.` : "";
  if (look.textContent !== text) look.textContent = text;
}

addEventListener("hashchange", () => isOut || show(true));
begin();
