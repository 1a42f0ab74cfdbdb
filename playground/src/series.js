// Samples on a grid of time that a screen can show, and the means of a run. Runs in the worker; a drawing needs no more.

const MAX_POINTS = 1200;
// Goodput over time is a mean over this time.
const SMOOTH_NS = 1_000_000_000;
// Values that the simulator has no number for.
const NO_RTT = 0;

/** The series of one run, filled chunk by chunk. Values that are not there yet are NaN. */
export class Series {
  /** @param scenario a resolved scenario @param {string[]} linkNames the links whose queues are drawn */
  constructor(scenario, linkNames) {
    this.scenario = scenario;
    const step = Math.max(scenario.sample_ns, Math.ceil(scenario.duration_ns / MAX_POINTS));
    this.stepNs = Math.ceil(step / scenario.sample_ns) * scenario.sample_ns;
    this.points = Math.floor(scenario.duration_ns / this.stepNs) + 1;
    this.subflows = scenario.flows.flatMap((flow, f) =>
      (flow.subflows ?? []).map((subflow, s) => ({ flow: f, subflow: s, flowName: flow.name, name: subflow.name, ...this.#subflowSeries() })),
    );
    this.links = linkNames.map((name) => {
      const index = scenario.links.findIndex((link) => link.name === name);
      if (index < 0) throw new Error(`no link ${name} in the scenario`);
      return { link: index, name, queue_pkts: this.#empty() };
    });
    this.totals = new Totals(scenario);
    /** Points that every series has. */
    this.filled = 0;
  }

  #empty() {
    return new Float64Array(this.points).fill(NaN);
  }

  #subflowSeries() {
    return { cwnd_pkts: this.#empty(), srtt_ms: this.#empty(), bytes: this.#empty(), goodput_mbps: this.#empty(), filled: 0, smoothed: 0 };
  }

  /** @param tables the columns of a chunk */
  add({ flow, subflow, link }) {
    const bySubflow = new Map(this.subflows.map((series) => [key(series.flow, series.subflow), series]));
    for (let row = 0; row < subflow.rows; row++) {
      const series = bySubflow.get(key(subflow.flow[row], subflow.subflow[row]));
      const point = this.#point(subflow.t_ns[row]);
      if (point < 0) continue;
      series.cwnd_pkts[point] = subflow.cwnd_pkts[row];
      series.srtt_ms[point] = subflow.srtt_us[row] === NO_RTT ? NaN : subflow.srtt_us[row] / 1000;
      series.bytes[point] = Number(subflow.rx_payload_bytes[row]);
      series.filled = point + 1;
      this.filled = Math.max(this.filled, series.filled);
    }
    const byLink = new Map(this.links.map((series) => [series.link, series]));
    for (let row = 0; row < link.rows; row++) {
      const series = byLink.get(link.link[row]);
      if (!series) continue;
      // The longest queue since the last point, which a single sample would miss.
      const point = Math.ceil(Number(link.t_ns[row]) / this.stepNs);
      if (point >= this.points) continue;
      const before = series.queue_pkts[point];
      series.queue_pkts[point] = Number.isNaN(before) ? link.queue_pkts[row] : Math.max(before, link.queue_pkts[row]);
    }
    this.totals.add(flow, subflow);
    this.#smooth();
  }

  /** The point of a time, or -1 between points. */
  #point(tNs) {
    const t = Number(tNs);
    return t % this.stepNs === 0 && t / this.stepNs < this.points ? t / this.stepNs : -1;
  }

  #smooth() {
    const width = Math.max(1, Math.round(SMOOTH_NS / this.stepNs));
    for (const series of this.subflows) {
      for (let point = series.smoothed; point < series.filled; point++) {
        const from = Math.max(0, point - width);
        const seconds = ((point - from) * this.stepNs) / 1e9;
        series.goodput_mbps[point] = seconds > 0 ? ((series.bytes[point] - series.bytes[from]) * 8) / seconds / 1e6 : NaN;
      }
      series.smoothed = series.filled;
    }
  }
}

/** Means over a run after its warm-up, as the metrics of the command line define them. */
class Totals {
  constructor(scenario) {
    this.scenario = scenario;
    this.flows = new Map();
    this.subflows = new Map();
  }

  add(flow, subflow) {
    for (let row = 0; row < flow.rows; row++) {
      this.#note(this.flows, flow.flow[row], flow.t_ns[row], () => ({ bytes: Number(flow.delivered_bytes[row]) }));
    }
    for (let row = 0; row < subflow.rows; row++) {
      this.#note(this.subflows, key(subflow.flow[row], subflow.subflow[row]), subflow.t_ns[row], () => ({
        bytes: Number(subflow.rx_payload_bytes[row]),
        rttSumUs: Number(subflow.rtt_sum_us[row]),
        rttCount: Number(subflow.rtt_count[row]),
        sent: Number(subflow.sent_pkts[row]),
        retransmitted: Number(subflow.retx_pkts[row]),
      }));
    }
  }

  // Counters at the end of the warm-up and at the newest sample.
  #note(counters, name, tNs, read) {
    const t = Number(tNs);
    if (t < this.scenario.warmup_ns) return;
    const known = counters.get(name);
    if (!known) counters.set(name, { start: read(), startNs: t, end: null, endNs: t });
    // The last sample of a run is needed, and some before it while the run goes on.
    else if (t >= known.endNs + 100_000_000 || t >= this.scenario.duration_ns) Object.assign(known, { end: read(), endNs: t });
  }

  /** Rows of the table of results: per flow its goodput, and per subflow its part, RTT and retransmissions. */
  rows() {
    return this.scenario.flows.map((flow, f) => {
      const all = this.flows.get(f);
      const goodput = all?.end ? ((all.end.bytes - all.start.bytes) * 8e3) / (all.endNs - all.startNs) : NaN;
      const counted = (flow.subflows ?? []).map((subflow, s) => ({ name: subflow.name, counter: this.subflows.get(key(f, s)) }));
      const arrived = counted.reduce((sum, { counter }) => sum + (counter?.end ? counter.end.bytes - counter.start.bytes : 0), 0);
      return { flow: f, name: flow.name, goodput, subflows: counted.map((one, s) => ({ subflow: s, ...means(one, arrived, goodput) })) };
    });
  }
}

function means({ name, counter }, arrived, goodput) {
  if (!counter?.end) return { name, goodput: NaN, rttMs: NaN, retransmitted: NaN };
  const { start, end } = counter;
  const difference = (field) => end[field] - start[field];
  return {
    name,
    goodput: arrived > 0 ? (difference("bytes") / arrived) * goodput : 0,
    rttMs: difference("rttSumUs") / difference("rttCount") / 1000,
    retransmitted: difference("retransmitted") / difference("sent"),
  };
}

function key(flow, subflow) {
  return flow * 1000 + subflow;
}
