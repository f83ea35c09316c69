// Converts between elements and places on the board, which is 1000 wide.

import { TASKS } from "../tasks.js";

const [LOW, HIGH] = [60, 940]; // the range of elements on the board
const MIN_WIDTH = 2 ** -6; // narrower points are enlarged, even in the unit square
export const SLOTS = 996; // the y coordinate of the special slots

export class Frame {
  /** Makes the frame of an instance: the unit square if the elements fit and are not too close together. */
  constructor(task, instance) {
    this.task = task;
    this.count = instance.length;
    this.isPlane = TASKS[task].features === 2;
    const axes = instance.length ? instance[0].map((_, k) => instance.map((e) => e[k])) : [];
    const low = axes.map((values) => Math.min(...values));
    const high = axes.map((values) => Math.max(...values));
    const width = Math.max(...high.map((value, k) => value - low[k]));
    const isLost = width > 0 && width < MIN_WIDTH;
    const isInside = !isLost && low.every((v) => v >= 0) && high.every((v) => v <= 1);
    this.low = isInside ? [0, 0] : low;
    this.width = isInside ? 1 : width > 0 ? width : 1;
  }

  /** Returns the place of element i. */
  place(element, i) {
    const up = (value, axis) => (value - this.low[axis]) / this.width;
    const span = HIGH - LOW;
    if (this.isPlane) return [LOW + up(element[0], 0) * span, HIGH - up(element[1], 1) * span];
    return [LOW + ((i + 0.5) / this.count) * span, HIGH - up(element[0], 0) * span];
  }

  /** Returns the place of a special slot. */
  slot(token) {
    return [LOW + 40 + token * 150, SLOTS];
  }

  /** Returns the element at a place. Its numbers have only the digits that the board can resolve. */
  element([x, y]) {
    const span = HIGH - LOW;
    const value = (share, axis) => {
      const exact = this.low[axis] + Math.min(1, Math.max(0, share)) * this.width;
      const digits = Math.max(0, 3 - Math.floor(Math.log10(this.width) + 1e-9));
      return Number(exact.toFixed(Math.min(digits, 15)));
    };
    const across = value((x - LOW) / span, 0);
    return this.isPlane ? [across, value((HIGH - y) / span, 1)] : [value((HIGH - y) / span, 0)];
  }

  /** Returns the index of a new element at a place; in the plane, the last one. */
  index([x]) {
    if (this.isPlane) return this.count;
    return Math.min(this.count, Math.max(0, Math.round(((x - LOW) / (HIGH - LOW)) * this.count)));
  }
}
