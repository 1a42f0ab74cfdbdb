// The chart of goodput: a bar per configuration and connection, with a part per subflow.

const LEAST_LABELLED = 0.14;
// The part of the width that the plot has beside its names, the width of a letter, and half of a mark.
const PLOT_PART = 0.75, LETTER_PX = 7, MARK_PX = 5;

// Two digits behind the point, and of a small rate two significant ones, as in the tables (decimals in text.py).
const decimal = (rate) => rate.toFixed(rate > 0 ? Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(rate)))) : 2);

// A tint with an outline and a hatch; of several items at once, each property is a list.
function fillOf(items) {
  const each = (use) => items.map((item) => (item ? use(item) : "transparent"));
  const tints = each((item) => colour(item) + "55"), lines = each(colour);
  return { color: tints, line: { color: lines, width: 1.5 }, pattern: { shape: items.map((item) => item?.hatch ?? ""), bgcolor: tints, fgcolor: lines, fgopacity: 0.35, size: 7 } };
}

function drawGoodput() {
  const target = byId("goodput-plot");
  const { rows, unit, axis: title, top } = data.goodput;
  if (!rows.length) return;
  const shown = (value) => `${decimal(value ?? 0)} ${unit}<extra></extra>`;
  const points = rows.flatMap((row) => row.points);
  const labels = rows.map((row) => row.label);
  // A part without room for its label is found in a legend, and so is one whose label an interval or a mark would cross.
  const perPixel = top / (PLOT_PART * target.clientWidth);
  const isCrossed = (row, part) => {
    const at = row.parts.indexOf(part), before = row.parts.slice(0, at).reduce((sum, one) => sum + one.mean, 0);
    const middle = before + part.mean / 2, reach = (part.label.length * LETTER_PX / 2 + MARK_PX) * perPixel;
    const beside = (low, high) => high < middle - reach || low > middle + reach;
    return !beside(row.mean - (row.half ?? 0), row.mean + (row.half ?? 0)) || [...row.points, row.fair_share].some((value) => value !== null && !beside(value, value));
  };
  const labelled = (row, part) => row.parts.length > 1 && part.mean > LEAST_LABELLED * top && !isCrossed(row, part);
  const split = rows.filter((row) => row.parts.length > 1);
  const crowded = split.some((row) => row.parts.some((part) => !labelled(row, part)));
  const parts = new Map(crowded ? split.flatMap((row) => row.parts.map((part) => [part.label, part])) : []);
  const traces = [...parts].map(([label, part]) => ({
    type: "bar", orientation: "h", x: [null], y: [labels[0]], name: brief(label), showlegend: true, marker: fillOf([part]), hoverinfo: "skip",
  }));
  const slots = Math.max(...rows.map((row) => row.parts.length));
  for (let slot = 0; slot < slots; slot++) {
    const here = rows.map((row) => row.parts[slot]);
    traces.push({
      type: "bar", orientation: "h", y: labels, x: here.map((part) => part?.mean ?? 0), showlegend: false,
      width: 0.62, hovertemplate: here.map((part) => "%{customdata}: " + shown(part?.mean)), customdata: here.map((part) => part?.label ?? ""),
      text: here.map((part, i) => (part && labelled(rows[i], part) ? part.label : "")),
      textposition: "inside", insidetextanchor: "middle", textangle: 0, insidetextfont: { color: css("--ink") }, marker: fillOf(here),
    });
  }
  const marks = { type: "scatter", mode: "markers", showlegend: false };
  traces.push({
    ...marks, y: rows.flatMap((row) => row.points.map(() => row.label)), x: points,
    marker: { symbol: "circle-open", size: 7, color: css("--ink"), line: { width: 1.2 } }, opacity: 0.65,
    hovertemplate: points.map((value) => "one repetition: " + shown(value)),
  }, {
    ...marks, y: labels, x: rows.map((row) => row.mean), marker: { symbol: "line-ns-open", size: 13, color: css("--ink"), line: { width: 2 } },
    error_x: { type: "data", array: rows.map((row) => row.half ?? 0), visible: rows.some((row) => row.half !== null), color: css("--ink"), thickness: 2, width: 5 },
    hovertemplate: rows.map((row) => "mean: " + shown(row.mean)),
  }, {
    ...marks, y: labels, x: rows.map((row) => row.fair_share), marker: { symbol: "diamond-open", size: 10, color: css("--soft"), line: { width: 1.6 } },
    hovertemplate: rows.map((row) => "fair share: " + shown(row.fair_share)),
  });
  const longest = Math.max(0, ...[...parts.keys()].map((label) => brief(label).length));
  const above = 8 + 21 * Math.ceil((parts.size * (longest * 7 + 52)) / (target.clientWidth - 40));
  const short = (label) => (narrow() && label.length > 14 ? label.split(/(?<=,| ·) /).map(brief).join("<br>") : label);
  target.querySelector("svg.figure")?.remove();
  Plotly.react(target, traces, {
    ...baseLayout(), barmode: "stack", dragmode: false, width: target.clientWidth, uniformtext: { mode: "hide", minsize: narrow() ? 8 : 10 },
    height: 62 + above + rows.length * (narrow() ? 34 : 38), margin: { l: 10, r: 14, t: above, b: 44 }, showlegend: crowded, legend: legendAbove(),
    xaxis: { ...axis(), title: { text: title }, range: [0, top], fixedrange: true, exponentformat: "none", separatethousands: true },
    yaxis: {
      ...axis(), type: "category", categoryorder: "array", categoryarray: labels.slice().reverse(), fixedrange: true, showgrid: false, ticksuffix: " ",
      tickmode: "array", tickvals: labels, ticktext: labels.map(short),
    },
  }, config);
}
