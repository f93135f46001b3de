// Charts over the last fifteen minutes, drawn by uPlot in the colours of the page. Each comes with
// its latest values as text, for those who do not see it.

import { fill, freshId, h } from "./h.js";
import { DASH, rate, time } from "./format.js";

const WINDOW_S = 15 * 60;
const WINDOW_MIN_S = 2 * 60;
const SAMPLES_MAX = 900;

const charts = new Set();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.draw();
});

// Where a chart begins that has samples from one moment to another.
const windowFrom = (first, last) => Math.min(Math.max(first, last - WINDOW_S), last - WINDOW_MIN_S);

// Makes a chart. `lines` have `label`, `colour` (the name of a custom property), `fill`, `format`
// and, where labels of the axis are shorter, `axis`.
export function chart(title, lines, { unit = "", height = 150 } = {}) {
  return new Chart(title, lines, unit, height);
}

// Makes the chart of the tasks that come and go.
export const flowChart = () =>
  chart(
    "Tasks",
    [
      { label: "in", colour: "--chart-in", format: rate, fill: true },
      { label: "out", colour: "--chart-out", format: rate },
    ],
    { unit: "per second" },
  );

class Chart {
  constructor(title, lines, unit, height) {
    Object.assign(this, { lines, height, plot: null });
    this.data = [[], ...lines.map(() => [])];
    const id = freshId("chart");
    this.values = lines.map(() => h("b", null, DASH));
    const legend = lines.map((line, at) =>
      h(
        "li",
        null,
        h("i", {
          class: ["key", line.fill && "key-fill"],
          style: { "--key": `var(${line.colour})` },
        }),
        line.label,
        " ",
        this.values[at],
      ),
    );
    this.box = h("div", { class: "chart-box", style: { "min-height": `${height}px` } });
    this.node = h(
      "figure",
      { class: "chart card", "aria-labelledby": id },
      h(
        "figcaption",
        null,
        h("span", { id, class: "chart-title" }, title, unit && h("small", null, ` ${unit}`)),
        h("ul", { class: "legend" }, legend),
      ),
      this.box,
    );
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.box);
    charts.add(this);
  }

  // Adds a sample: the moment and a value for each line, null where there is none.
  push(at, values) {
    const seconds = new Date(at).getTime() / 1_000;
    const [times] = this.data;
    if (times.length > 0 && seconds <= times[times.length - 1]) return;
    times.push(seconds);
    values.forEach((value, line) => this.data[line + 1].push(value ?? null));
    while (times.length > SAMPLES_MAX) this.data.forEach((it) => it.shift());
    values.forEach((value, line) => {
      this.values[line].textContent = (this.lines[line].format ?? String)(value);
    });
    if (this.plot) this.plot.setData(this.data);
    else this.draw();
  }

  fit() {
    const width = Math.floor(this.box.clientWidth);
    if (width > 0 && this.plot) this.plot.setSize({ width, height: this.height });
    else if (width > 0) this.draw();
  }

  draw() {
    const width = Math.floor(this.box.clientWidth);
    if (width === 0 || this.data[0].length === 0) return;
    this.plot?.destroy();
    fill(this.box);
    this.plot = new uPlot(this.options(width), this.data, this.box);
    this.box.firstElementChild?.setAttribute("aria-hidden", "true");
  }

  options(width) {
    const [text, grid] = [colour("--muted"), colour("--line")];
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: text, font, ticks: { show: false }, grid: { stroke: grid, width: 1 } };
    const value = this.lines[0].axis ?? this.lines[0].format ?? String;
    return {
      width,
      height: this.height,
      legend: { show: false },
      padding: [8, 8, 0, 0],
      cursor: { drag: { setScale: false }, points: { size: 6 }, y: false },
      scales: {
        x: { range: (_, first, last) => [windowFrom(first, last), last] },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 24,
          space: 80,
          values: (_, ticks, __, ___, step) => ticks.map((it) => time(it * 1_000, step < 60)),
        },
        { ...axis, size: 52, space: 34, values: (_, ticks) => ticks.map(value) },
      ],
      series: [
        {},
        ...this.lines.map((line) => ({
          stroke: colour(line.colour),
          width: 1.6,
          spanGaps: false,
          points: { show: false },
          dash: line.dash,
          fill: line.fill ? `${colour(line.colour)}22` : undefined,
        })),
      ],
      hooks: { setCursor: [(plot) => this.point(plot)] },
    };
  }

  // Shows the values under the pointer, else the latest ones.
  point(plot) {
    const at = plot.cursor.idx ?? this.data[0].length - 1;
    this.lines.forEach((line, number) => {
      this.values[number].textContent = (line.format ?? String)(this.data[number + 1][at]);
    });
  }

  end() {
    charts.delete(this);
    this.sizes.disconnect();
    this.plot?.destroy();
  }
}

// A small line without axes. Its text says what it ends with.
export function spark(values, label) {
  const points = values.slice(-60);
  const known = points.filter((it) => it !== null && it !== undefined);
  const most = Math.max(...known, 0);
  const place = (value, at) => {
    const x = 60 - points.length + at;
    return `${x * 2},${(18 - (most > 0 ? (value / most) * 16 : 0)).toFixed(1)}`;
  };
  const runs = points.flatMap((it, at) => (it === null || it === undefined ? [] : [place(it, at)]));
  return h(
    "svg",
    {
      class: "spark",
      viewBox: "0 0 120 20",
      role: "img",
      "aria-label": label,
      preserveAspectRatio: "none",
    },
    runs.length > 1 && h("polyline", { points: runs.join(" "), class: most > 0 ? null : "flat" }),
  );
}
