// The steps of an answer: forward, back, played.

const [SLOWEST, WHOLE, FASTEST] = [700, 6000, 90]; // ms: of a step, of an answer, of a step of many

export class Player {
  #timer = 0;
  #length = 0;
  position = 0;

  /** @param {(position: number) => void} moved called at each change of the position */
  constructor(moved) {
    this.moved = moved;
    this.slider = document.querySelector("#position");
    this.button = document.querySelector("#play");
    const on = (id, action) => document.querySelector(id).addEventListener("click", action);
    on("#first", () => this.go(0));
    on("#back", () => this.go(this.position - 1));
    on("#forward", () => this.go(this.position + 1));
    on("#last", () => this.go(this.#length));
    on("#play", () => (this.isPlaying ? this.pause() : this.play()));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
  }

  get isPlaying() {
    return this.#timer !== 0;
  }

  /** A new answer of so many tokens, at its end. */
  reset(length) {
    this.#length = length;
    this.slider.max = String(length);
    this.go(length);
  }

  go(position) {
    this.pause();
    this.#move(position);
  }

  play() {
    if (!this.#length) return;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill) {
      this.go(this.position < this.#length ? this.position + 1 : 0); // one step for each press
      return;
    }
    this.pause();
    if (this.position >= this.#length) this.#move(0);
    const pace = Math.max(FASTEST, Math.min(SLOWEST, WHOLE / this.#length));
    this.#timer = setInterval(() => {
      this.#move(this.position + 1);
      if (this.position >= this.#length) this.pause();
    }, pace);
    this.button.textContent = "Pause";
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = 0;
    this.button.textContent = "Play";
  }

  #move(position) {
    this.position = Math.min(this.#length, Math.max(0, position));
    this.slider.value = String(this.position);
    this.moved(this.position);
  }
}
