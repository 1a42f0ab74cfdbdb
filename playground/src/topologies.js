// The networks of the page: their settings, and the scenario that they make. The scenario's text is all that the simulator
// gets, and what the command line gets from somebody who copies it.

// The steps of the sliders. A link may name any number between the smallest and the largest.
const RATES = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50];
const DELAYS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200];
const LOSSES = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5];
const QUEUES = [5, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1000];
const EXTRA_DELAYS = [0, 1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100];

const RATE = { unit: "Mbit/s", steps: RATES, term: "rate" };
const DELAY = { unit: "ms", steps: DELAYS, term: "delay" };
const LOSS = { unit: "%", steps: LOSSES, term: "loss" };
const QUEUE = { unit: "packets", steps: QUEUES, whole: true, term: "queueLimit" };

function link(key, group, { rate, delay, loss, queue }) {
  const settings = [];
  if (rate !== undefined) settings.push({ key: `${key}-rate`, group, label: "Rate", value: rate, ...RATE });
  if (delay !== undefined) settings.push({ key: `${key}-delay`, group, label: "Delay", value: delay, ...DELAY });
  if (loss !== undefined) settings.push({ key: `${key}-loss`, group, label: "Random loss", value: loss, ...LOSS });
  if (queue !== undefined) settings.push({ key: `${key}-queue`, group, label: "Queue", value: queue, ...QUEUE });
  return settings;
}

// Bytes of a full packet on a link: 1500 and the layer-2 header.
const PACKET_BITS = 1514 * 8;

/** Round-trip time and bandwidth-delay product of a path of one slow link, as text. The scenario format rounds up. */
function pathFacts(rateMbps, rttMs) {
  const packets = Math.ceil(Math.round(rateMbps * 1000 * rttMs) / PACKET_BITS);
  return `Base RTT ${rttMs} ms, BDP ${packets} ${packets === 1 ? "packet" : "packets"}`;
}

function tomlLink(name, from, to, entries) {
  return [`[links.${name}]`, `from = "${from}"`, `to = "${to}"`, ...entries].join("\n");
}

function slow(values, key) {
  return [
    `rate = "${values[`${key}-rate`]} Mbit/s"`,
    `delay = "${values[`${key}-delay`]} ms"`,
    `loss = "${values[`${key}-loss`]} %"`,
    `queue = "${values[`${key}-queue`]} packets"`,
  ];
}

// A link that never limits anybody: it only adds delay.
function fast(delayMs) {
  return [`rate = "1000 Mbit/s"`, `delay = "${delayMs} ms"`, `queue = "1000 packets"`];
}

const privatePaths = {
  title: "Two private paths",
  summary: "One connection alone on two paths.",
  question: "Two private paths, each with its own rate, delay, loss and queue",
  settings: [
    ...link("p1", "Path 1", { rate: 10, delay: 10, loss: 0.1, queue: 100 }),
    ...link("p2", "Path 2", { rate: 5, delay: 25, loss: 0.2, queue: 100 }),
  ],
  facts: (v) => ({
    "Path 1": pathFacts(v["p1-rate"], 2 * v["p1-delay"]),
    "Path 2": pathFacts(v["p2-rate"], 2 * v["p2-delay"]),
  }),
  queues: ["path1", "path2"],
  labels: { path1: "path 1", path2: "path 2" },
  subflowLabel: (flow, index) => `path ${index + 1}`,
  capacity: (v) => v["p1-rate"] + v["p2-rate"],
  reference: () => null,
  body: (v) => [
    tomlLink("path1", "S", "D", slow(v, "p1")),
    tomlLink("path2", "S", "D", slow(v, "p2")),
    `[flows.mp]\npaths = [["path1"], ["path2"]]`,
  ],
  files: () => [],
};

