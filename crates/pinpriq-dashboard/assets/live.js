// What goes on at the server, as it happens: figures for the views that show them, and whether the
// server is there at all. No other module knows how they come.
//
// The figures have the members of the event `figures` of the API. They are asked for every two
// seconds while a view wants them and the page is seen.

import { Gone, onReach, read, readOrNull } from "./api.js";
import { placePath } from "./names.js";

const EVERY_MS = 2_000;
const AGAIN_MS = 1_000;

const state = { isGone: false, listeners: new Set(), timer: 0 };

// Calls a function when the server is gone, and when it is back.
export function onChange(listener) {
  state.listeners.add(listener);
}

onReach((isGone) => {
  if (isGone === state.isGone) return;
  state.isGone = isGone;
  if (isGone) lookAgain();
  for (const listener of state.listeners) listener(isGone);
});

// Asks until the server answers. The first answer is noticed like any other.
function lookAgain() {
  clearTimeout(state.timer);
  state.timer = setTimeout(async () => {
    await read("/healthz").catch(() => null);
    if (state.isGone) lookAgain();
  }, AGAIN_MS);
}

export const isGone = () => state.isGone;

// Calls a function again and again while the page is seen and the server is there. Returns what
// ends that. Errors other than that the server is gone go to `failed`.
export function every(ms, work, failed = () => {}) {
  let timer = 0;
  let ended = false;
  const round = async () => {
    if (!document.hidden && !state.isGone) {
      try {
        await work();
      } catch (error) {
        if (!(error instanceof Gone) && !ended) failed(error);
      }
    }
    if (!ended) timer = setTimeout(round, ms);
  };
  round();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

const FLOWS = { came: "came", left: "left", taken: "taken", failed: "failed" };

// How many tasks have come, left, been taken and failed.
function flows(stats) {
  return {
    came: stats.put,
    left: stats.put - stats.present,
    taken: stats.transitions?.["R-T"] ?? 0,
    failed: stats.failures,
  };
}

// What happened in each second between two looks.
function between(before, after, seconds) {
  if (!before || seconds <= 0) return null;
  const rates = {};
  for (const name of Object.keys(FLOWS)) {
    rates[name] = Math.max(0, after[name] - before[name]) / seconds;
  }
  return rates;
}

function meanOf(before, after) {
  const count = after.count - (before?.count ?? 0);
  return before && count > 0 ? (after.sum - before.sum) / count : null;
}

// Watches all queues together, and one queue or lane if it is given. Returns what ends that.
export function watch(place, show, failed) {
  let former = null;
  return every(EVERY_MS, async () => {
    const asked = [read("/v1/stats"), read("/v1/server")];
    if (place) asked.push(readOrNull(placePath(place)));
    const [stats, server, queue] = await Promise.all(asked);
    const now = { at: performance.now(), stats, server, queue };
    show(figures(former, now));
    former = now;
  }, failed);
}

function figures(former, { at, stats, server, queue }) {
  const seconds = former ? (at - former.at) / 1_000 : 0;
  const disk = server.persistence;
  const before = former?.server.persistence;
  const commit = meanOf(before?.journal_commit_us, disk.journal_commit_us);
  const told = {
    at: new Date(server.server.server_time_ms).toISOString(),
    counts: stats.counts,
    rates: between(former && flows(former.stats), flows(stats), seconds),
    oldest_ready_ms: stats.oldest_ready_ms,
    journal: {
      writes: before ? (disk.journal_writes - before.journal_writes) / seconds : null,
      commit_ms: commit === null ? null : commit / 1_000,
      bytes_used: disk.journal_bytes_used,
      bytes_live: disk.journal_bytes_live,
      failure: disk.journal_failure === "none" ? null : disk.journal_failure,
      durability: disk.durability,
    },
    memory: {
      task_bytes: server.tasks.task_bytes, task_bytes_max: server.tasks.task_bytes_max,
    },
    connections: server.clients.connected_clients,
    takers: stats.takers,
    version: server.server.pinpriq_version,
  };
  if (queue !== undefined) told.queue = queue && figuresOfQueue(former?.queue, queue, seconds);
  return told;
}

function figuresOfQueue(former, { stats, settings }, seconds) {
  return {
    counts: stats.counts,
    rates: between(former && flows(former.stats), flows(stats), seconds),
    oldest_ready_ms: stats.oldest_ready_ms,
    waited_ms: meanOf(former?.stats.waited_ms, stats.waited_ms),
    takers: stats.takers,
    subscribers: stats.subscribers,
    paused: settings.paused,
    stats,
    settings,
  };
}
