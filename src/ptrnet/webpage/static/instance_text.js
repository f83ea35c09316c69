// Converts between an instance and text: one element per line, or JSON.

import { MAX_ELEMENTS, TASKS } from "./tasks.js";

const LARGEST = 1e100; // so that squares and areas do not overflow

/** Returns the elements in a text. Throws an Error with one line if the text is not an instance. */
export function parseInstance(text, task) {
  const trimmed = text.trim();
  const rows = /^[[{]/.test(trimmed) ? parseJson(trimmed, task) : parseLines(text, task);
  if (rows.length > MAX_ELEMENTS) {
    throw new Error(`expected at most ${MAX_ELEMENTS} elements, got ${rows.length}`);
  }
  return rows;
}

/** Writes one element per line. */
export function writeInstance(instance) {
  return instance.map((element) => element.join(", ")).join("\n");
}

function parseLines(text, task) {
  const { features } = TASKS[task];
  const rows = [];
  const lines = text.split(/\r?\n/);
  const filled = lines.map((line) => line.trim()).filter((line) => line !== "");
  const comma = lines.findIndex((line) => line.includes(","));
  if (features === 1 && filled.length > 1 && comma >= 0 && filled.every(isNumberOfOneWord)) {
    const word = lines[comma].trim().slice(0, 20);
    throw new Error(`line ${comma + 1}: expected a number such as 0.5, got "${word}"`);
  }
  lines.forEach((line, k) => {
    const words = line.trim().split(/[\s,;]+/).filter((word) => word !== "");
    if (!words.length) return;
    const label = features === 4 && isLabel(words[4]) ? words.splice(4, 1) : [];
    const numbers = words.map((word) => toNumber(word, `line ${k + 1}`));
    if (features === 1) {
      rows.push(...numbers.map((number) => [number])); // a line may have several numbers
      return;
    }
    check(numbers, features, `line ${k + 1}`);
    rows.push([...numbers, ...label]);
  });
  return rows;
}

function parseJson(text, task) {
  const { features } = TASKS[task];
  let rows;
  try {
    rows = JSON.parse(text);
  } catch {
    throw new Error("expected a JSON list of elements, such as [[0.1, 0.2], [0.3, 0.4]]");
  }
  let labels = null;
  if (features === 4 && rows.boxes) [rows, labels] = [rows.boxes, rows.labels ?? null];
  if (!Array.isArray(rows)) throw new Error("expected a JSON list of elements");
  if (labels && labels.length !== rows.length) {
    throw new Error(`expected a label or null for each of ${rows.length} boxes, got ${labels.length}`);
  }
  return rows.map((row, k) => {
    const numbers = Array.isArray(row) ? row : [row];
    check(numbers, features, `element ${k + 1}`);
    if (!numbers.every((number) => Number.isFinite(number) && Math.abs(number) <= LARGEST)) {
      throw new Error(`element ${k + 1}: expected numbers from ${-LARGEST} to ${LARGEST}`);
    }
    const label = labels?.[k] ?? null;
    if (label !== null && !isLabel(label)) {
      throw new Error(`element ${k + 1}: expected a label such as title, or null, got ${JSON.stringify(label)}`);
    }
    return label === null ? numbers : [...numbers, label];
  });
}

/** Whether a value can be the name of a label. The source of answers knows which labels there are. */
const isLabel = (value) => typeof value === "string" && /^[a-z]\w*$/i.test(value);

/** Whether a line is one number, perhaps with a decimal comma. Several numbers have spaces between them. */
function isNumberOfOneWord(line) {
  return /^[-+]?\d+([.,]\d+)?$/.test(line);
}

function toNumber(word, place) {
  const number = Number(word);
  if (!Number.isFinite(number) || Math.abs(number) > LARGEST) {
    const range = Number.isNaN(number) ? "" : ` from ${-LARGEST} to ${LARGEST}`;
    throw new Error(`${place}: expected a number${range}, got "${word.slice(0, 20)}"`);
  }
  return number;
}

function check(numbers, features, place) {
  if (numbers.length !== features) {
    const plural = features === 1 ? "number" : "numbers";
    throw new Error(`${place}: expected ${features} ${plural}, got ${numbers.length}`);
  }
  const [left, top, right, bottom] = numbers;
  if (left > right) throw new Error(`${place}: expected left <= right, got ${left} and ${right}`);
  if (top > bottom) throw new Error(`${place}: expected top <= bottom, got ${top} and ${bottom}`);
}
