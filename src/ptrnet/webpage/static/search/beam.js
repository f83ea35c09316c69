// Beam search; a beam of one is greedy decoding. Scores are float32, as in PyTorch, so that both choose
// the same tokens.

const FRAME = 16; // ms after which we yield to the browser, so that it can draw, or abort the search

/**
 * @param {object} model with `step(state, tokens)` and `gather(state, parents)`
 * @param {object} state the model's state after encoding
 * @param {object} constraint the answer's constraint
 * @param {number} size number of prefixes to keep
 * @param {number} maxTokens of the answer, without END
 * @param {AbortSignal} signal ends the search between two steps
 * @returns {Promise<{steps: object[], score: number}>} in the form of a service's trace
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

/** Returns the log-probabilities of a prefix's next tokens; -Infinity for tokens that are not allowed. */
function mask(prefix, logProbs, constraint, mustEnd) {
  if (prefix.ended) return Array.from(logProbs, (_, token) => (token === 0 ? 0 : -Infinity));
  if (mustEnd) return Array.from(logProbs, (value, token) => (token === 0 ? value : -Infinity));
  const allowed = constraint.allowed(prefix.constraintState);
  return Array.from(logProbs, (value, token) => (allowed[token] ? value : -Infinity));
}

/** Returns the likeliest extensions, the likeliest first. */
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
