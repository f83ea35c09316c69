// Draws the elements, the answer up to the current step, the model's attention, and the exact answer.

import { TASKS } from "../tasks.js";
import { answerShape, distributionAt, shapeOf } from "../walk.js";
import { SLOTS } from "./frame.js";
import { node } from "./svg.js";

const MIN_PROBABILITY = 0.002; // smaller probabilities get no line
const WIDEST = 16; // width of a line of probability 1
const NUMBERED = 40; // with more elements, they get no numbers

export class Board {
  constructor(svg) {
    this.layers = Object.fromEntries(
      ["grid", "stems", "exact", "shape", "looks", "other", "points", "slots", "cross"].map((name) => {
        const layer = node("g", { class: name });
        svg.append(layer);
        return [name, layer];
      }),
    );
    this.#drawGrid();
  }

  /**
   * Draws a scene.
   * @param {object} scene frame, task, instance, trace or null, position, exact (whether to draw the
   *   exact answer), other (another prefix to draw, or null), selected (an index, or -1)
   */
  draw(scene) {
    const { frame, instance, trace } = scene;
    this.places = instance.map((element, i) => frame.place(element, i));
    this.sides = instance.map((element, i) => frame.sides(element, i));
    for (const name of ["exact", "shape", "looks", "other", "stems", "slots"]) {
      this.layers[name].replaceChildren();
    }
    const tokens = trace ? trace.tokens.slice(0, scene.position) : [];
    if (trace) {
      const ended = tokens.at(-1) === 0;
      const shape = this.#shape(scene, tokens.filter(Boolean), ended);
      this.#drawShape(shape);
      this.#drawExact(scene);
      if (!ended || scene.isStepping) this.#drawLooks(scene, tokens);
      if (scene.other) this.#drawOther(scene);
      this.#drawSlots(frame, trace.special_names, tokens.at(-1));
    }
    this.#drawStems(scene);
    this.#drawPoints(scene, tokens);
  }

  drawCross(place) {
    const lines = place
      ? [`M${place[0] - 22} ${place[1]}h44`, `M${place[0]} ${place[1] - 22}v44`]
      : [];
    this.layers.cross.replaceChildren(...lines.map((d) => node("path", { d })));
  }

