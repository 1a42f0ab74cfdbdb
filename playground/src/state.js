// What the page shows, as a plain object and as the fragment of a link. A link holds only what differs from the start.

import { TOPOLOGIES } from "./topologies.js";

const MAX_SEED = 2 ** 32 - 1;
export const NONE = "none";
export const DURATIONS_S = [20, 60, 180];

export const DEFAULTS = {
  topology: "private",
  a: { cc: "lia", scheduler: "minrtt" },
  b: { cc: "olia", scheduler: "minrtt" },
  seed: 1,
  durationS: 60,
};

/** The state at the start, or of another topology. */
export function initial(topology = DEFAULTS.topology) {
  const settings = TOPOLOGIES[topology].settings;
  const values = Object.fromEntries(settings.map(({ key, value }) => [key, value]));
  return { ...structuredClone(DEFAULTS), topology, values };
}

/** The fragment of a state, without `#`. */
export function toFragment(state) {
  const start = initial(state.topology);
  const words = new URLSearchParams();
  const note = (key, value, usual) => {
    if (value !== usual) words.set(key, String(value));
  };
  note("net", state.topology, DEFAULTS.topology);
  for (const side of ["a", "b"]) {
    note(side, state[side].cc, DEFAULTS[side].cc);
    note(`${side}-scheduler`, state[side].scheduler, DEFAULTS[side].scheduler);
  }
  note("seed", state.seed, DEFAULTS.seed);
  note("duration", state.durationS, DEFAULTS.durationS);
  for (const { key } of TOPOLOGIES[state.topology].settings) note(key, state.values[key], start.values[key]);
  return words.toString();
}

/**
 * The state that a fragment describes. What it gets wrong is left as at the start, and named in `problems`.
 * @param {string} fragment with or without `#`
 * @param {{algorithms: {name: string}[], schedulers: {name: string}[]}} catalog
 */
export function fromFragment(fragment, catalog) {
  const words = new Map(new URLSearchParams(fragment.replace(/^#/, "")));
  const problems = [];
  const take = (key, read, describe) => {
    const text = words.get(key);
    words.delete(key);
    if (text === undefined) return undefined;
    const value = read(text);
    if (value === undefined) problems.push(`${key}=${text} (${describe})`);
    return value;
  };
  const oneOf = (names) => (text) => (names.includes(text) ? text : undefined);
  const topologies = Object.keys(TOPOLOGIES);
  const state = initial(take("net", oneOf(topologies), `one of ${topologies.join(", ")}`));
  const algorithms = catalog.algorithms.map(({ name }) => name);
  const schedulers = catalog.schedulers.map(({ name }) => name);
  for (const side of ["a", "b"]) {
    const names = side === "b" ? [...algorithms, NONE] : algorithms;
    state[side].cc = take(side, oneOf(names), "an algorithm of this build") ?? state[side].cc;
    const scheduler = take(`${side}-scheduler`, oneOf(schedulers), "a scheduler of this build");
    state[side].scheduler = scheduler ?? state[side].scheduler;
  }
  state.seed = take("seed", number(0, MAX_SEED, true), `a whole number up to ${MAX_SEED}`) ?? state.seed;
  const durations = DURATIONS_S.map(String);
  state.durationS = Number(take("duration", oneOf(durations), `one of ${durations.join(", ")}`) ?? state.durationS);
  for (const { key, steps, whole } of TOPOLOGIES[state.topology].settings) {
    const [min, max] = [steps[0], steps.at(-1)];
    const value = take(key, number(min, max, whole), `a number from ${min} to ${max}`);
    state.values[key] = value ?? state.values[key];
  }
  for (const key of words.keys()) problems.push(`${key} (no such setting)`);
  return { state, problems };
}

function number(min, max, whole) {
  return (text) => {
    const value = Number(text);
    return text.trim() !== "" && value >= min && value <= max && (!whole || Number.isInteger(value)) ? value : undefined;
  };
}
