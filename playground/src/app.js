// The page: a state, its scenario, two runs of it, and what they look like.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { FILES, WASM_GZIP_BASE64, WORKER } from "embedded";
import { Charts } from "./charts.js";
import { Controls } from "./controls.js";
import { Engine } from "./engine.js";
import { Runner } from "./runner.js";
import { showShares, stroke, total } from "./shares.js";
import { NONE, fromFragment, toFragment } from "./state.js";
import { explain } from "./terms.js";
import { TOPOLOGIES, scenario } from "./topologies.js";

const find = (id) => document.getElementById(id);

// Lines by subflow, which differ without colours too. Each flow of a triangle has one colour, and its long path is dashed.
const COLOURS = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7", "--s1"];
const DASHES = [undefined, [7, 2], [2, 2], [8, 2, 2, 2], [4, 2], [8, 2, 2, 2, 2, 2], [1, 2], [12, 3]];
// What a screen reader says waits until a slider stands still.
const QUIET_MS = 600;
// Between the top of the page, or the bars that stay there, and what is scrolled to.
const GAP_PX = 12;

async function start() {
  // In a frame of another page, which says what this is.
  document.documentElement.classList.toggle("framed", window.self !== window.top);
  explain(document);
  placesKeepTheAddress();
  clearOfBars();
  const module = await WebAssembly.compile(await gunzip(WASM_GZIP_BASE64));
  const catalog = new Engine(module).catalog;
  find("build").textContent = `mptcplab ${catalog.version}, simulator ${catalog.engine.slice(0, 12)}, built from ${catalog.build}`;
  new Page(module, catalog);
}

class Page {
  #results = {};
  // The number of the newest change: results of earlier ones are drawn, but are not the page's results.
  #change = 0;
  #changedAt = 0;
  #announcement = 0;

  constructor(module, catalog) {
    this.catalog = catalog;
    this.charts = new Charts(find("charts"));
    const source = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const handlers = {
      samples: (request, { picture }) => this.#draw(request, picture, false),
      done: (request, message) => this.#done(request, message),
      failed: ({ change }, { message }) => change === this.#change && this.#failed(message),
    };
    this.runners = Object.fromEntries(["a", "b"].map((side) => [side, new Runner(() => new Worker(source), module, handlers)]));
    this.controls = new Controls(catalog, () => this.#changed());
    window.addEventListener("hashchange", () => this.#fromLink());
    copier(find("copy-link"), () => location.href);
    copier(find("copy-scenario"), () => this.scenario.text);
    this.#fromLink();
  }

  #fromLink() {
    const { state, problems } = fromFragment(location.hash, this.catalog);
    this.controls.show(state);
    this.#changed();
    if (problems.length) this.#problem(`The link has settings that this page does not know: ${problems.join("; ")}.`);
  }

  #changed() {
    const { state } = this.controls;
    this.#changedAt = performance.now();
    this.#change++;
    this.#problem("");
    history.replaceState(null, "", `#${toFragment(state)}`);
    this.scenario = scenario(state);
    this.sides = ["a", "b"].filter((side) => state[side].cc !== NONE).map((id) => ({ id, ...state[id] }));
    this.#showScenario();
    this.#lines(state);
    const files = Object.fromEntries(this.scenario.files.map((name) => [name, FILES[name]]));
    const request = { name: "playground.toml", text: this.scenario.text, files };
    const links = TOPOLOGIES[state.topology].queues;
    this.#results = {};
    this.#former(true);
    for (const side of ["a", "b"]) {
      if (state[side].cc === NONE) this.runners[side].stop();
      else {
        const message = { id: side, request, axes: this.scenario.axes(state[side]), links };
        this.runners[side].request({ side, change: this.#change, shape: this.charts.shape, message });
      }
    }
  }

  // The lines of the charts: one per subflow, one per queue.
  #lines(state) {
    const topology = TOPOLOGIES[state.topology];
    const flows = flowsOf(state);
    const byFlow = flows.length > 1 && flows.every(({ subflows }) => subflows > 1);
    let next = 0;
    const subflows = flows.flatMap(({ name, subflows: count }, flow) =>
      Array.from({ length: count }, (_, index) => ({
        label: topology.subflowLabel(name, index),
        colour: COLOURS[byFlow ? flow : next],
        dash: DASHES[byFlow ? index : next++],
        // In the bars, colours of neighbours differ anyway.
        striped: byFlow && index > 0,
      })),
    );
    const links = topology.queues.map((name, index) => ({
      label: topology.labels[name],
      colour: topology.queues.length > 1 ? COLOURS[index] : "--s6",
      dash: DASHES[index],
    }));
    this.lines = { subflows, links };
    this.charts.layout(this.sides.map(({ id, cc, scheduler }) => ({ id, cc: `${cc}, ${scheduler}` })), this.lines, state.durationS);
    const reference = topology.reference(state.values);
    const mark = reference ? `<span><b class="key"></b>${reference.name}, ${reference.value.toFixed(1)} Mbit/s</span>` : "";
    find("legend").innerHTML = subflows.map((line) => `<span>${stroke(line)}${line.label}</span>`).join("") + mark;
  }

  // The run may be of an earlier change, with other lines.
  #draw({ side, shape }, picture, isDone) {
    if (shape === this.charts.shape) this.charts.show(side, picture, isDone);
  }

