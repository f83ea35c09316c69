// One question at a time, and then the latest: what a pointer asked in between is passed over.

export class Latest {
  #controller = null;
  #isWaiting = false;

  /** @param {(signal: AbortSignal) => Promise<void>} run answers what is asked at that moment */
  constructor(run) {
    this.run = run;
  }

  /** Asks now, or when the question that is being answered is done. */
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

  /** Gives up the question that is being answered: it is about something else. */
  giveUp() {
    this.#controller?.abort();
  }
}
