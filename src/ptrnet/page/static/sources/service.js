// Answers of a service: the one that this page comes from.

/** A complaint of the service, one line; `status` is HTTP's, 0 where it cannot be reached. */
export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Service {
  #token = null; // in memory alone

  name = "Answered by the service at this address.";

  useToken(token) {
    this.#token = token;
  }

  /** The models: name, task, architecture, and the sizes that each was trained on. */
  async models() {
    const { models } = await this.#ask("v1/models");
    return models;
  }

  /** How the answer to one instance comes about: a `TraceResponse`. */
  trace({ model, instance, decoder, beamSize }, signal) {
    const body = { instance, decoder };
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
