// Simulates a run with the module of the page and writes all its columns, for a comparison with another engine's.
//
// usage: node columns.mjs MODULE.wasm REQUEST.json RUN OUTPUT
//
// The output is a line of JSON, which lists the columns with their types and lengths in bytes, and then their bytes.

import { readFile, writeFile } from "node:fs/promises";
import { Engine } from "../src/engine.js";

const [modulePath, requestPath, run, outputPath] = process.argv.slice(2);
const engine = new Engine(await WebAssembly.compile(await readFile(modulePath)));
engine.open(JSON.parse(await readFile(requestPath, "utf8")));
const columns = engine.catalog.tables.flatMap(({ name, columns }) => columns.map((column) => ({ table: name, column: column.name, type: column.type, null: column.null, parts: [] })));
const totals = engine.simulate(Number(run), (tables) => {
  for (const { table, column, parts } of columns) {
    const { buffer, byteOffset, byteLength } = tables[table][column];
    parts.push(Buffer.from(buffer.slice(byteOffset, byteOffset + byteLength)));
  }
});
const bytes = columns.map(({ parts }) => Buffer.concat(parts));
const index = columns.map(({ parts, ...column }, i) => ({ ...column, bytes: bytes[i].length }));
await writeFile(outputPath, Buffer.concat([Buffer.from(`${JSON.stringify({ engine: engine.catalog.engine, totals, columns: index })}\n`), ...bytes]));
