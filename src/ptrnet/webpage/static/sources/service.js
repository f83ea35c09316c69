// Answers from the service that serves this page.

/** An error of the service, in one line. `status` is the HTTP status, or 0 if the service cannot be reached. */
export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Service {
  #token = null; // kept only in memory

  name = "Answered by the service at this address.";

  useToken(token) {
    this.#token = token;
  }

  /** Returns the models: name, task, architecture, and the sizes of the training. */
  async models() {
    const { models } = await this.#ask("v1/models");
    return models;
  }

  /** Returns the answer to one instance, step by step: a `TraceResponse`. */
  trace({ model, instance, decoder, beamSize }, signal) {
    const body = { instance: requestOf(instance), decoder };
    if (decoder === "beam") body.beam_size = beamSize;
    const path = `v1/models/${encodeURIComponent(model)}/trace`;
    const headers = { "Content-Type": "application/json" };
    return this.#ask(path, { method: "POST", body: JSON.stringify(body), headers, signal });
  }

  async #ask(path, options = {}) {
    const headers = { ...options.headers };
    if (this.#token !== null) headers.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(new URL(path, document.baseURI), { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServiceError("The service does not answer. Is it still running?", 0);
    }
    const content = await response.json().catch(() => ({}));
    if (!response.ok) {
      throw new ServiceError(content.detail ?? `HTTP ${response.status}`, response.status);
    }
    return content;
  }
}

/** Returns an instance as a request has it: boxes with their labels apart. */
function requestOf(instance) {
  if (instance[0].length < 4) return instance;
  return {
    boxes: instance.map((box) => box.slice(0, 4)),
    labels: instance.map((box) => box[4] ?? null),
  };
}
