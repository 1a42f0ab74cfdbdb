// The plots over time: the chosen runs and lines over one another, in a window that can be zoomed.

const view = { configs: new Set(), rep: "", subflows: new Set(), links: new Set(), from: 0, to: 0 };
// The panels of the runs that are shown, by the number of the run.
let unpacked = new Map();
// Labels stand at the ends of lines where there are few of them and they are short; otherwise in a legend.
const MOST_LABELS = 8, LONGEST_LABEL = 16, LABEL_GAP = 0.11;
// A line whose way up and down is longer than this, in widths of the plot, is too dense for dashes.
const CALM = 2.5;
const MOST_RATE_BINS = 400;

const colour = (item) => css(item.colour);
const chosenRuns = () => data.runs.map((run, number) => ({ ...run, number }))
  .filter((run) => view.configs.has(run.config) && (String(run.rep) === view.rep));
const isLink = (panel) => panel.name === "queue";
const end = () => Math.max(...data.runs.filter((run) => view.configs.has(run.config)).map((run) => run.duration), 0) || data.runs[0].duration;

async function unpackChosen() {
  const runs = chosenRuns();
  const found = new Map();
  for (const run of runs) found.set(run.number, unpacked.get(run.number) ?? await unpackRun(run.number, run));
  unpacked = found;
  return runs.map((run) => ({ ...run, panels: found.get(run.number) }));
}

// The lines of every panel, with their points in the window. Where several runs are shown, they get styles of their own.
function panelsOf(runs, pixels) {
  const several = runs.length > 1, panels = new Map(), subflows = new Set(), links = new Set();
  for (const run of runs) for (const panel of run.panels) {
    const chosen = panel.series.filter((series) => (isLink(panel) ? view.links : view.subflows).has(series.label));
    if (!chosen.length) continue;
    if (!panels.has(panel.name)) panels.set(panel.name, { ...panel, lines: [] });
    for (const series of chosen) {
      const points = panel.rate ? rates(series, panel.scale, run.step, view.from, view.to, MOST_RATE_BINS)
        : levels(series, panel.scale, run.step, view.from, view.to, pixels);
      const key = run.number * 1000 + series.index;
      (isLink(panel) ? links : subflows).add(key);
      panels.get(panel.name).lines.push({ ...points, key, series, run, style: series, label: several ? named(run, series, chosen.length) : series.label });
    }
  }
  const ranks = (keys) => new Map([...keys].sort((a, b) => a - b).map((key, rank) => [key, rank]));
  const places = { subflows: ranks(subflows), links: ranks(links) };
  if (several) for (const panel of panels.values()) for (const line of panel.lines) {
    line.style = data.styles[places[isLink(panel) ? "links" : "subflows"].get(line.key) % data.styles.length];
  }
  const inOrder = data.panels.filter((name) => panels.has(name)).map((name) => panels.get(name));
  for (const panel of inOrder) panel.top = topOf(panel);
  return inOrder;
}

const named = (run, series, lines) => (lines > 1 ? run.config + " " + series.label : run.config);

// End of an axis: what is seen after the warm-up, or else everything that is seen. Outliers of a panel that has them may
// leave it, as in the files of the figures: values that are FAR times higher than the usual ones, which are all but the
// highest hundredth of a line.
const FAR = 5, USUAL = 0.99;

function topOf(panel) {
  const all = panel.lines.map((line) => seenOf(line, view.from));
  const later = panel.lines.map((line) => seenOf(line, Math.max(view.from, line.run.warmup)));
  const lines = later.some((values) => values.some((value) => value > 0)) ? later : all;
  const usual = Math.max(0, ...lines.map((values) => values[Math.floor(USUAL * (values.length - 1))] ?? 0));
  const highest = (values) => values.findLast((value) => !panel.outliers || value <= FAR * usual) ?? 0;
  panel.highest = Math.max(0, ...all.map((values) => values.at(-1) ?? 0));
  return 1.05 * Math.max(0, ...lines.map(highest)) || 1;
}

