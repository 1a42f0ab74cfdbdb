// Simulates one run at a time and posts what is to be drawn: some times while a long run goes on, and at its end.

import { Engine } from "./engine.js";
import { Series } from "./series.js";

// Time between two pictures of a run; more would only keep the page busy.
const PICTURE_MS = 80;

let engine;

self.onmessage = ({ data }) => {
  if (data.module) {
    engine = new Engine(data.module);
    self.postMessage({ kind: "ready", catalog: engine.catalog });
    return;
  }
  try {
    run(data);
  } catch (error) {
    self.postMessage({ kind: "failed", id: data.id, message: error.message });
  }
};

function run({ id, request, axes, links }) {
  const start = performance.now();
  const plan = engine.open(request);
  const combination = plan.combinations.find((one) => Object.entries(axes).every(([key, value]) => one.axes[key] === value));
  if (!combination) throw new Error(`no run with ${JSON.stringify(axes)}`);
  const series = new Series(combination.scenario, links);
  let last = start;
  const totals = engine.simulate(combination.runs[0], (tables) => {
    series.add(tables);
    if (performance.now() < last + PICTURE_MS) return;
    last = performance.now();
    self.postMessage({ kind: "samples", id, picture: picture(series) });
  });
  self.postMessage({ kind: "done", id, totals, picture: picture(series), ms: performance.now() - start });
}

function picture(series) {
  const { stepNs, points, filled, subflows, links } = series;
  return { stepNs, points, filled, subflows, links, rows: series.totals.rows() };
}