const sharedBottleneck = {
  title: "Shared bottleneck",
  summary: "Both subflows and ordinary TCP through one link.",
  question: "Two subflows and ordinary TCP connections through one bottleneck",
  settings: [
    ...link("neck", "Bottleneck", { rate: 20, delay: 10, loss: 0, queue: 60 }),
    { key: "extra", group: "Flows", label: "Extra delay of subflow 2", value: 0, unit: "ms", steps: EXTRA_DELAYS, term: "delay" },
    { key: "tcp", group: "Flows", label: "TCP connections (Reno)", value: 1, unit: "", steps: [1, 2, 3, 4, 5, 6], whole: true, term: "reno" },
  ],
  facts: (v) => ({ Bottleneck: pathFacts(v["neck-rate"], 2 * v["neck-delay"]) }),
  queues: ["neck"],
  labels: { neck: "bottleneck" },
  subflowLabel: (flow, index) => (flow === "mp" ? `subflow ${index + 1}` : flow.replace("-", " ").replace("tcp", "TCP")),
  capacity: (v) => v["neck-rate"],
  reference: (v) => ({ value: v["neck-rate"] / (1 + v.tcp), name: "fair share of the connection" }),
  body: (v) => [
    tomlLink("near1", "S", "A", fast(0)),
    tomlLink("near2", "S", "A", fast(v.extra)),
    tomlLink("neck", "A", "D", slow(v, "neck")),
    `[flows.mp]\npaths = [["near1", "neck"], ["near2", "neck"]]\nstart = "uniform(0 s, 1 s)"`,
    `[flows.tcp]\npath = ["neck"]\ncount = ${v.tcp}\ncc = "reno"\nstart = "uniform(0 s, 1 s)"`,
  ],
  files: () => [],
};

const walk = {
  title: "Wi-Fi and LTE on a walk",
  summary: "Wi-Fi fades, is lost from 30 to 36 s, and returns.",
  question: "A walk out of the reach of the Wi-Fi and back, with a mobile network",
  settings: [
    ...link("wifi", "Wi-Fi (11 Mbit/s at best)", { delay: 15, queue: 100 }),
    ...link("lte", "LTE (5.5 Mbit/s at best)", { delay: 30, queue: 200 }),
    { key: "walk", group: "Walk", label: "Which walk", value: 1, unit: "", steps: [1, 2, 3, 4, 5], whole: true, term: "walk" },
  ],
  facts: (v) => ({
    "Wi-Fi (11 Mbit/s at best)": pathFacts(11, 2 * v["wifi-delay"]),
    "LTE (5.5 Mbit/s at best)": pathFacts(5.5, 2 * v["lte-delay"]),
    Walk: "Rate and random loss follow the walk: a table with a row for every 100 ms.",
  }),
  queues: ["wifi", "lte"],
  labels: { wifi: "Wi-Fi", lte: "LTE" },
  subflowLabel: (flow, index) => ["Wi-Fi", "LTE"][index],
  capacity: () => 16.5,
  reference: () => null,
  body: (v) => [
    tomlLink("wifi", "server", "phone", [
      `rate = "11 Mbit/s"`,
      `delay = "${v["wifi-delay"]} ms"`,
      `queue = "${v["wifi-queue"]} packets"`,
      `schedule_file = "wifi-${v.walk - 1}.csv"`,
      `reverse = { rate = "1 Mbit/s", queue = "100 packets", schedule = [] }`,
    ]),
    tomlLink("lte", "server", "phone", [
      `rate = "5.5 Mbit/s"`,
      `delay = "${v["lte-delay"]} ms"`,
      `queue = "${v["lte-queue"]} packets"`,
      `schedule_file = "cellular-${v.walk - 1}.csv"`,
      `reverse = { rate = "1.5 Mbit/s", queue = "460 packets", schedule = [] }`,
    ]),
    `[flows.mp]\npaths = [["wifi"], ["lte"]]`,
  ],
  files: (v) => [`wifi-${v.walk - 1}.csv`, `cellular-${v.walk - 1}.csv`],
};

const CORNERS = ["N1", "N2", "N3"];