// The values of a line from a time to the end of the window, in order of size.
const seenOf = ({ x, y }, from) => y.filter((value, i) => value !== null && x[i] >= from && x[i] <= view.to).sort((a, b) => a - b);

// Heights of the labels at the ends of lines, pushed apart, as fractions of the panel.
function labelHeights(panel) {
  const heights = panel.lines.map(({ x, y }) => {
    const seen = y.filter((value, i) => value !== null && x[i] >= view.from && x[i] <= view.to);
    const tail = seen.slice(-Math.max(1, Math.floor(seen.length / 20)));
    return Math.min(1, (tail.reduce((sum, value) => sum + value, 0) / (tail.length || 1)) / panel.top);
  });
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
  for (let i = 1; i < order.length; i++) heights[order[i]] = Math.max(heights[order[i]], heights[order[i - 1]] + LABEL_GAP);
  const over = order.length ? Math.max(0, heights[order.at(-1)] - 1) : 0;
  return heights.map((height) => height - over);
}

// Dashes only where a line goes up and down so little that they can be seen.
function strokeOf(line, panel, width, height) {
  let way = 0;
  for (let i = 1; i < line.y.length; i++) if (line.y[i] !== null && line.y[i - 1] !== null) way += Math.abs(line.y[i] - line.y[i - 1]);
  const calm = (way / panel.top) * height < CALM * width;
  return { color: colour(line.style), dash: calm ? line.style.dash : "solid", width: calm ? 1.6 : 1 };
}

// Drawing waits for data; only the newest of several calls draws.
let turn = 0;

async function drawTime() {
  const target = byId("time-plot"), mine = ++turn;
  const runs = await unpackChosen();
  if (mine !== turn) return;
  const small = narrow(), outer = target.clientWidth;
  const left = small ? 44 : 58;
  const panels = panelsOf(runs, Math.max(120, outer - left - 84));
  const labels = new Set(panels.flatMap((panel) => panel.lines.map((line) => line.label)));
  const longest = Math.max(0, ...[...labels].map((label) => brief(label).length));
  const crowded = panels.some((panel) => panel.lines.length > MOST_LABELS) || longest > (small ? 8 : LONGEST_LABEL);
  const right = crowded ? 14 : 14 + (small ? 6 : 7.5) * Math.max(4, longest);
  const width = outer - left - right;
  const rows = crowded ? Math.ceil((labels.size * (longest * 7 + 52)) / width) : 0;
  const high = small ? 165 : 190, top = 26 + 21 * rows;
  const height = panels.length * high + 34 + top;
  const layout = {
    ...baseLayout(), height, width: outer, margin: { l: left, r: right, t: top, b: 42 }, annotations: [], shapes: [], showlegend: crowded,
    legend: legendAbove(),
    xaxis: { ...axis(), title: { text: "Time (s)" }, range: [view.from, view.to], anchor: "y" + (panels.length > 1 ? panels.length : ""), fixedrange: small },
  };
  const traces = [], legend = new Set();
  panels.forEach((panel, index) => {
    const suffix = index ? String(index + 1) : "";
    const domain = [1 - (index + 1) / panels.length + 0.02, 1 - index / panels.length - 34 / height];
    const heights = labelHeights(panel);
    panel.lines.forEach((line, i) => {
      line.stroke = strokeOf(line, panel, width, (domain[1] - domain[0]) * (height - top - 42));
      traces.push({
        type: "scatter", mode: "lines", x: line.x, y: line.y, xaxis: "x", yaxis: "y" + suffix, name: brief(line.label), connectgaps: false,
        legendgroup: line.label, showlegend: crowded && !legend.has(line.label), meta: { panel: panel.name, config: line.run.config, rep: line.run.rep, line: line.series.label },
        line: line.stroke,
        hovertemplate: line.label + ": %{y:.4~g} " + panel.unit + " at %{x:.6~g} s<extra></extra>",
      });
      legend.add(line.label);
      if (!crowded) layout.annotations.push({
        xref: "paper", yref: "paper", x: 1, y: domain[0] + heights[i] * (domain[1] - domain[0]), xanchor: "left", yanchor: "middle", showarrow: false,
        text: " " + line.label, font: { color: colour(line.style), size: small ? 10 : 12 },
      });
    });
    layout["yaxis" + suffix] = { ...axis(), domain, range: [0, panel.top], fixedrange: true, nticks: 5 };
    layout.annotations.push({ xref: "paper", yref: "paper", x: 0, y: domain[1], xanchor: "left", yanchor: "bottom", showarrow: false, text: "<b>" + panel.title + "</b> (" + panel.unit + ")" });
  });
  if (!panels.length) layout.xaxis.anchor = "free";
  const warmup = Math.min(...runs.map((run) => run.warmup), Infinity);
  if (warmup > view.from && warmup < Infinity) layout.shapes.push({ type: "rect", xref: "x", yref: "paper", x0: view.from, x1: Math.min(warmup, view.to), y0: 0, y1: 1, fillcolor: css("--pipe"), opacity: 0.5, line: { width: 0 }, layer: "below" });
  target.querySelector("svg.figure")?.remove();
  await Plotly.react(target, traces, layout, config);
  describe(runs, panels);
}

