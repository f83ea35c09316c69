// The page's state: an instance, a source of answers, and the views that show them.

import { Controls } from "./controls.js";
import { Latest } from "./latest.js";
import { readLink, writeLink } from "./link.js";
import { MAX_ELEMENTS, TASKS, randomInstance } from "./tasks.js";
import { Board } from "./view/board.js";
import { Frame } from "./view/frame.js";
import { Pen } from "./view/pen.js";
import { Player } from "./view/player.js";
import { writePrefixes, writeStep } from "./view/steps.js";
import { factsOf, verdictOf } from "./view/messages.js";

const UNDONE = 100; // the number of instances that "Undo" can restore
const LINKED = 200; // ms between a change and the new address, because browsers limit how often it may change
const [SOON, OFTEN] = [2500, 30]; // ms between requests for an exact answer, and how many of them

const byId = (id) => document.getElementById(id);
const state = {
  task: "hull",
  model: "",
  decoder: "greedy",
  beamSize: 4,
  instance: [],
  trace: null,
  selected: -1,
  other: null, // a prefix of the beam to draw
  history: [],
};
let [source, controls, frame, willPlay, isStepping, retries] = [null, null, null, false, false, 0];
let linking = 0;
let followed = ""; // the address's fragment when we last read or wrote it

const board = new Board(byId("board"));
const player = new Player(() => {
  isStepping = true;
  writeAll();
});
const latest = new Latest(answer);

/** Draws the board, and writes the texts next to it. */
function writeAll() {
  state.other = null;
  draw();
  writeStep(state.trace, player.position);
  writePrefixes(state.trace, player.position, choosePrefix);
  byId("step-text").setAttribute("aria-live", player.isPlaying ? "off" : "polite");
}

function draw() {
  const { task, instance, selected } = state;
  const trace = isOfInstance(state.trace) ? state.trace : null;
  const exact = byId("show-exact").checked;
  const { position } = player;
  const other = state.other;
  board.draw({ frame, task, instance, trace, position, exact, other, selected, isStepping });
}

/** Whether a trace belongs to the current elements, so that it can be drawn over them. */
function isOfInstance(trace) {
  if (!trace || trace.task !== state.task) return false;
  return trace.steps[0].probabilities[0].length === trace.special_names.length + state.instance.length;
}

/** Shows the state, and requests its answer. */
function refresh() {
  controls.write(state);
  clearTimeout(linking);
  linking = setTimeout(link, LINKED);
  if (!isOfInstance(state.trace)) setTrace(null);
  draw();
  retries = 0;
  latest.ask();
}

/**
 * Writes the state to the address, and returns the address. An address that the user just entered
 * stays as it is, because we read it next.
 */
function link() {
  clearTimeout(linking);
  if (location.hash === followed) {
    history.replaceState(null, "", writeLink(state));
    followed = location.hash;
  }
  return location.href;
}

async function answer(signal) {
  const { task, model, decoder, beamSize, instance } = state;
  complain("");
  if (instance.length < TASKS[task].minElements) {
    setTrace(null);
    say(`Draw ${TASKS[task].minElements - instance.length} more.`, "open");
    return;
  }
  const busy = setTimeout(() => {
    document.body.classList.add("busy");
    if (!state.trace) say("One moment …", "open"); // a model may be loading
  }, 300);
  try {
    setTrace(await source.trace({ model, instance, decoder, beamSize }, signal));
    if (state.trace.pending && retries < OFTEN) setTimeout(askAgain, SOON);
  } catch (error) {
    if (error.name === "AbortError") return;
    setTrace(null);
    say("No answer.", "open");
    complain(error.message);
    if (error.status === 401) askForToken();
  } finally {
    clearTimeout(busy);
    document.body.classList.remove("busy");
  }
}

function askAgain() {
  retries += 1;
  if (state.trace?.pending) latest.ask();
}

function setTrace(trace) {
  const isSame = trace && state.trace && String(trace.tokens) === String(state.trace.tokens);
  state.trace = trace;
  const { text, mood } = trace ? verdictOf(trace) : { text: "", mood: "open" };
  say(text, mood);
  byId("facts").textContent = trace ? factsOf(trace) : "";
  byId("warning").hidden = true;
  if (trace) {
    const warnings = trace.answer.warnings.map((text) => text.split(";")[0]); // without the advice for the command line
    byId("warning").textContent = `Unlike the training: ${warnings.join("; ")}.`;
    byId("warning").hidden = !trace.answer.warnings.length;
  }
  if (isSame && !willPlay) {
    writeAll();
    return;
  }
  player.reset(trace ? trace.tokens.length : 0);
  isStepping = false;
  draw();
  if (trace && willPlay) {
    willPlay = false;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) player.play();
  }
}

function say(text, mood) {
  const verdict = byId("verdict");
  if (verdict.textContent !== text) verdict.textContent = text;
  verdict.dataset.mood = mood;
}

function complain(message) {
  byId("error").textContent = message;
  byId("error").hidden = message === "";
}

function choosePrefix(prefix) {
  state.other = prefix;
  draw();
}

