"use strict";
// Replaces the two static figures of the page by interactive plots of the same series, in the same styles.
(() => {
  const GAP = 65535;
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const byId = (id) => document.getElementById(id);

  const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

  async function loadLibrary() {
    const packed = new Blob([bytesOf(byId("library").textContent.trim())]);
    const text = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  }

  function unpack(series) {
    const bytes = bytesOf(series.values);
    const raw = new DataView(bytes.buffer);
    const x = [], y = [];
    for (let i = 0; 2 * i < bytes.length; i++) {
      const value = raw.getUint16(2 * i, true);
      x.push(series.start + i * series.step);
      y.push(value === GAP ? null : value * series.scale);
    }
    return { x, y };
  }

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (item) => css(item.colour);
  const narrow = () => innerWidth < 640;

  function baseLayout() {
    return {
      paper_bgcolor: css("--page"), plot_bgcolor: css("--page"), showlegend: false,
      font: { color: css("--ink"), size: narrow() ? 11 : 13, family: getComputedStyle(document.body).fontFamily },
      hovermode: "closest", dragmode: narrow() ? false : "zoom",
    };
  }
  const axis = () => ({ gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true });
  const config = { displaylogo: false, responsive: true, displayModeBar: false, plotlyServerURL: "" };

  function drawGoodput() {
    const target = byId("goodput-plot");
    const { rows, unit, axis: title, top } = data.goodput;
    if (!rows.length) return;
    const labels = rows.map((row) => row.label);
    const traces = [];
    const slots = Math.max(...rows.map((row) => row.parts.length));
    for (let slot = 0; slot < slots; slot++) {
      const part = (row) => row.parts[slot];
      const paint = (use, none) => rows.map((row) => (part(row) ? use(part(row)) : none));
      traces.push({
        type: "bar", orientation: "h", y: labels, x: rows.map((row) => part(row)?.mean ?? 0),
        width: 0.62, hovertemplate: "%{customdata}: %{x:.2f} " + unit + "<extra></extra>",
        customdata: rows.map((row) => part(row)?.label ?? ""),
        text: rows.map((row) => (row.parts.length > 1 && part(row) && part(row).mean > 0.14 * row.mean ? part(row).label : "")),
        textposition: "inside", insidetextanchor: "middle", textangle: 0, insidetextfont: { color: css("--ink") },
        marker: {
          color: paint((item) => colour(item) + "55", "transparent"),
          line: { color: paint(colour, "transparent"), width: 1.5 },
          pattern: { shape: rows.map((row) => part(row)?.hatch ?? ""), bgcolor: paint((item) => colour(item) + "55", "transparent"), fgcolor: paint(colour, css("--line")), fgopacity: 0.35, size: 7 },
        },
      });
    }
    traces.push({
      type: "scatter", mode: "markers", y: rows.flatMap((row) => row.points.map(() => row.label)), x: rows.flatMap((row) => row.points),
      marker: { symbol: "circle-open", size: 7, color: css("--ink"), line: { width: 1.2 } }, opacity: 0.65,
      hovertemplate: "one repetition: %{x:.2f} " + unit + "<extra></extra>",
    }, {
      type: "scatter", mode: "markers", y: labels, x: rows.map((row) => row.mean), marker: { symbol: "line-ns-open", size: 13, color: css("--ink"), line: { width: 2 } },
      error_x: { type: "data", array: rows.map((row) => row.half ?? 0), visible: rows.some((row) => row.half !== null), color: css("--ink"), thickness: 2, width: 5 },
      hovertemplate: "mean: %{x:.2f} " + unit + "<extra></extra>",
    }, {
      type: "scatter", mode: "markers", y: labels, x: rows.map((row) => row.fair_share), marker: { symbol: "diamond-open", size: 10, color: css("--soft"), line: { width: 1.6 } },
      hovertemplate: "fair share: %{x:.2f} " + unit + "<extra></extra>",
    });
    target.replaceChildren();
    Plotly.react(target, traces, {
      ...baseLayout(), barmode: "stack", dragmode: false, height: 70 + rows.length * (narrow() ? 34 : 38), margin: { l: 10, r: 14, t: 8, b: 44 },
      xaxis: { ...axis(), title: { text: title }, range: [0, top], fixedrange: true },
      yaxis: { ...axis(), type: "category", categoryorder: "array", categoryarray: labels.slice().reverse(), fixedrange: true, showgrid: false, ticksuffix: " " },
    }, config);
  }

  function drawTime() {
    const target = byId("time-plot");
    const run = data.runs.find((r) => r.config === byId("config").value && String(r.rep) === byId("rep").value);
    if (!run) return;
    const panels = run.panels;
    const height = panels.length * (narrow() ? 165 : 190) + 60;
    const layout = {
      ...baseLayout(), height, margin: { l: narrow() ? 44 : 58, r: narrow() ? 58 : 84, t: 26, b: 42 }, annotations: [], shapes: [],
      xaxis: { ...axis(), title: { text: "Time (s)" }, range: [0, run.duration], anchor: "y" + (panels.length > 1 ? panels.length : ""), fixedrange: narrow() },
    };
    const traces = [];
    const crowded = panels.some((panel) => panel.series.length > 8);
    if (crowded) Object.assign(layout, { showlegend: true, legend: { orientation: "h", y: -0.08, yanchor: "top" } });
    panels.forEach((panel, index) => {
      const suffix = index ? String(index + 1) : "";
      const room = 1 / panels.length;
      const domain = [1 - (index + 1) * room + 0.02, 1 - index * room - 34 / height];
      for (const s of panel.series) {
        traces.push({
          type: "scatter", mode: "lines", ...unpack(s), xaxis: "x", yaxis: "y" + suffix, name: s.label, connectgaps: false, showlegend: crowded && index === 0,
          line: { color: colour(s), dash: s.dash, width: s.dash === "solid" ? 1.3 : 1.6 },
          hovertemplate: s.label + ": %{y:.4~g} " + panel.unit + " at %{x:.1f} s<extra></extra>",
        });
        if (panel.series.length <= 8) layout.annotations.push({
          xref: "paper", yref: "paper", x: 1, y: domain[0] + s.label_at * (domain[1] - domain[0]), xanchor: "left", yanchor: "middle", showarrow: false, text: " " + s.label, font: { color: colour(s), size: narrow() ? 10 : 12 },
        });
      }
      layout["yaxis" + suffix] = { ...axis(), domain, range: [0, panel.top], fixedrange: true, nticks: 5 };
      layout.annotations.push({
        xref: "paper", yref: "paper", x: 0, y: domain[1], xanchor: "left", yanchor: "bottom", showarrow: false, text: "<b>" + panel.title + "</b> (" + panel.unit + ")",
      });
    });
    if (run.warmup > 0) layout.shapes.push({ type: "rect", xref: "x", yref: "paper", x0: 0, x1: run.warmup, y0: 0, y1: 1, fillcolor: css("--pipe"), opacity: 0.5, line: { width: 0 }, layer: "below" });
    target.querySelector("svg.figure")?.remove();
    Plotly.react(target, traces, layout, config);
  }

  function fill(select, values, describe) {
    select.replaceChildren(...values.map((value) => new Option(describe(value), value)));
  }

  function setUpControls() {
    const configs = [...new Set(data.runs.map((run) => run.config))];
    const reps = () => data.runs.filter((run) => run.config === byId("config").value).map((run) => run.rep);
    fill(byId("config"), configs, (name) => name);
    fill(byId("rep"), reps(), (rep) => String(rep + 1));
    byId("config").addEventListener("change", () => {
      const before = byId("rep").value;
      fill(byId("rep"), reps(), (rep) => String(rep + 1));
      if (reps().map(String).includes(before)) byId("rep").value = before;
      drawTime();
    });
    byId("rep").addEventListener("change", drawTime);
    byId("config").disabled = byId("rep").disabled = false;
  }

  function drawAll() {
    drawGoodput();
    if (data.runs.length) drawTime();
  }

  async function start() {
    try {
      await loadLibrary();
    } catch (error) {
      console.warn("the figures stay static: " + error);
      return;
    }
    if (data.runs.length) setUpControls();
    drawAll();
    for (const hint of document.querySelectorAll(".live")) hint.hidden = false;
    dark.addEventListener("change", drawAll);
    let wasNarrow = narrow();
    addEventListener("resize", () => { if (narrow() !== wasNarrow) { wasNarrow = narrow(); drawAll(); } });
  }
  // Two frames later the text and the static figures are on screen.
  requestAnimationFrame(() => requestAnimationFrame(start));
})();
