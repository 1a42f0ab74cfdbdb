// Prints the scenarios of the page as JSON: per network its text and the files that it names.

import { initial } from "../src/state.js";
import { TOPOLOGIES, scenario } from "../src/topologies.js";

const found = Object.keys(TOPOLOGIES).map((topology) => [topology, scenario({ ...initial(topology), durationS: 20 })]);
console.log(JSON.stringify(Object.fromEntries(found)));