function remember() {
  state.history = [...state.history, state.instance].slice(-UNDONE);
}

function update(fields, { play = false } = {}) {
  latest.giveUp();
  if ("instance" in fields) {
    remember();
    state.selected = -1;
  }
  Object.assign(state, fields);
  frame = new Frame(state.task, state.instance);
  willPlay = play;
  refresh();
}

function changeTask(task) {
  const [model] = controls.modelsOf(task);
  const isAlike = TASKS[task].features === TASKS[state.task].features;
  const fits = isAlike && state.instance.length >= TASKS[task].minElements;
  const instance = fits ? state.instance : randomInstance(task, TASKS[task].count);
  state.task = task;
  update({ model: model.name, instance }, { play: true });
  state.history = [];
  controls.write(state);
}

function addElement(place) {
  if (state.instance.length >= MAX_ELEMENTS) {
    complain(`The page takes at most ${MAX_ELEMENTS} elements.`);
    return null;
  }
  remember();
  const grip = frame.begin(place);
  if (grip.element) {
    state.instance = state.instance.toSpliced(grip.i, 0, grip.element);
    if (!frame.isPlane) frame.count = state.instance.length;
  }
  state.selected = grip.element ? grip.i : -1; // a box joins the others when it is drawn
  refresh();
  return grip;
}

function moveElement(grip, place) {
  const { length } = state.instance;
  if (grip.i > length || (grip.element && grip.i === length)) return; // it was removed meanwhile
  state.instance = state.instance.toSpliced(grip.i, 1, frame.moved(grip, place));
  state.selected = grip.i;
  refresh();
}

function dropElement({ i, element }) {
  const isDrawn = !element && i < state.instance.length;
  if (isDrawn && frame.isTiny(state.instance[i], i)) {
    undo();
    return;
  }
  frame = new Frame(state.task, state.instance);
  refresh();
}

function setLabel(label) {
  const { instance, selected } = state;
  if (!(selected in instance)) return;
  remember();
  const numbers = instance[selected].slice(0, 4);
  state.instance = instance.with(selected, label ? [...numbers, label] : numbers);
  refresh();
}

function removeElement(i) {
  if (i >= 0) update({ instance: state.instance.toSpliced(i, 1) });
}

function undo() {
  const earlier = state.history.filter((instance) => instance !== state.instance);
  if (!earlier.length) return;
  update({ instance: earlier.at(-1) });
  state.history = earlier.slice(0, -1);
  controls.write(state);
}

function askForToken() {
  const form = byId("token-form");
  form.hidden = false;
  byId("token").focus();
  return new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      source.useToken(byId("token").value.trim());
      byId("token").value = "";
      form.hidden = true;
      complain("");
      resolve();
      if (controls) latest.ask();
    };
  });
}

async function loadModels() {
  for (;;) {
    try {
      return await source.models();
    } catch (error) {
      complain(error.message);
      if (error.status !== 401) throw error;
      await askForToken();
    }
  }
}

/** The pen's callbacks. */
const hand = {
  find: (place, reach) => frame.find(state.instance, place, reach),
  add: addElement,
  move: moveElement,
  drop: dropElement,
  remove: removeElement,
  select: (i) => {
    state.selected = i;
    remember();
    refresh();
  },
  cross: (place) => {
    board.drawCross(place);
    byId("cross").textContent = place ? `Cross at ${frame.element(place).join(", ")}` : "";
  },
};

/** Shows the state of a link if its models are here; otherwise a random instance. */
function begin({ complaint, ...linked }) {
  const isThere = controls.tasks.includes(linked.task);
  const task = isThere ? linked.task : controls.tasks[0];
  const names = controls.modelsOf(task).map((model) => model.name);
  const model = names.includes(linked.model) ? linked.model : names[0];
  const isDrawn = isThere && linked.instance?.length;
  const instance = isDrawn ? linked.instance : randomInstance(task, TASKS[task].count);
  update({ ...linked, task, model, instance }, { play: true });
  state.history = [];
  controls.write(state);
  if (linked.task && !isThere) {
    complain(`The link is for task ${linked.task}, but there is no model for this task here.`);
  } else if (complaint) {
    complain(complaint);
  } else if (linked.model && linked.model !== model) {
    complain(`The link is for model ${linked.model}, which is not here; ${model} answers instead.`);
  }
}

async function start() {
  const kind = document.querySelector('meta[name="source"]').content;
  const { Onnx, Service } = await import(`./sources/${kind}.js`);
  source = new (Service ?? Onnx)();
  byId("origin").textContent = source.name;
  const models = (await loadModels()).filter((model) => model.task in TASKS);
  if (!models.length) throw new Error("There is no model of a task that this page draws.");
  const remove = () => removeElement(state.selected);
  controls = new Controls(models, { update, undo, link, remove, task: changeTask, label: setLabel });
  byId("show-exact").addEventListener("change", draw);
  const follow = () => begin(readLink((followed = location.hash)));
  addEventListener("hashchange", follow);
  follow();
  new Pen(byId("board"), hand); // last, because it needs a board to draw on
}

start().catch((error) => complain(error.message));
