// Beam search; a beam of one is greedy decoding. Numbers are added as float32, as PyTorch does.

const FRAME = 16; // ms after which the page gets a turn: to draw, and to end the search

/**
 * @param {object} model with `step(state, tokens)` and `gather(state, parents)`
 * @param {object} state of the model, encoded
 * @param {object} constraint of the answer
 * @param {number} size prefixes that are kept
 * @param {number} maxTokens of the answer, END left out
 * @param {AbortSignal} signal ends the search between two steps
 * @returns {Promise<{steps: object[], score: number}>} what a service's trace has
 */
export async function search(model, state, constraint, size, maxTokens, signal) {
  let prefixes = [{ token: 0, score: 0, ended: false, constraintState: constraint.start() }];
  const steps = [];
  let resumed = performance.now();
  for (let step = 0; step <= maxTokens; step += 1) {
    if (performance.now() - resumed > FRAME) {
      await new Promise((resolve) => setTimeout(resolve));
      resumed = performance.now();
    }
    signal?.throwIfAborted();
    const last = prefixes.map((prefix) => prefix.token);
    const { logProbs, state: next } = await model.step(state, last);
    const mustEnd = step >= maxTokens;
    const rows = prefixes.map((prefix, k) => mask(prefix, logProbs[k], constraint, mustEnd));
    const selected = select(prefixes, rows, size);
    steps.push({
      probabilities: rows.map((row) => row.map(probability)),
      prefixes: selected.map(({ parent, token, score }) => ({
        parent,
        token,
        log_likelihood: score,
      })),
    });
    if (!selected.length) throw new Error("the model's log-probabilities are not finite");
    state = model.gather(next, selected.map(({ parent }) => parent));
    prefixes = selected.map(({ parent, token, score }) => ({
      token,
      score,
      ended: prefixes[parent].ended || token === 0,
      constraintState: prefixes[parent].ended
        ? prefixes[parent].constraintState
        : constraint.advance(prefixes[parent].constraintState, token),
    }));
    if (prefixes[0].ended) break;
  }
  return { steps, score: prefixes[0].score };
}

/** The log-probabilities of a prefix's next tokens, -Infinity where one may not come. */
function mask(prefix, logProbs, constraint, mustEnd) {
  if (prefix.ended) return Array.from(logProbs, (_, token) => (token === 0 ? 0 : -Infinity));
  if (mustEnd) return Array.from(logProbs, (value, token) => (token === 0 ? value : -Infinity));
  const allowed = constraint.allowed(prefix.constraintState);
  return Array.from(logProbs, (value, token) => (allowed[token] ? value : -Infinity));
}

/** The likeliest extensions, the likeliest first. */
function select(prefixes, rows, size) {
  const extensions = [];
  rows.forEach((row, parent) => {
    row.forEach((value, token) => {
      const score = Math.fround(prefixes[parent].score + value);
      if (score > -Infinity) extensions.push({ parent, token, score });
    });
  });
  extensions.sort((a, b) => b.score - a.score);
  return extensions.slice(0, size);
}

function probability(logProb) {
  return logProb === -Infinity ? null : Math.round(Math.exp(logProb) * 1e6) / 1e6;
}