// Says what is drawn: which runs, which time, and how fine.
function describe(runs, panels) {
  const seconds = (value) => Number(value.toFixed(3));
  const who = [...new Set(runs.map((run) => run.config))].join(", ");
  const parts = [];
  const drawn = panels.filter((panel) => !panel.rate).flatMap((panel) => panel.lines);
  const step = Math.max(...drawn.map((line) => Math.max(line.run.step, line.bin)), 0);
  if (drawn.length) {
    if (drawn.every((line) => !line.bin && line.run.exact)) parts.push("every sample, " + milliseconds(step) + " apart");
    else parts.push("smallest and largest value of every " + milliseconds(step) + (drawn.some((line) => line.bin) ? "; zoom in for more" : ", the finest on this page"));
  }
  const rate = panels.find((panel) => panel.rate);
  if (rate) parts.push("payload as mean over " + milliseconds(Math.max(...rate.lines.map((line) => line.bin))));
  for (const panel of panels) if (panel.highest > panel.top) {
    parts.push(`${panel.title}: values of up to ${Number(panel.highest.toPrecision(4)).toLocaleString("en")} ${panel.unit} are above the axis`);
  }
  const alike = panels.filter(({ lines }) => new Set(lines.map(({ stroke }) => stroke.color + stroke.dash)).size < lines.length);
  if (alike.length) parts.push(`some of the ${Math.max(...alike.map(({ lines }) => lines.length))} lines look alike, so point at one to read its name`);
  const without = [...view.configs].filter((name) => !runs.some((run) => run.config === name));
  const absent = without.length ? ` This page has no repetition ${Number(view.rep) + 1} of ${without.join(", ")}.` : "";
  byId("time-shown").textContent = (runs.length
    ? `${who}, repetition ${Number(view.rep) + 1}, ${seconds(view.from)} to ${seconds(view.to)} s: ${parts.join("; ") || "no line is chosen"}.`
    : view.configs.size ? "" : "No run is chosen.") + absent;
  setInput(byId("from"), seconds(view.from));
  setInput(byId("to"), seconds(view.to));
  byId("lines-count").textContent = [["subflows", view.subflows], ["links", view.links]]
    .filter(([name]) => byId("choose-" + name)).map(([name, set]) => `${set.size} of ${byId("choose-" + name).querySelectorAll("input").length} ${name}`).join(", ");
}

// A number that somebody is typing stays.
function setInput(input, value) {
  if (document.activeElement === input && input.value !== input.dataset.known) return;
  input.value = input.dataset.known = value;
}

