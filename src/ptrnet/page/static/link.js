// The instance and how it is answered, in the address's fragment: a link to send.

import { TASKS } from "./tasks.js";
import { parseInstance } from "./instance_text.js";

/** What stands in a fragment; only what is right of it. */
export function readLink(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const task = fields.get("task");
  if (!(task in TASKS)) return {};
  const state = { task };
  if (fields.get("model")) state.model = fields.get("model");
  if (["greedy", "beam"].includes(fields.get("decoder"))) state.decoder = fields.get("decoder");
  const size = Number(fields.get("beam"));
  if (Number.isInteger(size) && size >= 1 && size <= 32) state.beamSize = size;
  try {
    state.instance = parseInstance((fields.get("elements") ?? "").replaceAll(";", "\n"), task);
  } catch {
    return state;
  }
  return state;
}

/** The fragment that says all of it. */
export function writeLink({ task, model, decoder, beamSize, instance }) {
  const elements = instance.map((element) => element.join(",")).join(";");
  const beam = decoder === "beam" ? `&beam=${beamSize}` : "";
  return `#task=${task}&model=${encodeURIComponent(model)}&decoder=${decoder}${beam}&elements=${elements}`;
}