const triangle = {
  title: "The triangle",
  summary: "Three connections, each with a short and a long path.",
  question: "Three connections on a triangle, each with a one-hop and a two-hop path",
  settings: [
    { key: "rate1", group: "Links", label: "Rate of link 1", value: 12, ...RATE },
    { key: "rate2", group: "Links", label: "Rate of link 2", value: 12, ...RATE },
    { key: "rate3", group: "Links", label: "Rate of link 3", value: 12, ...RATE },
    ...link("all", "Links", { delay: 25, loss: 0, queue: 100 }).map((one) => ({ ...one, label: `${one.label} of each` })),
  ],
  facts: (v) => ({ Links: `Base RTT ${4 * v["all-delay"]} ms on both paths` }),
  queues: ["link1", "link2", "link3"],
  labels: { link1: "link 1", link2: "link 2", link3: "link 3" },
  subflowLabel: (flow, index) => `${flow.replace("mp", "conn ")} ${["short", "long"][index]}`,
  // If every connection used only its short path.
  capacity: (v) => v.rate1 + v.rate2 + v.rate3,
  reference: () => null,
  body: (v) => {
    const all = [`delay = "${v["all-delay"]} ms"`, `loss = "${v["all-loss"]} %"`, `queue = "${v["all-queue"]} packets"`];
    const links = CORNERS.map((corner, i) =>
      tomlLink(`link${i + 1}`, corner, CORNERS[(i + 1) % 3], [`rate = "${v[`rate${i + 1}`]} Mbit/s"`, ...all]),
    );
    const flows = CORNERS.flatMap((corner, i) => {
      const [one, next, last] = [0, 1, 2].map((step) => ((i + step) % 3) + 1);
      const end = CORNERS[(i + 1) % 3];
      return [
        `# Connection ${one}: over link ${one}, or over links ${next} and ${last}. The first link gives both paths the same RTT.`,
        tomlLink(`short${one}`, `S${one}`, corner, fast(v["all-delay"])),
        tomlLink(`long${one}`, `S${one}`, end, fast(0)),
        tomlLink(`end${one}`, end, `D${one}`, fast(0)),
        tomlLink(`around${one}`, corner, `D${one}`, fast(0)),
        `[flows.mp${one}]\npaths = [["short${one}", "link${one}", "end${one}"], ["long${one}", "link${next}", "link${last}", "around${one}"]]\nstart = "uniform(0 s, 1 s)"`,
      ];
    });
    return [...links, ...flows];
  },
  files: () => [],
};

export const TOPOLOGIES = { private: privatePaths, shared: sharedBottleneck, walk, triangle };

// Metrics begin here, when slow start is over.
const WARMUP_S = 10;

/** The scenario of a state: its text, and the axes of the run of each side. */
export function scenario(state) {
  const topology = TOPOLOGIES[state.topology];
  const files = topology.files(state.values);
  const sides = [state.a, state.b].filter(({ cc }) => cc !== "none");
  const [cc, scheduler] = ["cc", "scheduler"].map((key) => [...new Set(sides.map((side) => side[key]))]);
  const axes = (side) => ({
    ...(cc.length > 1 && { cc: side.cc }),
    ...(scheduler.length > 1 && { scheduler: side.scheduler }),
  });
  const head = [
    "# Made in the playground of mptcplab, which shows this scenario's own numbers. To simulate it on a computer:",
    "#",
    "#     mptcplab run playground.toml",
    ...(files.length ? ["#", `# Save ${files.join(" and ")} beside it; the page offers these files as well.`] : []),
    ...(cc.length > 1 && scheduler.length > 1 ? ["#", "# Each algorithm is run with each scheduler, and the page shows two of these four runs."] : []),
    "",
    `title = "${topology.question}"`,
    `duration = "${state.durationS} s"`,
    `warmup = "${WARMUP_S} s"`,
    `seed = ${state.seed}`,
    `cc = ${list(cc)}`,
    `scheduler = ${list(scheduler)}`,
  ].join("\n");
  const text = [head, ...topology.body(state.values)].join("\n\n") + "\n";
  return { text, axes, files };
}

function list(names) {
  const quoted = names.map((name) => `"${name}"`);
  return quoted.length > 1 ? `[${quoted.join(", ")}]` : quoted[0];
}
