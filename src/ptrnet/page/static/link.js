// The instance and how it is answered, in the address's fragment: a link to send.

import { TASKS } from "./tasks.js";
import { parseInstance } from "./instance_text.js";

/** What stands in a fragment; only what is right of it, and a `complaint` where its elements are not. */
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
    state.complaint = `The link's elements are left out: ${error.message}`;
  }
  return state;
}

/** The fragment that says all of it. */
export function writeLink({ task, model, decoder, beamSize, instance }) {
  const elements = instance.map((element) => element.join(",")).join(";");
  const beam = decoder === "beam" ? `&beam=${beamSize}` : "";
  return `#task=${task}&model=${encodeURIComponent(model)}&decoder=${decoder}${beam}&elements=${elements}`;
}
