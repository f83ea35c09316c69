// The four tasks. They do not depend on the source of answers.

export const MAX_ELEMENTS = 200;

export const TASKS = {
  hull: {
    title: "Convex hull",
    features: 2,
    minElements: 1,
    count: 14,
    hint: "Click to add points, drag them, double-click one to remove it.",
    element: "point",
  },
  delaunay: {
    title: "Triangulation",
    features: 2,
    minElements: 3,
    count: 9,
    hint: "Click to add points, drag them, double-click one to remove it.",
    element: "point",
  },
  tsp: {
    title: "Tour",
    features: 2,
    minElements: 1,
    count: 12,
    hint: "Click to add cities, drag them, double-click one to remove it. The tour starts at city 0.",
    element: "city",
  },
  sort: {
    title: "Sorting",
    features: 1,
    minElements: 1,
    count: 10,
    hint: "A number's height is its value. Click to add numbers, drag them up and down.",
    element: "number",
  },
};

/** Returns random elements, rounded to three digits after the decimal point. */
export function randomInstance(task, count) {
  const { features } = TASKS[task];
  const number = () => Math.round(Math.random() * 1000) / 1000;
  return Array.from({ length: count }, () => Array.from({ length: features }, number));
}