  #shape({ task, trace }, tokens, ended) {
    return shapeOf(task, tokens, trace.special_names.length, ended);
  }

  #drawGrid() {
    for (let k = 0; k <= 10; k += 1) {
      for (let j = 0; j <= 10; j += 1) {
        const [cx, cy] = [60 + k * 88, 60 + j * 88];
        this.layers.grid.append(node("circle", { cx, cy, r: 1.6 }));
      }
    }
  }

  #drawShape({ rings, paths }) {
    const group = this.layers.shape;
    for (const ring of rings) {
      group.append(node("path", { class: "ring", d: this.#path(ring, true) }));
    }
    for (const path of paths) {
      if (path.length > 1) group.append(node("path", { class: "line", d: this.#path(path, false) }));
    }
  }

  #drawExact({ task, trace, exact }) {
    if (!exact || !trace.exact || trace.correct) return;
    const { rings, paths } = answerShape(task, trace.exact.outputs);
    for (const ring of rings) this.layers.exact.append(node("path", { d: this.#path(ring, true) }));
    for (const path of paths) this.layers.exact.append(node("path", { d: this.#path(path, false) }));
  }

  /** Draws lines from the last token to each possible next one. Their width shows its probability. */
  #drawLooks(scene, tokens) {
    const { frame, trace, position } = scene;
    const step = Math.max(0, position - 1);
    if (!trace.steps[step]) return;
    const before = trace.tokens.slice(0, step);
    const { front } = this.#shape(scene, before.filter(Boolean), false);
    const origin = this.#origin(scene, before, front);
    if (front) {
      const d = this.#path(front, false);
      this.layers.looks.append(node("path", { class: "front", d }));
    }
    const currentToken = tokens.at(-1);
    const distribution = distributionAt(trace, step).filter(([, value]) => value >= MIN_PROBABILITY);
    distribution.sort((a, b) => a[1] - b[1]);
    for (const [token, value] of distribution) {
      const target = this.#placeOf(frame, trace, token);
      const d = `M${origin.join(" ")}L${target.join(" ")}`;
      const width = (1 + (WIDEST - 1) * value).toFixed(2);
      const name = token === currentToken && position ? "look chosen" : "look";
      const line = node("path", { d, class: name, "stroke-width": width, "data-probability": value });
      this.layers.looks.append(line);
    }
    this.layers.looks.append(node("circle", { cx: origin[0], cy: origin[1], r: 6, class: "origin" }));
  }

  /** Returns where these lines start: at the middle of the front edge, or at the last token. */
  #origin({ frame, trace }, before, front) {
    if (front) {
      const [a, b] = front.map((i) => this.places[i]);
      return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    }
    return this.#placeOf(frame, trace, before.at(-1) ?? 0);
  }

  #placeOf(frame, trace, token) {
    const numSpecials = trace.special_names.length;
    return token < numSpecials ? frame.slot(token) : this.places[token - numSpecials];
  }

  #drawOther(scene) {
    const { tokens, ended } = scene.other;
    const { rings, paths } = this.#shape(scene, tokens, ended);
    for (const ring of rings) this.layers.other.append(node("path", { d: this.#path(ring, true) }));
    for (const path of paths) {
      if (path.length) this.layers.other.append(node("path", { d: this.#path(path, false) }));
    }
  }

  #drawSlots(frame, names, last) {
    names.forEach((name, token) => {
      const [x, y] = frame.slot(token);
      const shape = { x: x - 46, y: y - 22, width: 92, height: 44, rx: 22 };
      this.layers.slots.append(
        node("rect", { ...shape, class: token === last ? "slot chosen" : "slot" }),
        node("text", { x, y }, name.replace(/[<>]/g, "").toLowerCase()),
      );
    });
  }

  #drawStems({ frame }) {
    if (frame.isPlane) return;
    for (const [x, y] of this.places) {
      this.layers.stems.append(node("path", { d: `M${x} 960V${y}` }));
    }
  }

  #drawPoints({ frame, instance, trace, selected, task }, tokens) {
    const numSpecials = trace?.special_names.length ?? 1;
    const rank = new Map();
    tokens.filter((token) => token >= numSpecials).forEach((token) => {
      if (!rank.has(token - numSpecials)) rank.set(token - numSpecials, rank.size + 1);
    });
    const last = tokens.at(-1) >= numSpecials ? tokens.at(-1) - numSpecials : -1;
    const radius = instance.length > 60 ? 6 : instance.length > 25 ? 8 : 10;
    const middle = [0, 1].map((axis) => mean(this.places.map((place) => place[axis])));
    const points = this.places.map(([x, y], i) => {
      const names = ["point"];
      if (rank.has(i)) names.push("answered");
      if (i === last) names.push("last");
      if (i === selected) names.push("selected");
      const point = node("g", { class: names.join(" "), transform: `translate(${x} ${y})` });
      const size = frame.isBoxes ? sizeOf(this.sides[i]) : null;
      if (i === selected) point.append(outline(size, radius, 9, { class: "halo" }));
      point.append(outline(size, radius, 0));
      if (instance.length <= NUMBERED || size) {
        const text = TASKS[task].isRanked && rank.has(i) ? `${rank.get(i)}.` : `${i}`;
        const offset = size ? { y: 7 } : frame.isPlane ? outward([x, y], middle) : { y: -22 };
        point.append(node("text", offset, text));
      }
      const label = size && instance[i][4];
      if (label && hasRoom(size, label)) {
        const corner = { x: 5 - size[0] / 2, y: 15 - size[1] / 2, class: "label" };
        point.append(node("text", corner, label));
      }
      return point;
    });
    this.layers.points.replaceChildren(...points);
  }

  #path(indices, isClosed) {
    const places = indices.map((i) => this.places[i].map((value) => value.toFixed(1)).join(" "));
    return places.length ? `M${places.join("L")}${isClosed ? "Z" : ""}` : "";
  }
}

const sizeOf = ([left, top, right, bottom]) => [right - left, bottom - top];

/** Whether a label fits into the corner of a box, above or left of its number. */
function hasRoom([width, height], label) {
  const length = 5 + 9 * label.length;
  return length < (height > 44 ? width : width / 2 - 24) && height > 18;
}

/** Returns the outline of a box of a size around its center; if the size is null, that of a point. */
function outline(size, radius, extra, attributes = {}) {
  if (!size) return node("circle", { r: radius + extra, ...attributes });
  const [width, height] = size.map((value) => value + 2 * extra);
  return node("rect", { x: -width / 2, y: -height / 2, width, height, rx: 4, ...attributes });
}

/** Returns the place of a point's number, on the side away from the other points. */
function outward([x, y], middle) {
  const [dx, dy] = [x - middle[0], y - middle[1]];
  const length = Math.hypot(dx, dy) || 1;
  const [right, down] = length > 1 ? [dx / length, dy / length] : [0, -1];
  const reach = matchMedia("(max-width: 52rem)").matches ? 42 : 30; // the size of the letters
  return { x: (right * reach).toFixed(1), y: (down * reach + 8).toFixed(1) };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);

export const FOOT = SLOTS - 30; // below are the special slots, and clicks add no elements
