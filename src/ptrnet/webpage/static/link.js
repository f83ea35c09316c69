// Keeps the instance, model and decoder in the address's fragment, so that users can share a link.

import { TASKS } from "./tasks.js";
import { parseInstance } from "./instance_text.js";

/** Returns the valid fields of a fragment, and a `complaint` if its elements are invalid. */
export function readLink(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const task = fields.get("task");
  if (task === null) return {};
  if (!Object.hasOwn(TASKS, task)) return { task };
  const state = { task };
  if (fields.get("model")) state.model = fields.get("model");
  if (["greedy", "beam"].includes(fields.get("decoder"))) state.decoder = fields.get("decoder");
  const size = Number(fields.get("beam"));
  if (Number.isInteger(size) && size >= 1 && size <= 32) state.beamSize = size;
  try {
    state.instance = parseInstance((fields.get("elements") ?? "").replaceAll(";", "\n"), task);
  } catch (error) {
    state.complaint = `The elements in the link are invalid: ${error.message}`;
  }
  return state;
}

/** Returns the fragment with all fields. */
export function writeLink({ task, model, decoder, beamSize, instance }) {
  const elements = instance.map((element) => element.join(",")).join(";");
  const beam = decoder === "beam" ? `&beam=${beamSize}` : "";
  return `#task=${task}&model=${encodeURIComponent(model)}&decoder=${decoder}${beam}&elements=${elements}`;
}
