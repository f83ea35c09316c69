// The controls next to the board: tasks, model, decoder, and the instance as text.

import { MAX_ELEMENTS, TASKS, randomInstance } from "./tasks.js";
import { parseInstance, writeInstance } from "./instance_text.js";

const byId = (id) => document.getElementById(id);

export class Controls {
  /**
   * @param {object[]} models the source's models
   * @param {object} host callbacks: `update(fields, {play})`, `undo()`, `remove()`, `task(name)`,
   *   `label(name)`, and `link()`, which returns the address
   */
  constructor(models, host) {
    this.models = models;
    this.host = host;
    this.#makeTabs();
    byId("model").addEventListener("change", (event) => host.update({ model: event.target.value }));
    byId("decoder").addEventListener("change", (e) => host.update({ decoder: e.target.value }));
    byId("beam-size").addEventListener("change", () => this.#changeBeam());
    byId("random").addEventListener("click", () => this.#drawRandom());
    byId("clear").addEventListener("click", () => host.update({ instance: [] }));
    byId("undo").addEventListener("click", () => host.undo());
    byId("remove").addEventListener("click", () => host.remove());
    byId("label").addEventListener("change", (event) => host.label(event.target.value));
    byId("copy").addEventListener("click", () => this.#copyLink());
    byId("text").addEventListener("input", () => this.#readText());
  }

  /** The tasks that the models serve, in the page's order. */
  get tasks() {
    return Object.keys(TASKS).filter((task) => this.models.some((model) => model.task === task));
  }

  /** Returns the models of a task. A model with the name of the task comes first. */
  modelsOf(task) {
    const models = this.models.filter((model) => model.task === task);
    return models.sort((a, b) => (b.name === task) - (a.name === task));
  }

  /** Shows the state. The text does not change while the user edits it. */
  write(state) {
    const { task, model, decoder, beamSize, instance, selected } = state;
    this.task = task;
    byId(`task-${task}`).checked = true;
    byId("hint").textContent = TASKS[task].hint;
    const models = this.modelsOf(task);
    const options = models.map(({ name, n, settings: { direction } }) => {
      const facts = [direction, n && `trained on ${n}`].filter(Boolean).join("; ");
      return optionOf(name, facts ? `${name} (${facts})` : name);
    });
    byId("model").replaceChildren(...options);
    byId("model").value = model;
    const labels = models.find(({ name }) => name === model)?.labels ?? [];
    byId("label").replaceChildren(optionOf("", "none"), ...labels.map((label) => optionOf(label, label)));
    byId("label").value = instance[selected]?.[4] ?? "";
    byId("label-field").hidden = !labels.length || !(selected in instance);
    byId("exact-field").hidden = !TASKS[task].isExact;
    byId("decoder").value = decoder;
    byId("beam-size").value = String(beamSize);
    byId("beam-label").hidden = decoder !== "beam";
    byId("board").setAttribute("aria-label", `Board of ${instance.length} elements`);
    byId("remove").disabled = selected < 0;
    byId("undo").disabled = !state.history.length;
    byId("clear").disabled = !instance.length;
    byId("text-label").textContent = `${TASKS[task].lines} You can paste your own.`;
    if (document.activeElement !== byId("text")) {
      byId("text").value = writeInstance(instance);
      this.#complain("");
    }
  }

  #makeTabs() {
    for (const task of this.tasks) {
      const input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "task", id: `task-${task}`, value: task });
      input.addEventListener("change", () => this.host.task(task));
      const label = document.createElement("label");
      label.htmlFor = input.id;
      label.textContent = TASKS[task].title;
      byId("tasks").append(input, label);
    }
  }

  #changeBeam() {
    const size = Math.round(Number(byId("beam-size").value));
    this.host.update({ beamSize: Math.min(32, Math.max(1, size || 1)) });
  }

  #drawRandom() {
    const count = Math.round(Number(byId("count").value));
    const { minElements } = TASKS[this.task];
    const drawn = Math.min(MAX_ELEMENTS, Math.max(minElements, count || 1));
    byId("count").value = drawn;
    const instance = randomInstance(this.task, drawn);
    this.host.update({ instance }, { play: true });
  }

  #readText() {
    try {
      const instance = parseInstance(byId("text").value, this.task);
      this.#complain("");
      this.host.update({ instance });
    } catch (error) {
      this.#complain(error.message);
    }
  }

  #complain(message) {
    byId("text-error").textContent = message;
    byId("text").setAttribute("aria-invalid", String(message !== ""));
  }

  async #copyLink() {
    const button = byId("copy");
    try {
      await navigator.clipboard.writeText(this.host.link());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy the address instead";
    }
    setTimeout(() => {
      button.textContent = "Copy link";
    }, 1500);
  }
}

function optionOf(value, text) {
  const option = document.createElement("option");
  [option.value, option.textContent] = [value, text];
  return option;
}
