// Describes a step next to the board: the chosen token, its probability, and the beam's other prefixes.

import { distributionAt, pathOf, prefixesAt } from "../walk.js";
import { actionOf, nameOf, percent } from "./messages.js";

const [BARS, MIN_PROBABILITY] = [6, 0.0005]; // at most 6 bars, for probabilities of at least 0.05%

const byId = (id) => document.getElementById(id);

/** Writes the step at a position; position 0 is before the first token. */
export function writeStep(trace, position) {
  const slider = byId("position");
  const total = trace?.tokens.length ?? 0;
  byId("step-title").textContent = total ? `Step ${position} of ${total}` : "Step";
  byId("bars").replaceChildren();
  if (!trace) {
    byId("step-text").textContent = "";
    slider.setAttribute("aria-valuetext", "no answer");
    return;
  }
  const step = Math.max(0, position - 1);
  const distribution = distributionAt(trace, step).filter(([, value]) => value !== null);
  distribution.sort((a, b) => b[1] - a[1]);
  const currentToken = trace.tokens[step];
  const probability = distribution.find(([token]) => token === currentToken)?.[1] ?? 0;
  const text = position
    ? actionOf(trace, currentToken, probability, distribution.length === 1)
    : `It has not pointed yet; ${nameOf(trace, distribution[0][0])} is likeliest.`;
  byId("step-text").textContent = text;
  slider.setAttribute("aria-valuetext", `step ${position} of ${total}: ${text}`);
  byId("bars").replaceChildren(
    ...distribution
      .filter(([token, value], k) => k === 0 || token === currentToken || value >= MIN_PROBABILITY)
      .slice(0, BARS)
      .map(([token, value]) => bar(trace, token, value, token === currentToken && position > 0)),
  );
}

function bar(trace, token, value, isChosen) {
  const item = document.createElement("li");
  const name = document.createElement("span");
  name.textContent = nameOf(trace, token);
  const meter = document.createElement("span");
  meter.className = "meter";
  meter.append(document.createElement("span"));
  meter.firstChild.style.width = `${100 * value}%`;
  const share = document.createElement("span");
  share.textContent = percent(value);
  item.append(name, meter, share);
  if (isChosen) item.className = "chosen";
  return item;
}

/**
 * Lists the beam's prefixes after the step at a position.
 * @param {(prefix: object | null) => void} choose called with the prefix to draw
 */
export function writePrefixes(trace, position, choose) {
  const details = byId("beam-details");
  details.hidden = !trace || trace.decoder !== "beam";
  const items = byId("prefixes");
  if (details.hidden) {
    items.replaceChildren();
    return;
  }
  const step = Math.max(0, position - 1);
  const answered = pathOf(trace)[step];
  const prefixes = prefixesAt(trace, step);
  // Relative to the best prefix, because forced tokens can make all prefixes unlikely.
  const best = prefixes[0].logLikelihood;
  const total = prefixes.reduce((sum, prefix) => sum + Math.exp(prefix.logLikelihood - best), 0);
  const rows = prefixes.map((prefix, k) => {
    const button = document.createElement("button");
    button.type = "button";
    const numSpecials = trace.special_names.length;
    const names = prefix.tokens.map((t) => (t < numSpecials ? trace.special_names[t] : t - numSpecials));
    const end = prefix.ended ? " end" : "";
    const share = percent(Math.exp(prefix.logLikelihood - best) / total);
    button.textContent = `${share}  ${names.join(" ")}${end}`;
    if (k === answered) button.className = "own";
    for (const name of ["focus", "pointerenter"]) {
      button.addEventListener(name, () => choose(k === answered ? null : prefix));
    }
    for (const name of ["blur", "pointerleave"]) button.addEventListener(name, () => choose(null));
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  items.replaceChildren(...rows);
}
