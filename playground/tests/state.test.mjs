import assert from "node:assert/strict";
import test from "node:test";
import { fromFragment, initial, toFragment } from "../src/state.js";
import { TOPOLOGIES, scenario } from "../src/topologies.js";

const CATALOG = { algorithms: [{ name: "lia" }, { name: "olia" }, { name: "reno" }], schedulers: [{ name: "minrtt" }, { name: "blest" }] };

test("a link holds only what differs from the start", () => {
  assert.equal(toFragment(initial()), "");
  const state = initial("shared");
  state.b = { cc: "reno", scheduler: "blest" };
  state.values.tcp = 3;
  assert.equal(toFragment(state), "net=shared&b=reno&b-scheduler=blest&tcp=3");
});

test("a link brings back every state", () => {
  for (const topology of Object.keys(TOPOLOGIES)) {
    const state = { ...initial(topology), a: { cc: "reno", scheduler: "blest" }, b: { cc: "none", scheduler: "minrtt" }, seed: 17, durationS: 180 };
    TOPOLOGIES[topology].settings.forEach(({ key, steps }, i) => (state.values[key] = steps[i % steps.length]));
    assert.deepEqual(fromFragment(`#${toFragment(state)}`, CATALOG), { state, problems: [] });
  }
});

test("a value between two steps of a slider is kept", () => {
  assert.equal(fromFragment("p1-rate=7.25", CATALOG).state.values["p1-rate"], 7.25);
});

test("what a link gets wrong is named and left as at the start", () => {
  const wrong = "net=ring&a=vegas&b-scheduler=best&seed=1.5&duration=61&p1-rate=500&p1-queue=7.5&p2-loss=&colour=red";
  const { state, problems } = fromFragment(wrong, CATALOG);
  assert.deepEqual(state, initial());
  assert.equal(problems.length, 9);
  assert.match(problems.join("\n"), /p1-rate=500 \(a number from 1 to 50\)/);
  assert.match(problems.join("\n"), /colour \(no such setting\)/);
});

test("every default is a step of its slider", () => {
  for (const { settings } of Object.values(TOPOLOGIES)) {
    for (const { key, steps, value } of settings) assert.ok(steps.includes(value), `${key}: ${value}`);
  }
});

test("a scenario has an axis only where the candidates differ", () => {
  const state = initial();
  assert.deepEqual(scenario(state).axes(state.b), { cc: "olia" });
  state.b = { cc: "lia", scheduler: "blest" };
  assert.deepEqual(scenario(state).axes(state.b), { scheduler: "blest" });
  assert.match(scenario(state).text, /\ncc = "lia"\nscheduler = \["minrtt", "blest"\]\n/);
  state.b = { cc: "none", scheduler: "blest" };
  assert.deepEqual(scenario(state).axes(state.a), {});
  assert.match(scenario(state).text, /\ncc = "lia"\nscheduler = "minrtt"\n/);
});

// It said 33 for 20 Mbit/s and 20 ms, that is 400,000 bits or 33.03 packets of 1,514 bytes; `mptcplab check` says 34.
test("a bandwidth-delay product is the whole number of packets that the format of scenarios gives it", () => {
  const facts = (topology, changes) => TOPOLOGIES[topology].facts({ ...initial(topology).values, ...changes });
  assert.equal(facts("shared", { "neck-rate": 20, "neck-delay": 10 }).Bottleneck, "Base RTT 20 ms, BDP 34 packets");
  // 2,000 bits, and 60,560 bits or exactly 5 packets.
  const paths = facts("private", { "p1-rate": 1, "p1-delay": 1, "p2-rate": 30.28, "p2-delay": 1 });
  assert.deepEqual(Object.values(paths), ["Base RTT 2 ms, BDP 1 packet", "Base RTT 2 ms, BDP 5 packets"]);
});
