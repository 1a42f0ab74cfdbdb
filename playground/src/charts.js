// Lines over time, one chart per quantity and side. Both sides of a quantity have one scale.

import uPlot from "uplot";
import { term } from "./terms.js";

const HEIGHT = 128;
const METRICS = [
  { key: "goodput_mbps", title: "Goodput", term: "goodput", unit: "Mbit/s", of: "subflows", digits: 1 },
  { key: "cwnd_pkts", title: "Congestion window", term: "cwnd", unit: "packets", of: "subflows", digits: 0 },
  { key: "srtt_ms", title: "Round-trip time", term: "rtt", unit: "ms", of: "subflows", digits: 0 },
  { key: "queue_pkts", title: "Queue", term: "queue", unit: "packets", of: "links", digits: 0 },
];
// Space above the scale's largest value.
const HEADROOM = 1.06;
// The scale is that of the time after slow start, whose overshoot would flatten all else, and leaves out a few peaks.
const SCALE_FROM_S = 5;
const SCALE_QUANTILE = 0.99;
const FEWEST_TICKS_PX = 26;

/** All charts of the page. */
export class Charts {
  #root;
  #charts = [];
  /** What the charts are made for: sides, lines and time. */
  shape = "";
  #frame = 0;
  // What was drawn last: per side the time axis and the values of every metric.
  #pictures = {};
  #top = {};

  constructor(root) {
    this.#root = root;
    new ResizeObserver(() => this.#resize()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#build());
  }

  /**
   * Makes the charts of a network.
   * @param {{id: string, cc: string}[]} sides
   * @param {{subflows: Line[], links: Line[]}} lines label, colour and dash of every line
   */
  layout(sides, lines, durationS) {
    const shape = JSON.stringify([sides, lines, durationS]);
    if (shape === this.shape) return;
    this.shape = shape;
    Object.assign(this, { sides, lines, durationS });
    this.#pictures = {};
    this.#top = {};
    this.#build();
  }

  /** Draws what is known of a run; what comes later in the run stays as it was. */
  show(side, picture, isDone) {
    const before = this.#pictures[side];
    const seconds = Array.from({ length: picture.points }, (_, i) => (i * picture.stepNs) / 1e9);
    const next = { seconds };
    for (const metric of METRICS) {
      next[metric.key] = picture[metric.of].map((series, i) => {
        const old = !isDone && before?.[metric.key][i];
        return Array.from(series[metric.key], (value, k) => (k < picture.filled || !old ? (Number.isNaN(value) ? null : value) : (old[k] ?? null)));
      });
    }
    this.#pictures[side] = next;
    this.#scale(isDone);
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  /** What a screen reader says of a side's charts: the means of each line. */
  describe(side, cc) {
    const picture = this.#pictures[side];
    for (const { metric, figure, plotSide } of this.#charts) {
      if (plotSide !== side || !picture) continue;
      const means = picture[metric.key].map((values, i) => `${this.lines[metric.of][i].label} ${mean(values).toFixed(metric.digits)}`);
      figure.setAttribute("aria-label", `${metric.title} over time with ${cc}, means in ${metric.unit}: ${means.join(", ")}`);
    }
  }

  // A scale that shrinks at the end of a run only does not flicker while a slider moves.
  #scale(isDone) {
    for (const { key } of METRICS) {
      const largest = Math.max(0, ...Object.values(this.#pictures).map((picture) => largestOf(picture, key)));
      this.#top[key] = isDone ? largest : Math.max(largest, this.#top[key] ?? 0);
    }
  }

  #draw() {
    for (const { plot, metric, plotSide } of this.#charts) {
      const picture = this.#pictures[plotSide];
      if (!picture) continue;
      plot.batch(() => {
        plot.setData([picture.seconds, ...picture[metric.key]], false);
        plot.setScale("x", { min: 0, max: this.durationS });
        plot.setScale("y", { min: 0, max: Math.max(this.#top[metric.key] * HEADROOM, 1) });
      });
    }
  }

  #build() {
    if (!this.sides) return;
    for (const { plot } of this.#charts) plot.destroy();
    this.#charts = [];
    this.#root.replaceChildren();
    this.#root.classList.toggle("single", this.sides.length === 1);
    for (const metric of METRICS) {
      const title = document.createElement("h3");
      const unit = document.createElement("small");
      unit.textContent = `, ${metric.unit}`;
      title.append(term(metric.term, metric.title), unit);
      this.#root.append(title);
      for (const side of this.sides) this.#root.append(this.#chart(metric, side));
    }
    this.#resize();
    this.#draw();
  }

  #chart(metric, side) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const badge = document.createElement("span");
    badge.className = `badge ${side.id}`;
    badge.textContent = side.id.toUpperCase();
    const readout = document.createElement("span");
    readout.textContent = side.cc;
    caption.append(badge, readout);
    const frame = document.createElement("div");
    frame.role = "img";
    frame.setAttribute("aria-label", `${metric.title} over time with ${side.cc}`);
    figure.append(caption, frame);
    const lines = this.lines[metric.of];
    const values = (plot) => (readout.textContent = reading(plot, lines, metric, side.cc));
    const plot = new uPlot(options(lines, values), [[0], ...lines.map(() => [null])], frame);
    this.#charts.push({ plot, metric, plotSide: side.id, frame, figure: frame });
    return figure;
  }

  #resize() {
    for (const { plot, frame } of this.#charts) {
      const width = frame.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
    }
  }
}

function options(lines, onCursor) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--soft"), font: "11px system-ui, sans-serif", ticks: { show: false }, gap: 4 };
  return {
    width: 300,
    height: HEIGHT,
    padding: [6, 16, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "time" }, drag: { x: false, y: false }, points: { size: 5 } },
    scales: { x: { time: false, auto: false }, y: { auto: false } },
    axes: [
      { ...axis, size: 22, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
      { ...axis, size: 40, space: FEWEST_TICKS_PX, grid: { stroke: colour("--grid"), width: 1 } },
    ],
    series: [{}, ...lines.map((line) => ({ stroke: colour(line.colour), width: 1.5, dash: line.dash, points: { show: false }, spanGaps: false }))],
    hooks: { setCursor: [onCursor] },
  };
}

// The values under the cursor, or the algorithm where there is none.
function reading(plot, lines, metric, cc) {
  const { idx } = plot.cursor;
  if (idx === null || idx === undefined || plot.cursor.left < 0) return cc;
  const values = lines.map((line, i) => `${line.label} ${plot.data[i + 1][idx]?.toFixed(metric.digits) ?? "–"}`);
  return `${plot.data[0][idx].toFixed(1)} s: ${values.join(", ")}`;
}

function largestOf({ seconds, ...picture }, key) {
  const first = seconds.findIndex((second) => second >= SCALE_FROM_S);
  const tops = picture[key].map((values) => {
    const known = values.slice(first).filter((value) => value !== null);
    return known.sort((a, b) => a - b)[Math.floor(SCALE_QUANTILE * (known.length - 1))] ?? 0;
  });
  return Math.max(0, ...tops);
}

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
}
