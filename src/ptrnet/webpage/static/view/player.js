// Moves through the steps of an answer: forward, back, or playing.

const [SLOWEST, WHOLE, FASTEST] = [700, 6000, 90]; // in ms: the longest step, the whole answer, the shortest step

export class Player {
  #timer = 0;
  #length = 0;
  position = 0;

  /** @param {(position: number) => void} moved called after each change of the position */
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

  /** Takes a new answer with `length` tokens, and goes to its end. */
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
      this.go(this.position < this.#length ? this.position + 1 : 0); // one step per press, without an animation
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
