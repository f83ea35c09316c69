// Answers from this browser: runs exported models by onnxruntime, decodes, and checks the answers.

import { compare, label } from "../exact/label.js";
import { nearPair } from "../exact/points.js";
import { tourLength } from "../exact/tour.js";
import { maxTokens, readAnswer, scale, tokensOf } from "../search/answer.js";
import { search } from "../search/beam.js";
import { buildConstraint } from "../search/constraints.js";
import { Graphs } from "./graphs.js";

const MODELS = new URL("../../models/", import.meta.url);

export class Onnx {
  #graphs = new Map();
  #last = Promise.resolve(); // one search at a time, because searches share the graphs

  name = "Answered in this browser by onnxruntime; nothing is sent anywhere.";

  async models() {
    const response = await fetch(new URL("models.json", MODELS));
    if (!response.ok) throw new Error("models/models.json is missing beside this page");
    return response.json();
  }

  /** Returns the answer in the form of a service's trace. */
  trace(question, signal) {
    const answer = this.#last.then(() => this.#trace(question, signal));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #trace({ model, instance, decoder, beamSize }, signal) {
    signal?.throwIfAborted();
    const graphs = await this.#load(model);
    const { manifest } = graphs;
    const numSpecials = manifest.tokens.specials.length;
    check(instance, manifest);
    const read = scale(numbersOf(instance, manifest.inputs), manifest.inputs.scaling);
    const state = await graphs.encode(read);
    const constraint = buildConstraint(manifest.constraint, instance.length, numSpecials);
    const longest = maxTokens(manifest.answer.max_tokens, instance.length);
    const size = decoder === "beam" ? beamSize : 1;
    const { steps, score } = await search(graphs, state, constraint, size, longest, signal);
    const tokens = tokensOf(steps, steps.length - 1, 0);
    const outputs = readAnswer(tokens, manifest.answer.kind, numSpecials);
    const task = manifest.task.name;
    const exact = label(task, instance);
    return {
      task,
      model,
      decoder,
      special_names: manifest.tokens.specials,
      tokens: [...tokens, 0],
      steps,
      answer: {
        outputs,
        log_likelihood: score,
        cost: task === "tsp" ? tourLength(instance, outputs) : null,
        warnings: warningsOf(manifest, read),
      },
      exact,
      ...compare(task, instance, outputs, exact),
      pending: false,
    };
  }

  #load(name) {
    if (!this.#graphs.has(name)) {
      const loading = Graphs.load(new URL(`${encodeURIComponent(name)}/`, MODELS));
      loading.catch(() => this.#graphs.delete(name)); // so that the next request tries again
      this.#graphs.set(name, loading);
    }
    return this.#graphs.get(name);
  }
}

function check(instance, manifest) {
  const { only, min } = manifest.inputs.elements;
  if (instance.length < min || (only !== null && instance.length !== only)) {
    const expected = only === null ? `${min} or more` : `${only}`;
    throw new Error(`expected ${expected} elements, got ${instance.length}`);
  }
  if (manifest.task.name === "delaunay" && !label("delaunay", instance)) {
    throw new Error("all points lie on one line: they have no triangulation");
  }
}

/** Returns boxes with numbers of their labels, 0 if there is none; other instances as they are. */
function numbersOf(instance, { instance: format }) {
  if (format?.kind !== "boxes") return instance;
  return instance.map(([left, top, right, bottom, label], i) => {
    const number = label === undefined ? 0 : format.labels.indexOf(label) + 1;
    if (label !== undefined && !number) {
      throw new Error(`box ${i + 1}: unknown label '${label}'; known: ${format.labels.join(", ")}`);
    }
    return [left, top, right, bottom, number];
  });
}

/** Returns warnings about how the scaled instance differs from the training. */
function warningsOf({ inputs }, read) {
  const warnings = [];
  const trained = String(inputs.elements.trained ?? ""); // such as "5-50,60"
  const sizes = (trained.match(/\d+/g) ?? []).map(Number);
  const [low, high, n] = [Math.min(...sizes), Math.max(...sizes), read.length];
  if (n < low || n > high) {
    const range = low < high ? `${low}-${high}` : low;
    warnings.push(`the model was trained on instances of ${range} elements, this one has ${n}`);
  }
  const pair = nearPair(read, inputs.resolution);
  if (pair) warnings.push(`elements ${pair.join(" and ")} are nearer than the model can tell apart`);
  return warnings;
}