  #done(request, { ms, totals, picture }) {
    const { side, change } = request;
    this.#draw(request, picture, true);
    if (change !== this.#change) return;
    this.#results[side] = { ms, totals, rows: picture.rows };
    if (this.sides.some(({ id }) => !this.#results[id])) return;
    const { state } = this.controls;
    const topology = TOPOLOGIES[state.topology];
    const sides = this.sides.map((one) => ({ ...one, rows: this.#results[one.id].rows }));
    showShares(find("bars"), find("shares"), sides, {
      lines: this.lines.subflows,
      labelOf: topology.subflowLabel,
      capacity: topology.capacity(state.values),
      reference: topology.reference(state.values),
    });
    this.#former(false);
    requestAnimationFrame(() => this.#report(sides));
  }

  #failed(message) {
    this.#problem(message);
    clearTimeout(this.#announcement);
    find("status").textContent = "";
  }

  // Bars and numbers of former settings are pale while a long run goes on, and beside the message of one that failed.
  #former(are) {
    for (const place of document.querySelectorAll(".bars, .shares")) place.classList.toggle("former", are);
  }

  // Numbers for people at once, and for screen readers when nothing has changed for a while.
  #report(sides) {
    const status = find("status");
    const results = sides.map(({ id }) => this.#results[id]);
    if (results.some((result) => !result)) return;
    status.dataset.ms = (performance.now() - this.#changedAt).toFixed(0);
    status.dataset.hopsPerSecond = Math.max(...results.map(({ ms, totals }) => totals.packet_hops / (ms / 1000))).toFixed(0);
    clearTimeout(this.#announcement);
    this.#announcement = setTimeout(() => {
      for (const { id, cc, scheduler } of sides) this.charts.describe(id, `${cc}, ${scheduler}`);
      const goodputs = sides.map(({ id, cc, rows }) => `${id.toUpperCase()}, ${cc}: ${connection(rows).toFixed(2)} Mbit/s`);
      const hops = results.reduce((sum, { totals }) => sum + totals.packet_hops, 0);
      const seconds = Math.max(...results.map(({ ms }) => ms)) / 1000;
      status.textContent = `Goodput of MPTCP after the first 10 s: ${goodputs.join("; ")}. ${(hops / 1e6).toFixed(2)} million packet-hops simulated in ${seconds.toFixed(2)} s.`;
    }, QUIET_MS);
  }

  #showScenario() {
    const { text, files } = this.scenario;
    find("toml").textContent = text;
    URL.revokeObjectURL(find("download").href);
    find("download").href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    const command = document.createElement("code");
    command.textContent = "mptcplab run playground.toml";
    find("usage").replaceChildren("The page simulates this text. The command line gives the same numbers, to the last bit: ", command);
    const links = files.map((name) => Object.assign(document.createElement("a"), { href: fileUrl(name), download: name, textContent: name }));
    find("files").replaceChildren(...(links.length ? ["Save these files of the walk beside it: ", ...links] : []));
  }

  #problem(message) {
    const place = find("problem");
    place.hidden = !message;
    place.textContent = message;
  }
}

// Names and numbers of subflows, as the scenario will have them.
function flowsOf({ topology, values }) {
  if (topology === "shared") {
    const tcp = Array.from({ length: values.tcp }, (_, i) => ({ name: `tcp-${i + 1}`, subflows: 1 }));
    return [{ name: "mp", subflows: 2 }, ...tcp];
  }
  if (topology === "triangle") return [1, 2, 3].map((i) => ({ name: `mp${i}`, subflows: 2 }));
  return [{ name: "mp", subflows: 2 }];
}

// Goodput of the multipath connections.
function connection(rows) {
  return total(rows.filter(({ name }) => name.startsWith("mp")));
}

// A link to a part of the page does not change the address, which holds the settings.
function placesKeepTheAddress() {
  for (const link of document.querySelectorAll("a[href^='#']")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const place = document.querySelector(link.hash);
      place.focus({ preventScroll: true });
      place.scrollIntoView();
    });
  }
}

// On a phone the bars stay at the top, and nothing that is scrolled to may end up behind them.
function clearOfBars() {
  const bars = document.querySelector(".bars");
  const gap = () => {
    const height = getComputedStyle(bars).position === "sticky" ? bars.offsetHeight : 0;
    document.documentElement.style.scrollPaddingTop = `${height + GAP_PX}px`;
  };
  new ResizeObserver(gap).observe(bars);
}

function fileUrl(name) {
  return `data:text/csv;charset=utf-8,${encodeURIComponent(FILES[name])}`;
}

function copier(button, text) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text())) ? "Copied" : "Copying is not allowed here";
    setTimeout(() => (button.textContent = label), 1500);
  });
}

// Pages from file:// may have no clipboard; the old way works there.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

async function gunzip(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

start().catch((error) => {
  const place = find("problem");
  place.hidden = false;
  place.textContent = `The simulator does not start: ${error.message}. It needs a browser from 2023 or later.`;
  throw error;
});
