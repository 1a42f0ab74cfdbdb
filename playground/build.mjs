// Puts the page into one file that needs no server: styles, scripts, the simulator and the walks are inside.
//
// usage: node build.mjs SIMULATOR.wasm OUTPUT_DIRECTORY

import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const SOURCES = new URL("src/", import.meta.url);
const WALKS = new URL("../scenarios/traces/walk/", import.meta.url);
const TARGET = ["chrome105", "firefox113", "safari16.4"];

const [wasmPath, out] = process.argv.slice(2);
if (!out) {
  console.error("error: two arguments are needed\n\nhint: node build.mjs SIMULATOR.wasm OUTPUT_DIRECTORY");
  process.exit(2);
}

const source = (name) => new URL(name, SOURCES).pathname;
const wasm = await readFile(wasmPath);
const worker = await bundle(source("worker.js"), { format: "iife" });
const embedded = {
  WORKER: worker.js,
  WASM_GZIP_BASE64: gzipSync(wasm, { level: 9 }).toString("base64"),
  FILES: await walks(),
};
const page = await bundle(source("app.js"), { format: "esm", plugins: [provide("embedded", embedded)] });
const html = fill(await readFile(source("index.html"), "utf8"), {
  "/*STYLE*/": page.css,
  "/*SCRIPT*/": page.js,
  "<!--LICENSE-->": await readFile(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8"),
});
await mkdir(out, { recursive: true });
await writeFile(`${out}/index.html`, html);
await writeFile(`${out}/mptcplab.wasm`, wasm);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
console.log(`${out}/index.html: ${kilobytes(html.length)}, ${kilobytes(gzipSync(html, { level: 9 }).length)} compressed`);

async function bundle(entry, options) {
  const done = await build({ entryPoints: [entry], bundle: true, minify: true, write: false, outdir: "out", target: TARGET, legalComments: "none", ...options });
  const text = (suffix) => done.outputFiles.find(({ path }) => path.endsWith(suffix))?.text ?? "";
  return { js: text(".js"), css: text(".css") };
}

// A module whose exports are made here.
function provide(name, exports) {
  const contents = Object.entries(exports).map(([key, value]) => `export const ${key} = ${JSON.stringify(value)};`);
  return {
    name,
    setup(context) {
      context.onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: name, namespace: name }));
      context.onLoad({ filter: /.*/, namespace: name }, () => ({ contents: contents.join("\n"), loader: "js" }));
    },
  };
}

async function walks() {
  const names = (await readdir(WALKS)).filter((name) => name.endsWith(".csv")).sort();
  const texts = names.map(async (name) => [name, await readFile(new URL(name, WALKS), "utf8")]);
  return Object.fromEntries(await Promise.all(texts));
}

// A function, because "$" in a text of `replace` has a meaning of its own.
function fill(text, parts) {
  return Object.entries(parts).reduce((page, [mark, part]) => {
    if (!page.includes(mark)) throw new Error(`no ${mark} in index.html`);
    return page.replace(mark, () => part);
  }, text);
}