// Shows a window of at least ten samples within the run.
function showWindow(from, to) {
  const last = end(), least = 10 * Math.min(...data.runs.map((run) => run.step));
  if (!(to > from)) [from, to] = [0, last];
  const size = Math.min(last, Math.max(to - from, least));
  view.from = Math.max(0, Math.min(from, last - size));
  view.to = view.from + size;
  return drawTime();
}

function checkboxes(id, title, names, set, redraw) {
  const box = document.createElement("fieldset");
  box.id = "choose-" + id;
  box.append(Object.assign(document.createElement("legend"), { textContent: title }));
  const list = Object.assign(document.createElement("div"), { className: "choices" });
  const inputs = names.map((name) => {
    const input = Object.assign(document.createElement("input"), { type: "checkbox", value: name, defaultChecked: set.has(name) });
    const label = document.createElement("label");
    label.append(input, " " + name);
    list.append(label);
    input.addEventListener("change", () => { set[input.checked ? "add" : "delete"](name); redraw(); });
    return input;
  });
  box.append(list);
  if (names.length > 2) for (const [text, all] of [["All", true], ["None", false]]) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.setAttribute("aria-label", text + ": " + title);
    button.addEventListener("click", () => {
      for (const input of inputs) { input.checked = all; set[all ? "add" : "delete"](input.value); }
      redraw();
    });
    box.append(button);
  }
  return box;
}

// Names of lines in the order of the runs that have them, and those that are shown at first.
function namesOf(wanted) {
  const names = new Map();
  for (const run of data.runs) for (const panel of run.panels) if (wanted(panel)) for (const series of panel.series)
    names.set(series.label, (names.get(series.label) ?? false) || series.shown);
  return names;
}

function setUpTime() {
  const configs = [...new Set(data.runs.map((run) => run.config))];
  view.configs.add(configs[0]);
  const rep = byId("rep");
  rep.replaceChildren(...[...new Set(data.runs.map((run) => run.rep))].sort((a, b) => a - b).map((number) => new Option(String(number + 1), number)));
  view.rep = rep.value;
  rep.addEventListener("change", () => { view.rep = rep.value; drawTime(); });
  const redraw = () => showWindow(view.from, view.to);
  if (configs.length > 1) byId("time-runs").prepend(checkboxes("configs", "Runs, over one another", configs, view.configs, redraw));
  for (const [id, title, wanted] of [["subflows", "Subflows", (panel) => !isLink(panel)], ["links", "Links", isLink]]) {
    const names = namesOf(wanted);
    for (const [name, shown] of names) if (shown) view[id].add(name);
    if (names.size > 1) byId("time-lines").append(checkboxes(id, title, [...names.keys()], view[id], drawTime));
  }
  byId("time-lines").hidden = !byId("time-lines").querySelector("fieldset");
  for (const id of ["from", "to"]) byId(id).addEventListener("change", (event) => {
    event.target.dataset.known = event.target.value;
    showWindow(Number(byId("from").value), Number(byId("to").value));
  });
  const size = () => view.to - view.from, middle = () => (view.from + view.to) / 2;
  const moves = {
    "zoom-in": () => [middle() - size() / 4, middle() + size() / 4], "zoom-out": () => [middle() - size(), middle() + size()],
    earlier: () => [view.from - size() / 2, view.to - size() / 2], later: () => [view.from + size() / 2, view.to + size() / 2], whole: () => [0, end()],
  };
  for (const [id, window] of Object.entries(moves)) byId(id).addEventListener("click", () => showWindow(...window()));
  byId("time-controls").hidden = false;
}

// Plotly reports what was drawn with the mouse.
function listenToZoom() {
  const target = byId("time-plot");
  target.on("plotly_relayout", (event) => {
    if ("xaxis.range[0]" in event) showWindow(event["xaxis.range[0]"], event["xaxis.range[1]"]);
  });
  target.on("plotly_doubleclick", () => showWindow(0, end()));
}
