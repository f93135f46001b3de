// Numbers, times and sizes in the words and digits of the reader.

const locale = navigator.languages?.length ? navigator.languages : undefined;
const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const some = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat(locale, { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });
const minutes = new Intl.DateTimeFormat(locale, { timeStyle: "short" });
const full = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const share = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });

export const DASH = "–";

const unless = (value, format) => (value === null || value === undefined ? DASH : format(value));

export const count = (value) => unless(value, (it) => whole.format(it));
export const compact = (value) => unless(value, (it) => (it < 10_000 ? whole : short).format(it));
export const rate = (value) =>
  unless(value, (it) => (it >= 10_000 ? short : it >= 100 ? whole : some).format(it));
export const percent = (value) => unless(value, (it) => share.format(it));

// How many of something: `plural(2, "task")`.
export const plural = (number, word) =>
  `${count(number)} ${word}${Number(number) === 1 ? "" : word.endsWith("ch") ? "es" : "s"}`;

const SPANS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

// A duration in milliseconds, in one or two units.
export function span(ms) {
  if (ms === null || ms === undefined) return DASH;
  const value = Number(ms);
  if (value < 1_000) return `${fine.format(value)} ms`;
  if (value < 10_000) return `${some.format(value / 1_000)} s`;
  const at = SPANS.findIndex(([size]) => value >= size);
  const [size, unit] = SPANS[at];
  const first = Math.floor(value / size);
  const next = SPANS[at + 1];
  const second = next && first < 10 ? Math.floor((value % size) / next[0]) : 0;
  const head = `${whole.format(first)} ${unit}`;
  return second > 0 ? `${head} ${second} ${next[1]}` : head;
}

// The same in one unit, for axes.
export function shortSpan(ms) {
  const known = SPANS.find(([size]) => ms >= size);
  return known ? `${some.format(ms / known[0])} ${known[1]}` : `${fine.format(ms)} ms`;
}

// Reads a duration such as 30s, 5 min or 1500 (milliseconds). Null for nothing, NaN if it is none.
export function readSpan(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?$/i.exec(trimmed);
  if (!match) return NaN;
  const sizes = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
  return Math.round(Number(match[1]) * sizes[(match[2] ?? "ms").toLowerCase()]);
}

// A duration as it can be typed: the largest unit that leaves a whole number.
export function typedSpan(ms) {
  if (ms === null || ms === undefined) return "";
  const unit = SPANS.find(([size]) => ms > 0 && ms % size === 0);
  return unit ? `${ms / unit[0]} ${unit[1]}` : `${ms} ms`;
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  if (value === null || value === undefined) return DASH;
  let size = Number(value);
  let at = 0;
  while (size >= 1_024 && at < SIZES.length - 1) {
    size /= 1_024;
    at += 1;
  }
  return `${fine.format(size)} ${SIZES[at]}`;
}

export const moment = (at) => unless(at, (it) => full.format(new Date(it)));
// The time of day, with seconds if they matter.
export const time = (at, hasSeconds) => (hasSeconds ? clock : minutes).format(new Date(at));

// How far off a moment is, in words.
export function away(at, now = Date.now()) {
  if (at === null || at === undefined) return DASH;
  const ms = new Date(at).getTime() - now;
  if (Math.abs(ms) < 1_000) return "now";
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}
