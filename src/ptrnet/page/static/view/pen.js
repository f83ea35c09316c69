// Drawing by pointer and by keyboard: what is to change is told, nothing is changed here.

import { FOOT } from "./board.js";

const REACH = 26; // pixels of the screen between a pointer and the point it means
const STILL = 3; // pixels that a pointer may tremble
const TWICE = 350; // ms between two presses that remove a point
const STEP = 22; // of the cross, by an arrow; of one with Shift five times that

export class Pen {
  #dragged = -1;
  #pressed = { i: -1, time: 0, x: 0, y: 0 }; // last: the picture is drawn anew meanwhile, so no `dblclick` comes
  #carried = -1; // by the keyboard
  #cross = null;

  /**
   * @param {SVGSVGElement} svg
   * @param {object} host `places()`, and what is done: `add(place)`, which gives the new index,
   *   `move(i, place)`, `drop(i)` when it stays there, `remove(i)`, `select(i)`, `cross(place)`
   */
  constructor(svg, host) {
    [this.svg, this.host] = [svg, host];
    svg.addEventListener("pointerdown", (event) => this.#press(event));
    svg.addEventListener("pointermove", (event) => this.#drag(event));
    for (const name of ["pointerup", "pointercancel"]) {
      svg.addEventListener(name, () => this.#release());
    }
    svg.addEventListener("keydown", (event) => this.#key(event));
    svg.addEventListener("blur", () => this.#hideCross());
  }

  #press(event) {
    if (event.button !== 0) return;
    const place = this.#placeOf(event);
    this.#hideCross();
    let i = this.#nearest(place, REACH * this.#unit());
    const isTwice = i >= 0 && i === this.#pressed.i && event.timeStamp - this.#pressed.time < TWICE;
    const { timeStamp: time, clientX: x, clientY: y } = event;
    this.#pressed = { i: isTwice ? -1 : i, time, x, y };
    if (isTwice) {
      this.host.remove(i);
      return;
    }
    if (i < 0) {
      if (place[1] > FOOT) return;
      i = this.host.add(place);
      if (i < 0) return;
    } else {
      this.host.select(i);
    }
    this.#dragged = i;
    this.svg.setPointerCapture(event.pointerId);
  }

  #drag(event) {
    if (this.#dragged < 0 || !event.buttons) return;
    const { x, y } = this.#pressed;
    if (Math.hypot(event.clientX - x, event.clientY - y) < STILL) return;
    this.#pressed = { i: -1, time: 0, x: Infinity, y: Infinity }; // from now on it moves
    this.host.move(this.#dragged, this.#placeOf(event));
  }

  #release() {
    if (this.#dragged < 0) return;
    const i = this.#dragged;
    this.#dragged = -1;
    this.host.drop(i);
  }

  #key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in arrows) {
      const size = STEP * (event.shiftKey ? 5 : 1);
      const [x, y] = this.#cross ?? [500, 500];
      const clip = (value, most) => Math.min(most, Math.max(60, value));
      const [dx, dy] = arrows[event.key];
      this.#cross = [clip(x + dx * size, 940), clip(y + dy * size, 940)];
      if (this.#carried >= 0) this.host.move(this.#carried, this.#cross);
    } else if (event.key === "Enter" || event.key === " ") {
      this.#pickOrDrop();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      const i = this.#nearest(this.#cross ?? [-999, -999], 40);
      this.#carried = -1;
      if (i >= 0) this.host.remove(i);
    } else if (event.key === "Escape") {
      this.#hideCross();
      return;
    } else {
      return;
    }
    event.preventDefault();
    this.host.cross(this.#cross);
  }

  #pickOrDrop() {
    this.#cross ??= [500, 500];
    if (this.#carried >= 0) {
      this.host.drop(this.#carried);
      this.#carried = -1;
      return;
    }
    const i = this.#nearest(this.#cross, 30);
    if (i >= 0) {
      this.#carried = i;
      this.host.select(i);
    } else {
      const added = this.host.add(this.#cross);
      if (added >= 0) this.host.drop(added);
    }
  }

  #hideCross() {
    [this.#cross, this.#carried] = [null, -1];
    this.host.cross(null);
  }

  #nearest(place, reach) {
    let [best, bestDistance] = [-1, reach];
    this.host.places().forEach((other, i) => {
      const distance = Math.hypot(other[0] - place[0], other[1] - place[1]);
      if (distance <= bestDistance) [best, bestDistance] = [i, distance];
    });
    return best;
  }

  /** Units of the board in a pixel. */
  #unit() {
    return 1 / (this.svg.getScreenCTM()?.a || 1);
  }

  #placeOf(event) {
    const point = new DOMPoint(event.clientX, event.clientY);
    const { x, y } = point.matrixTransform(this.svg.getScreenCTM().inverse());
    return [x, y];
  }
}
