// The simulator as a WebAssembly module: a scenario's text in, columns of samples out. See crates/mptcplab-wasm/src/abi.rs.

const TYPES = {
  u8: { bytes: 1, array: Uint8Array },
  u32: { bytes: 4, array: Uint32Array },
  i32: { bytes: 4, array: Int32Array },
  u64: { bytes: 8, array: BigUint64Array },
};
const ALIGNMENT = 8;

/** What the simulator says about a scenario or a run that it cannot do. */
export class EngineError extends Error {}

/** One instance of the simulator. A module that panicked must not be used again. */
export class Engine {
  #exports;
  #onChunk = () => true;

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const page = {
      deliver: (address, bytes) => (this.#onChunk(address, bytes) === false ? 0 : 1),
      panicked: (address, bytes) => {
        throw new Error(`the simulator broke: ${this.#text(address, bytes)}`);
      },
    };
    this.#exports = new WebAssembly.Instance(module, { page }).exports;
    /** Algorithms, schedulers, and the tables with their columns. */
    this.catalog = JSON.parse(this.#call(() => this.#exports.catalog()));
  }

  /**
   * Parses a scenario.
   * @param {{name: string, text: string, files?: Record<string, string>}} request
   * @returns the resolved sweep, as `mptcplab check --json` gives it
   */
  open(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const address = this.#exports.input(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, address, bytes.length).set(bytes);
    return JSON.parse(this.#call(() => this.#exports.open()));
  }

  /**
   * Simulates a run of the open scenario.
   * @param {number} run its number in the sweep
   * @param {(tables: Tables) => boolean | void} onChunk gets the samples as they come, as views that are valid during the call
   *   only; false stops the run
   */
  simulate(run, onChunk) {
    this.#onChunk = (address, bytes) => onChunk(this.#tables(address, bytes));
    return JSON.parse(this.#call(() => this.#exports.simulate(run)));
  }

  #call(call) {
    const failed = call();
    const text = this.#text(this.#exports.output(), this.#exports.output_len());
    if (failed) throw new EngineError(text);
    return text;
  }

  #text(address, bytes) {
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, address, bytes));
  }

  /** The columns of a chunk, laid out as crates/mptcplab-wasm/src/chunk.rs says. */
  #tables(address, bytes) {
    const { tables } = this.catalog;
    const memory = this.#exports.memory.buffer;
    const rows = new Uint32Array(memory, address, tables.length);
    let at = address + aligned(4 * tables.length);
    const found = {};
    tables.forEach(({ name, columns }, index) => {
      found[name] = { rows: rows[index] };
      for (const column of columns) {
        const { bytes: size, array: TypedArray } = TYPES[column.type];
        found[name][column.name] = new TypedArray(memory, at, rows[index]);
        at += aligned(size * rows[index]);
      }
    });
    if (at !== address + bytes) throw new Error(`a chunk of ${bytes} bytes, of which ${at - address} are described`);
    return found;
  }
}

function aligned(bytes) {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}
