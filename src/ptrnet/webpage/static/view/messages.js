// The texts about an answer and about a step.

import { TASKS } from "../tasks.js";

/** Returns how good the answer is: a sentence, and "right", "wrong" or "open". */
export function verdictOf(trace) {
  const { task, exact, correct, answer, metrics } = trace;
  if (task === "reading-order") {
    const text = `Read in this order, ${percent(Math.exp(answer.log_likelihood))} sure.`;
    return { text, mood: "open" };
  }
  if (!exact) {
    const text = trace.pending ? "Answered; the exact answer is still being computed." : "Answered.";
    return { text: exact === null && !trace.pending ? `${text} No exact answer is known.` : text, mood: "open" };
  }
  if (task === "tsp") return tourVerdict(answer, exact, correct, metrics);
  if (correct) {
    const isOne = exact.outputs.length === 1;
    const what = {
      hull: `Right: the hull has ${isOne ? "this" : "these"} ${count(exact.outputs.length, "vertex", "vertices")}.`,
      delaunay: `Right: ${isOne ? "this" : "these"} ${count(exact.outputs.length, "triangle")} ${isOne ? "is" : "are"} a Delaunay triangulation.`,
      sort: "Right: the numbers are in order.",
    };
    return { text: what[task] ?? "Right.", mood: "right" };
  }
  return { text: `Wrong: ${mistake(trace)}.`, mood: "wrong" };
}

function tourVerdict(answer, exact, correct, { gap }) {
  const length = `length ${answer.cost?.toFixed(3)}`;
  if (correct) return { text: `Right: no tour is shorter, ${length}.`, mood: "right" };
  if (exact.proved) {
    const text = `Not the shortest: ${percent(gap)} longer, ${length} instead of ${exact.cost.toFixed(3)}.`;
    return { text, mood: "wrong" };
  }
  const other = "the shortest tour is not known";
  if (gap > 1e-9) {
    const shorter = percent(gap / (1 + gap));
    return { text: `A tour of ${length}. A local search found one that is ${shorter} shorter; ${other}.`, mood: "open" };
  }
  return { text: `A tour of ${length}. A local search found none that is shorter; ${other}.`, mood: "open" };
}

function mistake({ task, answer, exact, metrics }) {
  if (task === "hull") {
    const [named, known] = [new Set(answer.outputs), new Set(exact.outputs)];
    const missing = [...known].filter((i) => !named.has(i));
    const extra = [...named].filter((i) => !known.has(i));
    const parts = [];
    if (missing.length) parts.push(`${list(missing)} missing`);
    if (extra.length) parts.push(`${list(extra)} too many`);
    return parts.join(", ") || "the vertices are in another order";
  }
  if (task === "delaunay") {
    const right = Math.round(metrics.triangle_coverage * exact.outputs.length);
    return `${right} of the ${count(exact.outputs.length, "triangle")} ${right === 1 ? "is" : "are"} right`;
  }
  const wrong = answer.outputs.filter((i, k) => i !== exact.outputs[k]).length;
  return `${count(wrong, "number")} out of place`;
}

/** Returns the model, the decoder, the answer's log-probability, and the labeller of the exact answer. */
export function factsOf(trace) {
  const { answer, exact } = trace;
  const sure = `log-probability ${short(answer.log_likelihood)}`;
  const by = exact ? ` · compared with ${exact.labeller}${exact.proved ? "" : ", not proved"}` : "";
  return `${trace.model}, ${trace.decoder} · ${sure}${by}`;
}

/** Describes the step in which the model chose a token. */
export function actionOf(trace, token, probability, isForced) {
  const name = nameOf(trace, token);
  if (isForced) return name === "end" ? "Nothing is left: it ends." : `Only ${name} is allowed here.`;
  const sure = `${percent(probability)} sure`;
  if (name === "end") return `It ends its answer, ${sure}.`;
  if (name === "none") return `It says that this edge has no triangle, ${sure}.`;
  return `It points at ${name}, ${sure}.`;
}

/** Returns the name of a token: that of a special slot, or an element's number. */
export function nameOf(trace, token) {
  const numSpecials = trace.special_names.length;
  if (token < numSpecials) return trace.special_names[token].toLowerCase();
  return `${TASKS[trace.task].element} ${token - numSpecials}`;
}

export function percent(value) {
  if (value >= 0.9995) return "100%";
  if (value < 0.0005) return value === 0 ? "0%" : "<0.1%";
  return `${(value * 100).toFixed(value < 0.1 ? 2 : 1)}%`;
}

const short = (value) => (Math.abs(value) < 0.0005 ? "0.000" : value.toFixed(3)).replace("-", "−");
const count = (number, word, words = `${word}s`) => `${number} ${number === 1 ? word : words}`;
const list = (indices) => (indices.length > 6 ? `${indices.length} vertices` : indices.join(", "));
