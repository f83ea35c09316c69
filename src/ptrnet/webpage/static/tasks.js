// The tasks that the page shows. They do not depend on the source of answers.

export const MAX_ELEMENTS = 200;

export const TASKS = {
  hull: {
    title: "Convex hull",
    features: 2,
    minElements: 1,
    count: 14,
    hint: "Click to add points, drag them, double-click one to remove it.",
    element: "point",
    isExact: true, // whether the answers can be compared with exact ones
    lines: "x and y in each line.",
  },
  delaunay: {
    title: "Triangulation",
    features: 2,
    minElements: 3,
    count: 9,
    hint: "Click to add points, drag them, double-click one to remove it.",
    element: "point",
    isExact: true,
    lines: "x and y in each line.",
  },
  tsp: {
    title: "Tour",
    features: 2,
    minElements: 1,
    count: 12,
    hint: "Click to add cities, drag them, double-click one to remove it. The tour starts at city 0.",
    element: "city",
    isExact: true,
    lines: "x and y in each line.",
  },
  sort: {
    title: "Sorting",
    features: 1,
    minElements: 1,
    count: 10,
    hint: "A number's height is its value. Click to add numbers, drag them up and down.",
    element: "number",
    isRanked: true, // the answer orders all elements: the board shows places in it, and a path, not a ring
    isExact: true,
    lines: "One number per line.",
  },
  "reading-order": {
    title: "Reading order",
    features: 4, // left, top, right and bottom, y down; a fifth item is the name of a label
    minElements: 1,
    count: 12,
    hint: "Drag on empty ground to draw a box. Drag a box to move it, its edge to resize it; double-click one to remove it.",
    element: "box",
    isRanked: true,
    lines: 'Left, top, right, bottom and perhaps a label in each line, or JSON with "boxes" and "labels".',
  },
};

/** Returns random elements, rounded to three digits after the decimal point. */
export function randomInstance(task, count) {
  const { features } = TASKS[task];
  if (features === 4) return randomPage(count);
  return Array.from({ length: count }, () => Array.from({ length: features }, () => rounded(Math.random())));
}

/** Returns the boxes of a page, in random order: title, two columns, a figure with its caption, footer. */
function randomPage(count) {
  const boxes = [];
  const add = (label, ...sides) => boxes.push([...sides.map(rounded), label]);
  if (count > 2) add("title", 0.2, 0.03, 0.8, 0.08);
  if (count > 3) add("page_footer", 0.4, 0.95, 0.6, 0.975);
  const rest = count - boxes.length;
  addColumn(add, 0.13, 0.485, Array(Math.ceil(rest / 2)).fill("text"));
  const labels = Array(Math.floor(rest / 2)).fill("text");
  if (labels.length > 2) labels.splice(Math.floor(Math.random() * (labels.length - 1)), 2, "picture", "caption");
  addColumn(add, 0.515, 0.87, labels);
  for (let k = count - 1; k > 0; k -= 1) {
    const j = Math.floor(Math.random() * (k + 1));
    [boxes[k], boxes[j]] = [boxes[j], boxes[k]];
  }
  return boxes;
}

/** Adds a column of boxes of random heights, one for each label. */
function addColumn(add, left, right, labels) {
  const [first, last] = [0.12, 0.93]; // top and bottom of a column
  const heights = labels.map((label) => ({ picture: 1.5, caption: 0.4 })[label] ?? 0.5 + Math.random());
  const unit = (last - first) / heights.reduce((sum, height) => sum + height, 0);
  let top = first;
  labels.forEach((label, k) => {
    add(label, left, top, right, top + heights[k] * unit * 0.88);
    top += heights[k] * unit;
  });
}

const rounded = (value) => Math.round(value * 1000) / 1000;
