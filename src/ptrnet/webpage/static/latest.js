// Runs one request at a time, and then the latest one. Skips the requests in between, because a
// moving pointer makes more of them than can be answered.

export class Latest {
  #controller = null;
  #isWaiting = false;

  /** @param {(signal: AbortSignal) => Promise<void>} run answers the current request */
  constructor(run) {
    this.run = run;
  }

  /** Runs a request now, or after the current one. */
  async ask() {
    if (this.#controller) {
      this.#isWaiting = true;
      return;
    }
    do {
      this.#isWaiting = false;
      const controller = new AbortController();
      this.#controller = controller;
      try {
        await this.run(controller.signal);
      } finally {
        this.#controller = null;
      }
    } while (this.#isWaiting);
  }

  /** Aborts the current request, because its answer is no longer needed. */
  giveUp() {
    this.#controller?.abort();
  }
}
