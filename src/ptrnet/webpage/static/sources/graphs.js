// Runs the two graphs of an exported model by onnxruntime in the browser.

import * as ort from "../../runtime/ort.wasm.min.mjs";

ort.env.wasm.numThreads = 1; // because more threads need a cross-origin isolated page
ort.env.wasm.wasmPaths = new URL("../../runtime/", import.meta.url).href;
ort.env.logLevel = "error";

export class Graphs {
  #encoder;
  #step;
  #fixed = {}; // outputs of the encoder, which are inputs of every step

  constructor(encoder, step, manifest) {
    [this.#encoder, this.#step, this.manifest] = [encoder, step, manifest];
  }

  /** Loads a model's folder. Refuses files that differ from the manifest. */
  static async load(folder) {
    const manifest = await (await fetchFile(new URL("manifest.json", folder))).json();
    const [encoder, step] = await Promise.all(
      [manifest.encoder, manifest.step].map(async ({ file }) => {
        const integrity = `sha256-${hexToBase64(manifest.files[file].sha256)}`;
        const response = await fetchFile(new URL(file, folder), { integrity });
        return ort.InferenceSession.create(new Uint8Array(await response.arrayBuffer()));
      }),
    );
    return new Graphs(encoder, step, manifest);
  }

  /** Returns the state before the first step. The instance must be scaled for the model. */
  async encode(instance) {
    const [elements, features] = [instance.length, instance[0].length];
    const inputs = new ort.Tensor("float32", instance.flat(), [1, elements, features]);
    const lengths = new ort.Tensor("int64", [BigInt(elements)], [1]);
    const feeds = pick({ inputs, lengths }, this.#encoder.inputNames);
    const values = await this.#encoder.run(feeds);
    this.#fixed = values;
    return stateOf(values, "state_");
  }

  /** Returns the log-probabilities of each prefix's next token, and the state after this step. */
  async step(state, tokens) {
    const feeds = { ...this.#fixed };
    state.forEach((tensor, k) => {
      feeds[`state_${k}`] = tensor;
    });
    feeds.tokens = new ort.Tensor("int64", tokens.map(BigInt), [1, tokens.length]);
    const values = await this.#step.run(pick(feeds, this.#step.inputNames));
    const { data, dims } = values.log_probs;
    const logProbs = tokens.map((_, k) => data.slice(k * dims[2], (k + 1) * dims[2]));
    return { logProbs, state: stateOf(values, "next_state_") };
  }

  /** Returns the state in which prefix k continues the former prefix `parents[k]`. */
  gather(state, parents) {
    return state.map(({ type, data, dims }) => {
      const width = dims.slice(2).reduce((product, size) => product * size, 1);
      const gathered = new data.constructor(width * parents.length);
      parents.forEach((parent, k) => {
        gathered.set(data.subarray(parent * width, (parent + 1) * width), k * width);
      });
      return new ort.Tensor(type, gathered, [1, parents.length, ...dims.slice(2)]);
    });
  }
}

async function fetchFile(url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url.pathname}: HTTP ${response.status}`);
  return response;
}

function stateOf(values, prefix) {
  const state = [];
  while (`${prefix}${state.length}` in values) state.push(values[`${prefix}${state.length}`]);
  return state;
}

const pick = (values, names) => Object.fromEntries(names.map((name) => [name, values[name]]));

function hexToBase64(hex) {
  return btoa(String.fromCharCode(...hex.match(/../g).map((pair) => parseInt(pair, 16))));
}
