// The data of the page: decoding of columns (see columns.py), and what of them a screen can show.

const byId = (id) => document.getElementById(id);
const bytesOf = (base64) => Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));

async function inflated(id, format) {
  const packed = new Blob([bytesOf(byId(id).textContent)]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream(format)));
}

class Columns {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // Sums of differences. The lowest bit of a difference is its sign; its bytes are in planes, the lowest one first.
  next(count, planes) {
    const found = new Float64Array(count);
    let value = 0;
    for (let i = 0; i < count; i++) {
      let folded = 0;
      for (let plane = planes - 1; plane >= 0; plane--) folded = folded * 256 + this.bytes[this.at + plane * count + i];
      value += folded % 2 ? -(folded + 1) / 2 : folded / 2;
      found[i] = value;
    }
    this.at += planes * count;
    return found;
  }
}

// The panels of a run, whose series get `t` (seconds) and `v` (integers of the trace).
async function unpackRun(number, run) {
  const columns = new Columns(new Uint8Array(await (await inflated("run-" + number, "deflate")).arrayBuffer()));
  return run.panels.map((panel) => ({
    ...panel,
    series: panel.series.map((series) => {
      const even = Array.isArray(series.times);
      const t = even ? new Float64Array(series.count) : columns.next(series.count, series.times);
      for (let i = 0; i < t.length; i++) t[i] = (even ? series.times[0] + i * series.times[1] : t[i]) / 1e6;
      return { ...series, t, v: columns.next(series.count, series.planes) };
    }),
  }));
}

// The first index whose time is not before `time`.
function firstFrom(t, time) {
  let low = 0, high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A line breaks where so many samples are missing.
const MISSING = 3;

// Points from x0 to x1, and one beyond each end: all samples if there are at most two per pixel, otherwise the smallest
// and the largest value of every pixel, in the order in which they occurred. `bin` is 0 or the width of a pixel.
function levels(series, scale, step, x0, x1, pixels) {
  const { t, v } = series;
  const from = Math.max(0, firstFrom(t, x0) - 1), to = Math.min(t.length, firstFrom(t, x1) + 2);
  const bin = to - from > 2 * pixels ? (x1 - x0) / pixels : 0;
  const x = [], y = [];
  const put = (i) => { x.push(t[i]); y.push(v[i] * scale); };
  let low = -1, high = -1, place = null;
  const flush = () => {
    if (low < 0) return;
    put(Math.min(low, high));
    if (low !== high) put(Math.max(low, high));
    low = high = -1;
  };
  for (let i = from; i < to; i++) {
    const missing = i > from && t[i] - t[i - 1] > MISSING * step;
    const now = bin ? Math.floor(t[i] / bin) : i;
    if (missing || now !== place) flush();
    if (missing) { x.push(t[i]); y.push(null); }
    place = now;
    if (low < 0 || v[i] < v[low]) low = i;
    if (high < 0 || v[i] > v[high]) high = i;
  }
  flush();
  return { x, y, bin };
}

// 1, 2 or 5 times a power of ten, at least `least`.
function rounded(least) {
  const size = 10 ** Math.floor(Math.log10(least) + 1e-9);
  return size * [1, 2, 5, 10].find((factor) => factor * size >= least * (1 - 1e-9));
}

// The growth of a counter as a rate over bins of equal width, at the middle of each.
function rates(series, scale, step, x0, x1, most) {
  const { t, v } = series;
  const bin = Math.max(rounded((x1 - x0) / most), step);
  const from = Math.max(0, firstFrom(t, x0 - 2 * bin) - 1), to = Math.min(t.length, firstFrom(t, x1 + 2 * bin) + 1);
  const x = [], y = [];
  let before = -1, place = null;
  for (let i = from; i < to; i++) {
    const now = Math.floor(t[i] / bin + 1e-6);
    if (now === place) continue;
    place = now;
    if (before >= 0) {
      const seconds = t[i] - t[before];
      x.push((t[i] + t[before]) / 2);
      y.push(seconds > MISSING * Math.max(bin, step) ? null : (v[i] - v[before]) * scale / (seconds * 1e6));
    }
    before = i;
  }
  return { x, y, bin };
}

const milliseconds = (seconds) => (seconds >= 1 ? Number(seconds.toPrecision(3)) + " s" : Number((1000 * seconds).toPrecision(3)) + " ms");
