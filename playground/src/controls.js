// The form: networks, the two candidates, sliders, and what belongs to a run. It changes the state and says that it changed.

import { diagram } from "./diagrams.js";
import { badge } from "./shares.js";
import { DURATIONS_S, NONE, initial } from "./state.js";
import { labelTerm, term } from "./terms.js";
import { TOPOLOGIES } from "./topologies.js";

const find = (id) => document.getElementById(id);

export class Controls {
  /** @param catalog of the build @param {() => void} onChange */
  constructor(catalog, onChange) {
    this.catalog = catalog;
    this.onChange = onChange;
    this.#networks();
    this.#sides();
    this.#run();
  }

  /** Shows a state and changes it from now on. */
  show(state) {
    this.state = state;
    for (const input of document.querySelectorAll("input[name=network]")) input.checked = input.value === state.topology;
    for (const side of ["a", "b"]) {
      find(`${side}-cc`).value = state[side].cc;
      find(`${side}-scheduler`).value = state[side].scheduler;
      this.#describe(side);
    }
    find("seed").value = state.seed;
    find("duration").value = state.durationS;
    this.#sliders();
    this.#facts();
  }

  #networks() {
    const cards = Object.entries(TOPOLOGIES).map(([key, { title, summary }]) => {
      const card = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "radio", name: "network", value: key });
      input.addEventListener("change", () => this.#network(key));
      const name = document.createElement("strong");
      name.textContent = title;
      const about = document.createElement("small");
      about.textContent = summary;
      card.append(input);
      card.insertAdjacentHTML("beforeend", diagram(key));
      card.append(name, about);
      return card;
    });
    find("networks").replaceChildren(...cards);
  }

  // Another network has other settings; the candidates stay.
  #network(topology) {
    const { a, b, seed, durationS } = this.state;
    this.show({ ...initial(topology), a, b, seed, durationS });
    this.onChange();
  }

  #sides() {
    const sides = ["a", "b"].map((side) => {
      const root = document.createElement("div");
      root.setAttribute("role", "group");
      root.setAttribute("aria-label", `Candidate ${side.toUpperCase()}`);
      const algorithms = this.catalog.algorithms.map(({ name, title }) => [name, name, title]);
      if (side === "b") algorithms.push([NONE, "none", "nothing to compare with"]);
      const cc = select(`${side}-cc`, algorithms, (value) => this.#choose(side, "cc", value));
      const about = document.createElement("p");
      about.className = "title";
      about.id = `${side}-title`;
      const schedulers = this.catalog.schedulers.map(({ name, title }) => [name, name, title]);
      const scheduler = select(`${side}-scheduler`, schedulers, (value) => this.#choose(side, "scheduler", value));
      root.append(badge(side), labelled("Congestion control", "cc", cc), cc, about, labelled("Scheduler", "scheduler", scheduler), scheduler);
      return root;
    });
    find("sides").replaceChildren(...sides);
  }

  #choose(side, key, value) {
    this.state[side] = { ...this.state[side], [key]: value };
    this.#describe(side);
    this.onChange();
  }

  #describe(side) {
    const { cc } = this.state[side];
    find(`${side}-title`).textContent = this.catalog.algorithms.find(({ name }) => name === cc)?.title ?? "";
    find(`${side}-scheduler`).disabled = cc === NONE;
  }

  #run() {
    const duration = find("duration");
    duration.replaceChildren(...DURATIONS_S.map((seconds) => new Option(`${seconds} s`, seconds)));
    duration.addEventListener("change", () => this.#set("durationS", Number(duration.value)));
    const seed = find("seed");
    seed.addEventListener("change", () => {
      const value = Math.trunc(Number(seed.value));
      const valid = seed.value.trim() !== "" && value >= 0 && value <= 2 ** 32 - 1;
      if (valid) this.#set("seed", value);
      seed.value = this.state.seed;
    });
    find("another").addEventListener("click", () => {
      this.#set("seed", (this.state.seed + 1) % 2 ** 32);
      seed.value = this.state.seed;
    });
    find("reset").addEventListener("click", () => {
      this.show(initial(this.state.topology));
      this.onChange();
    });
  }

  #set(key, value) {
    this.state[key] = value;
    this.onChange();
  }

  #sliders() {
    const { settings } = TOPOLOGIES[this.state.topology];
    const groups = [...new Set(settings.map(({ group }) => group))];
    const cards = groups.map((group) => {
      const card = document.createElement("fieldset");
      card.className = "card";
      const legend = document.createElement("legend");
      legend.textContent = group;
      const facts = document.createElement("p");
      facts.className = "facts";
      facts.dataset.group = group;
      card.append(legend, ...settings.filter((one) => one.group === group).map((one) => this.#slider(one)), facts);
      return card;
    });
    find("settings").replaceChildren(...cards);
  }

  #slider({ key, label, unit, steps, term: word, group }) {
    const value = this.state.values[key];
    // A link may hold a value between two steps.
    const values = [...new Set([...steps, value])].sort((a, b) => a - b);
    const root = document.createElement("div");
    root.className = "slider";
    const input = Object.assign(document.createElement("input"), { type: "range", id: key, min: 0, max: values.length - 1, step: 1 });
    input.value = values.indexOf(value);
    input.setAttribute("aria-label", `${label}, ${group}`);
    // Screen readers get it as the slider's text; an <output> would be read a second time.
    const output = document.createElement("span");
    output.className = "value";
    output.setAttribute("aria-hidden", "true");
    const tell = () => {
      output.textContent = `${this.state.values[key]} ${unit}`.trim();
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      this.state.values[key] = values[input.valueAsNumber];
      tell();
      this.#facts();
      this.onChange();
    });
    tell();
    const name = document.createElement("label");
    name.htmlFor = key;
    name.append(labelTerm(word, label, input));
    root.append(name, output, input);
    return root;
  }

  #facts() {
    const facts = TOPOLOGIES[this.state.topology].facts(this.state.values);
    for (const place of document.querySelectorAll(".facts")) {
      const text = facts[place.dataset.group] ?? "";
      place.replaceChildren(...withTerms(text));
      place.hidden = !text;
    }
  }
}

// "Base RTT" and "BDP" get their explanations.
function withTerms(text) {
  const words = { "Base RTT": "baseRtt", BDP: "bdp" };
  return text.split(/(Base RTT|BDP)/).map((part) => (words[part] ? term(words[part], part) : part));
}

function select(id, entries, onChoose) {
  const root = Object.assign(document.createElement("select"), { id });
  root.append(...entries.map(([value, text, title]) => Object.assign(new Option(text, value), { title })));
  root.addEventListener("change", () => onChoose(root.value));
  return root;
}

function labelled(text, word, control) {
  const label = document.createElement("label");
  label.htmlFor = control.id;
  label.append(labelTerm(word, text, control));
  return label;
}
