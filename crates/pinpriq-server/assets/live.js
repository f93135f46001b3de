// What goes on at the server, as it happens: figures for the views that show them, and whether the
// server is there at all. No other module knows how they come.
//
// There is one stream of events for the page, also for several who watch, since a browser has few
// connections to a server. It rests while the page is not seen. Lanes have no events, so their
// figures are asked for.

import { Gone, onReach, read, readOrNull } from "./api.js";
import { placePath, target } from "./names.js";

const EVERY_MS = 2_000;
const AGAIN_MS = 1_000;

const listeners = new Set();
const watchers = new Set();
let gone = false;
let isOver = false;
let again = 0;
let stream = null;
let streamOf = "";

// Calls a function when the server is gone, and when it is back.
export function onChange(listener) {
  listeners.add(listener);
}

export const isGone = () => gone;

// Ends everything, until the page is loaded again.
export function end() {
  isOver = true;
  close();
}

onReach((isGoneNow) => {
  if (isGoneNow === gone) return;
  gone = isGoneNow;
  if (gone) {
    close();
    lookAgain();
  } else open();
  for (const listener of listeners) listener(gone);
});

// Asks until the server answers. The first answer is noticed like any other.
function lookAgain() {
  clearTimeout(again);
  again = setTimeout(async () => {
    await read("/readyz").catch(() => null);
    if (gone) lookAgain();
  }, AGAIN_MS);
}

// Calls a function again and again while the page is seen and the server is there. Returns what
// ends that. Errors other than that the server is gone go to `failed`.
export function every(ms, work, failed = () => {}) {
  let timer = 0;
  let ended = false;
  const round = async () => {
    if (!document.hidden && !gone && !isOver) {
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

// Watches all queues together, and one queue or lane if it is given. Returns what ends that.
export function watch(place, show, failed) {
  const watcher = { place: place?.member ? null : place, show };
  const ends = [];
  if (place?.member) {
    let lane = null;
    watcher.show = (told) => show({ ...told, queue: lane });
    ends.push(
      every(
        EVERY_MS,
        async () => {
          const answer = await readOrNull(placePath(place));
          lane = answer && laneFigures(lane, answer);
        },
        failed,
      ),
    );
  }
  watchers.add(watcher);
  open();
  return () => {
    watchers.delete(watcher);
    ends.forEach((it) => it());
  };
}

// Opens the stream that those who watch need, unless it is open.
function open() {
  if (gone || isOver || document.hidden) return;
  const named = [...watchers].reverse().find((it) => it.place);
  const path = target(["v1", "events"], { query: { queue: named?.place.name } });
  if (stream && streamOf === path) return;
  close();
  stream = new EventSource(path);
  streamOf = path;
  stream.addEventListener("figures", ({ data }) => {
    const told = JSON.parse(data);
    for (const { place, show } of watchers) {
      // The stream may still be about the queue of a view that was left.
      if (!place || place === named?.place) show(told);
    }
  });
  stream.addEventListener("error", () => {
    close();
    // Whether the server is gone or only the stream has ended, the next answer tells.
    setTimeout(() => read("/v1/session").then(open, () => null), AGAIN_MS / 4);
  });
}

function close() {
  stream?.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));

// The samples of the last fifteen minutes, as the events would have told them.
export async function past(place) {
  if (place?.member) return [];
  const query = { queue: place?.name };
  const told = await readOrNull(target(["v1", "history"], { query })).catch(() => null);
  if (!told?.at) return [];
  const last = new Date(told.at).getTime();
  return told.R.map((_, at) => sample(told, at, last - (told.R.length - 1 - at) * told.step_ms));
}

function sample(told, at, ms) {
  const figures = {
    at: new Date(ms).toISOString(),
    counts: Object.fromEntries([..."RTWBZD"].map((state) => [state, told[state][at]])),
    rates: Object.fromEntries(["in", "out", "taken", "failed"].map((it) => [it, told[it][at]])),
    oldest_ready_ms: told.oldest_ready_ms[at],
    waited_ms: told.waited_ms[at],
    dead_letters: told.dead_letters?.[at] ?? 0,
    journal: { commit_ms: told.commit_ms?.[at] ?? null },
  };
  return { ...figures, queue: figures };
}

// The figures of a lane, with its rates since the last look.
function laneFigures(former, { stats, settings }) {
  const now = {
    at: performance.now(),
    in: stats.put,
    out: stats.put + stats.revived - stats.present,
    taken: stats.transitions["R-T"] ?? 0,
    failed: stats.failures,
    waits: stats.waited_ms.count,
    waited: stats.waited_ms.sum,
  };
  const before = former?.now;
  const seconds = before ? (now.at - before.at) / 1_000 : 0;
  const rate = (name) => Math.max(0, now[name] - before[name]) / seconds;
  const rates = before && {
    in: rate("in"),
    out: rate("out"),
    taken: rate("taken"),
    failed: rate("failed"),
  };
  const waits = before ? now.waits - before.waits : 0;
  return {
    now,
    rates,
    counts: stats.counts,
    oldest_ready_ms: stats.oldest_ready_ms,
    waited_ms: waits > 0 ? (now.waited - before.waited) / waits : null,
    takers: stats.takers,
    subscribers: stats.subscribers,
    paused: settings.paused,
  };
}
