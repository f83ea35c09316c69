// Draws by pointer and keyboard. It changes no elements itself, but calls the host.

import { FOOT } from "./board.js";
import { cursorOf } from "./frame.js";

const REACH = 26; // the largest distance in pixels between the pointer and an element that it touches
const STILL = 3; // shorter movements in pixels do not count as dragging
const TWICE = 350; // the most ms between the two presses of a double-click
const STEP = 22; // how far an arrow key moves the cross; with Shift, five times as far

export class Pen {
  #dragged = null; // the grip of the element that the pointer moves
  // The last press. Redrawing prevents `dblclick` events, so we detect double-clicks by it.
  #pressed = { i: -1, time: 0, x: 0, y: 0 };
  #carried = null; // the grip of the element that the keyboard moves
  #cross = null;

  /**
   * @param {SVGSVGElement} svg
   * @param {object} host callbacks: `find(place, reach)` and `add(place)`, which return a grip or null,
   *   `move(grip, place)`, `drop(grip)` at the end of a move, `remove(i)`, `select(i)`, `cross(place)`
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
    let grip = this.host.find(place, REACH * this.#unit());
    const i = grip?.i ?? -1;
    const isTwice = grip && i === this.#pressed.i && event.timeStamp - this.#pressed.time < TWICE;
    const { timeStamp: time, clientX: x, clientY: y } = event;
    this.#pressed = { i: isTwice ? -1 : i, time, x, y };
    if (isTwice) {
      this.host.remove(i);
      return;
    }
    if (grip) {
      this.host.select(i);
    } else {
      if (place[1] > FOOT) return;
      grip = this.host.add(place);
      if (!grip) return;
    }
    this.#dragged = grip;
    this.svg.setPointerCapture(event.pointerId);
  }

  #drag(event) {
    if (!this.#dragged || !event.buttons) {
      this.svg.style.cursor = cursorOf(this.host.find(this.#placeOf(event), REACH * this.#unit()));
      return;
    }
    const { x, y } = this.#pressed;
    if (Math.hypot(event.clientX - x, event.clientY - y) < STILL) return;
    // This press is a drag now, so it is not the first of a double-click.
    this.#pressed = { i: -1, time: 0, x: Infinity, y: Infinity };
    this.host.move(this.#dragged, this.#placeOf(event));
  }

  #release() {
    if (!this.#dragged) return;
    const grip = this.#dragged;
    this.#dragged = null;
    this.host.drop(grip);
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
      if (this.#carried) this.host.move(this.#carried, this.#cross);
    } else if (event.key === "Enter" || event.key === " ") {
      this.#pickOrDrop();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      const grip = this.#cross && this.host.find(this.#cross, 40);
      this.#carried = null;
      if (grip) this.host.remove(grip.i);
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
    if (this.#carried) {
      this.host.drop(this.#carried);
      this.#carried = null;
      return;
    }
    const grip = this.host.find(this.#cross, 30);
    if (grip) {
      this.#carried = grip;
      this.host.select(grip.i);
      return;
    }
    const added = this.host.add(this.#cross);
    if (added?.element) this.host.drop(added);
    else this.#carried = added; // a box, whose other corner comes next
  }

  #hideCross() {
    if (this.#carried) this.host.drop(this.#carried);
    [this.#cross, this.#carried] = [null, null];
    this.host.cross(null);
  }

  /** Returns the size of a pixel in units of the board. */
  #unit() {
    return 1 / (this.svg.getScreenCTM()?.a || 1);
  }

  #placeOf(event) {
    const point = new DOMPoint(event.clientX, event.clientY);
    const { x, y } = point.matrixTransform(this.svg.getScreenCTM().inverse());
    return [x, y];
  }
}
