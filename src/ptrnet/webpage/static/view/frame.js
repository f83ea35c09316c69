// Converts between elements and places on the board, which is 1000 wide. Elements are numbers, points or
// boxes; only this file knows how a pen holds and changes them.

import { TASKS } from "../tasks.js";

const [LOW, HIGH] = [60, 940]; // the range of elements on the board
const MIN_WIDTH = 2 ** -6; // narrower points are enlarged, even in the unit square
const SMALLEST = 6; // a box that is drawn smaller than this is dropped
const EDGE = 0.4; // how near to an edge of a box the pen holds that edge, as a share of its reach
const ALL = [true, true, true, true];
export const SLOTS = 996; // the y coordinate of the special slots

/**
 * What a pen holds: a grip.
 * @typedef {object} Grip
 * @property {number} i the index of the element
 * @property {number[]} start where the pen took it
 * @property {number[]} sides of the element at that time: left, top, right, bottom on the board
 * @property {boolean[]} held which of these sides follow the pen
 * @property {number[] | null} element the element at that time; null if it is a box that is being drawn
 */
export class Frame {
  /** Makes the frame of an instance: the unit square if the elements fit and are not too close together. */
  constructor(task, instance) {
    const { features } = TASKS[task];
    this.task = task;
    this.count = instance.length;
    [this.isPlane, this.isBoxes] = [features > 1, features === 4];
    const corners = instance.flatMap((e) => (this.isBoxes ? [e.slice(0, 2), e.slice(2, 4)] : [e]));
    const axes = corners.length ? corners[0].map((_, k) => corners.map((e) => e[k])) : [];
    const low = axes.map((values) => Math.min(...values));
    const high = axes.map((values) => Math.max(...values));
    const width = Math.max(...high.map((value, k) => value - low[k]));
    const isLost = width > 0 && width < MIN_WIDTH;
    const isInside = !isLost && low.every((v) => v >= 0) && high.every((v) => v <= 1);
    this.low = isInside ? [0, 0] : low;
    this.width = isInside ? 1 : width > 0 ? width : 1;
  }

  /** Returns the sides of element i on the board: left, top, right, bottom. Those of a point are equal. */
  sides(element, i) {
    const up = (value, axis) => ((value - this.low[axis]) / this.width) * (HIGH - LOW);
    if (this.isBoxes) return [0, 1, 2, 3].map((k) => LOW + up(element[k], k % 2)); // y down
    const x = this.isPlane ? LOW + up(element[0], 0) : LOW + ((i + 0.5) / this.count) * (HIGH - LOW);
    const y = HIGH - up(element.at(-1), this.isPlane ? 1 : 0);
    return [x, y, x, y];
  }

  /** Returns the place of element i; that of a box is its center. */
  place(element, i) {
    const [left, top, right, bottom] = this.sides(element, i);
    return [(left + right) / 2, (top + bottom) / 2];
  }

  /** Returns the place of a special slot. */
  slot(token) {
    return [LOW + 40 + token * 150, SLOTS];
  }

  /** Returns the numbers at a place. They have only the digits that the board can resolve. */
  element([x, y]) {
    const span = HIGH - LOW;
    const value = (share, axis) => {
      const exact = this.low[axis] + Math.min(1, Math.max(0, share)) * this.width;
      const digits = Math.max(0, 3 - Math.floor(Math.log10(this.width) + 1e-9));
      return Number(exact.toFixed(Math.min(digits, 15)));
    };
    const across = value((x - LOW) / span, 0);
    if (this.isBoxes) return [across, value((y - LOW) / span, 1)];
    return this.isPlane ? [across, value((HIGH - y) / span, 1)] : [value((HIGH - y) / span, 0)];
  }

  /** Returns the grip of a new element at a place. A number comes between others, other elements last. */
  begin(place) {
    const [x] = place;
    const between = Math.round(((x - LOW) / (HIGH - LOW)) * this.count);
    const i = this.isPlane ? this.count : Math.min(this.count, Math.max(0, between));
    const held = this.isBoxes ? [false, false, true, true] : ALL;
    const element = this.isBoxes ? null : this.element(place);
    return { i, start: place, sides: [...place, ...place], held, element };
  }

  /** Returns the grip of the element at a place, or null. Of boxes in each other, the smallest one counts. */
  find(instance, place, reach) {
    let [best, least] = [null, [reach, Infinity]];
    instance.forEach((element, i) => {
      const sides = this.sides(element, i);
      const edge = this.isBoxes ? reach * EDGE : reach;
      const [x, y] = [0, 1].map((axis) => Math.max(sides[axis] - place[axis], place[axis] - sides[axis + 2], 0));
      const [distance, area] = [Math.hypot(x, y), (sides[2] - sides[0]) * (sides[3] - sides[1])];
      if (distance > edge || distance > least[0] || (distance === least[0] && area > least[1])) return;
      const start = this.isBoxes ? place : sides.slice(0, 2);
      const held = this.isBoxes ? heldSides(sides, place, edge) : ALL;
      [best, least] = [{ i, start, sides, held, element }, [distance, area]];
    });
    return best;
  }

  /** Returns the element of a grip after its pen has moved to a place. */
  moved({ start, sides, held, element }, place) {
    const moving = [0, 1].map((axis) => {
      const values = [axis, axis + 2].filter((k) => held[k]).map((k) => sides[k]);
      const change = place[axis] - start[axis];
      return Math.min(HIGH - Math.max(...values), Math.max(LOW - Math.min(...values), change));
    });
    const [left, top, right, bottom] = sides.map((side, k) => (held[k] ? side + moving[k % 2] : side));
    if (!this.isBoxes) return this.element([left, top]);
    const corners = [...this.element([left, top]), ...this.element([right, bottom])];
    const numbers = corners.map((value, k) => (element && !held[k] ? element[k] : value));
    const ends = (choose) => [0, 1].map((axis) => choose(numbers[axis], numbers[axis + 2]));
    return [...ends(Math.min), ...ends(Math.max), ...(element?.slice(4) ?? [])];
  }

  /** Whether a box is too small to be meant. */
  isTiny(element, i) {
    const [left, top, right, bottom] = this.sides(element, i);
    return Math.min(right - left, bottom - top) < SMALLEST;
  }
}

/** Returns which sides of a box are near to a place; all of them if none is, to move the box. */
function heldSides(sides, place, edge) {
  const near = sides.map((side, k) => {
    const size = sides[(k % 2) + 2] - sides[k % 2];
    const inward = k < 2 ? place[k % 2] - side : side - place[k % 2];
    return inward < Math.min(edge, size / 4);
  });
  return near.includes(true) ? near : ALL;
}

/** Returns the mouse cursor over a grip; for points and empty ground, that of the board. */
export function cursorOf(grip) {
  if (!grip || grip.element.length < 4) return "";
  if (grip.held === ALL) return "move";
  const [left, top, right, bottom] = grip.held;
  if (!left && !right) return "ns-resize";
  if (!top && !bottom) return "ew-resize";
  return left === top ? "nwse-resize" : "nesw-resize";
}
