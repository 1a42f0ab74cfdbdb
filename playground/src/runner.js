// Workers that simulate. Each side of the page has one; a request that comes while a run is going on waits, and only the newest
// one waits. A run that takes long is given up for the newer request, with a worker that stands by.

// A run that has taken this long is given up for a newer request.
const PATIENCE_MS = 400;

export class Runner {
  #active = null;
  #spare = null;
  #running = null;
  #waiting = null;
  #timer = 0;

  /**
   * @param {() => Worker} start starts a worker
   * @param {WebAssembly.Module} module
   * @param {{samples: Function, done: Function, failed: Function}} handlers get the request and the worker's message
   */
  constructor(start, module, handlers) {
    this.start = start;
    this.module = module;
    this.handlers = handlers;
    this.#active = this.#worker();
    this.#spare = this.#worker();
  }

  /** Simulates what `request` says, as soon as possible. */
  request(request) {
    this.#waiting = request;
    if (!this.#running) this.#next();
    else if (!this.#timer) {
      const left = PATIENCE_MS - (performance.now() - this.#running.since);
      this.#timer = setTimeout(() => this.#giveUp(), Math.max(0, left));
    }
  }

  /** Forgets what is going on. */
  stop() {
    this.#waiting = null;
    if (this.#running) this.#giveUp();
  }

  #worker() {
    const worker = this.start();
    worker.postMessage({ module: this.module });
    return worker;
  }

  #next() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const request = this.#waiting;
    this.#waiting = null;
    this.#running = request && { request, since: performance.now() };
    if (!request) return;
    this.#active.onmessage = ({ data }) => this.#hear(request, data);
    this.#active.postMessage(request.message);
  }

  #hear(request, data) {
    if (data.kind === "ready" || request !== this.#running?.request) return;
    this.handlers[data.kind](request, data);
    if (data.kind !== "samples") {
      // A module that broke is not used again.
      if (data.kind === "failed") this.#replace();
      this.#next();
    }
  }

  #giveUp() {
    this.#replace();
    this.#next();
  }

  #replace() {
    this.#active.onmessage = null;
    this.#active.terminate();
    this.#active = this.#spare;
    this.#spare = this.#worker();
  }
}
