"""Search the settings of a training on your own examples, by Optuna (Akiba et al. 2019).

Trial 0 has the defaults. Each trial trains on all folds but one and is measured on that one, for
each fold in turn, so every example is measured by a model that did not learn from it, nor from
another example of its group. Optuna's journal, in the output folder, keeps the trials, so a stopped
search goes on.
"""

import contextlib
import io
import json
import math
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptrnet import models, plugins
from ptrnet.data.infer_task import InferredTask, infer_task_of
from ptrnet.data.streams import draw_held_out
from ptrnet.errors import DivergedError, InputError, check_int, check_package, short
from ptrnet.evaluation import LOG_LIKELIHOOD
from ptrnet.files import exists
from ptrnet.metrics import Measure, Moments
from ptrnet.settings import Bounds, check
from ptrnet.solver.evaluating import evaluated
from ptrnet.solver.predict import predictor_of
from ptrnet.tasks.custom import Custom
from ptrnet.training import run_folder
from ptrnet.training.own_data import infer_recipe, recipe_of
from ptrnet.training.positions import features_read
from ptrnet.training.recipe import NOT_TUNED, Recipe
from ptrnet.types import Dataset, Floats, Indices

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

JOURNAL, MODEL = "study.journal", "model"  # in the output folder: Optuna's file, the final model
NAME = "ptrnet"  # of the study in the journal
# What to search: multiples of the default, or values. A setting is searched if the network has it,
# and the user does not give it. Not `ensemble`, because more networks are rarely worse and take
# longer. Not `trees`, because the validation examples of each training decide how much they count.
MULTIPLES = {"hidden_size": (0.5, 1, 2), "learning_rate": (0.25, 0.5, 1, 2, 4)}
VALUES = {
    "layers": (1, 2),
    "encoder_layers": (1, 2, 3),
    "decoder_layers": (1, 2),
    "octaves": (0, 3, 5, 7),
    "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "weight_decay": (0.0, 0.005, 0.02, 0.08, 0.3),
}
# A trial stops if it is worse than the best one, by Wilcoxon's signed-rank test of the means of the
# blocks of each fold. With 13 blocks or fewer, SciPy's test of ties would take half a second.
BLOCKS, WORSE = 16, 0.05
ATTEMPTS = 10  # so often, Optuna may propose settings that were tried; then chance decides

Space = dict[str, list[int | float]]


@dataclass(frozen=True)
class Tuning:
    """The result of a search. As a text, it is the report of `ptrnet tune`.

    Args:
        metric: the name of the measure. Higher is better.
        options: the options of the best trial that differ from the defaults, for `ptrnet.fit`.
        defaults: the measure of the defaults.
        best: the measure of the best trial.
        difference: the mean of the differences between both, example by example.
        examples: what was measured, in words.
        best_trial: the number of the best trial; 0 is the defaults.
        trials: the number of trials.
        stopped: how many of them were stopped early.
        command: the command that trains the best settings on all examples.
    """

    metric: str
    options: dict[str, int | float]
    defaults: Measure
    best: Measure
    difference: Measure
    examples: str
    best_trial: int
    trials: int
    stopped: int
    command: str

    def __str__(self) -> str:
        rows = [("defaults", self.defaults, "")]
        if self.best_trial:
            rows.append((f"trial {self.best_trial}", self.best, _described(self.options)))
            rows.append(("difference", self.difference, ""))
        lines = [
            f"{self.examples}; {self.trials} trial{'s' * (self.trials != 1)}, of which "
            f"{self.stopped} stopped early",
            f"{'':<12}{self.metric:>16}  95% interval",
        ]
        for name, measure, text in rows:
            value, interval = measure.value_and_interval(4)
            lines.append(f"{name:<12}{value:>16}  {interval:<20}  {text}".rstrip())
        if not self.best_trial and self.trials > 1:
            lines.append("no trial is better than the defaults")
        if self.best_trial:
            if self.difference.low is None or self.difference.low <= 0:
                lines.append("the interval of the difference contains 0: the defaults do as well")
            lines.append(
                "on new data, expect a smaller difference, because chance helped to choose the "
                f"best of {self.trials} trials"
            )
        return "\n".join([*lines, "to train the best settings on all examples:", self.command])


def tune(
    path: str | Path,
    *,
    output: str | Path,
    trials: int = 30,
    folds: int = 5,
    seconds: float | None = None,
    **recipe: Any,
) -> Tuning:
    """Search the settings of a training on a file of examples, and measure its defaults.

    The measure is the mean log-likelihood for choices, and the main metric of the kind for other
    answers. All trials have the same folds, which never separate the examples of a group. The same
    seed gives the same trials, unless `seconds` ends the search.

    Args:
        path: a file that `ptrnet train --data` reads.
        output: the folder of the search. If it has a search with the same arguments, that one goes
            on. `trials` and `seconds` may differ.
        trials: the number of trials. The first one has the defaults.
        folds: the number of folds, 2 or more.
        seconds: start no further training after this many seconds, except those with the defaults.
        recipe: options of `ptrnet train`, as in `ptrnet.fit`. These settings are not searched.

    Returns:
        The measures of the defaults and of the best trial. `Tuning.options` are its options.

    Raises:
        InputError: an argument is wrong, or the folder has another search. Nothing was written.
        MissingExtraError: the extra "tune" or "train" is not installed.
        DivergedError: a training with the defaults diverged.

    Examples:
        >>> columns = {"set_id": "order", "chosen": "bought", "group": "customer"}
        >>> found = ptrnet.tune("orders.csv", output="tuned", trials=30, **columns)
        >>> model = ptrnet.fit("orders.csv", **columns, **found.options)
    """
    check_package("optuna", "tuning", "tune")
    check_package("lightning_fabric", "training", "train")
    trials, folds = check_int("trials", trials, 1), check_int("folds", folds, 2)
    if seconds is not None:
        seconds = check("seconds", seconds, float, Bounds(gt=0))
    for key in NOT_TUNED:
        if key in recipe:
            raise InputError(f"tune: {key} cannot be given; ptrnet train has it")
    made, text, data = infer_recipe(str(path), recipe)
    space = search_space(made, recipe)
    trials = min(trials, math.prod(map(len, space.values())))
    groups = data.groups
    units = len(data) if groups is None else len(np.unique(groups))
    if units < folds:
        what = "examples" if groups is None else "groups"
        raise InputError(f"folds: {path} has {units} {what}, which are too few for {folds} folds")
    parts = draw_held_out(np.arange(len(data)), 1.0, len(data), made.run.seed, folds, groups)
    folder = Path(output)
    pinned = {**made.table(), "data": data.fingerprint, "folds": folds, "space": space}
    with _study(folder, str(path), pinned) as study:
        print(f"{path}: {text}", file=sys.stderr)
        search = _Search(str(path), recipe, made, data, parts, space, study)
        search.run(trials, seconds, folder)
        return search.result(folder)


def search_space(recipe: Recipe, given: Mapping[str, Any]) -> Space:
    """Return the settings to search: the possible values of each, its default included.

    Raises:
        InputError: there is no setting to search.
    """
    table, space = recipe.table(), Space()
    for key in (*MULTIPLES, *VALUES):
        default = table.get(key)
        has_effect = key != "weight_decay" or recipe.optimiser.optimizer in ("adamw", "muon")
        if default is None or key in given or not has_effect:
            continue
        values = [default * factor for factor in MULTIPLES.get(key, ())] or VALUES[key]
        rounded = {default, *(type(default)(float(f"{value:.6g}")) for value in values)}
        if key == "hidden_size" and "heads" in table:
            rounded = {size for size in rounded if size % table["heads"] == 0}
        space[key] = sorted(rounded)
    if not space or recipe.model in models.AT_ONCE:
        raise InputError(f"tune: there is no setting of model {recipe.model} to search")
    return space


@contextlib.contextmanager
def _study(folder: Path, path: str, pinned: Mapping[str, Any]) -> Iterator["Study"]:
    """Open the study in a folder, or create it. Lock the folder, and silence Optuna.

    Args:
        path: the file of the examples, for a message.
        pinned: what all trials of a study have in common.

    Raises:
        InputError: the folder has another study, or is in use, or its journal is damaged.
    """
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    run_folder.check_unused(folder)
    run_folder.create(folder)
    journal, now = folder / JOURNAL, json.loads(json.dumps(pinned))
    with contextlib.ExitStack() as stack:
        stack.enter_context(run_folder.locked(folder))
        stack.callback(optuna.logging.set_verbosity, optuna.logging.get_verbosity())
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        # A process that was killed may have left a line without its end, and Optuna's own lock.
        Path(f"{journal}.lock").unlink(missing_ok=True)
        if exists(journal) and not (content := journal.read_bytes()).endswith(b"\n"):
            os.truncate(journal, content.rfind(b"\n") + 1)
        with _quiet():  # Optuna says that this pruner is experimental
            pruner = optuna.pruners.WilcoxonPruner(p_threshold=WORSE)
        try:
            storage = JournalStorage(JournalFileBackend(str(journal)))
            if storage.get_all_studies():
                study = optuna.load_study(study_name=NAME, storage=storage, pruner=pruner)
            else:
                study = optuna.create_study(
                    study_name=NAME, storage=storage, pruner=pruner, direction="maximize"
                )
            before, trials = study.user_attrs.get("settings", now), study.get_trials()
        except OSError:
            raise
        except Exception:  # whatever Optuna raises for lines that are not its own
            raise InputError(f"{journal}: is damaged; name another folder") from None
        if before["data"] != now["data"]:
            raise InputError(f"{path}: has changed since the search began; name another folder")
        for key in now:
            if before.get(key) != now[key]:
                raise InputError(
                    f"{folder}: has a search with {key} = {short(before.get(key), 100)}, which "
                    f"cannot go on with {short(now[key], 100)}; name another folder"
                )
        if "settings" not in study.user_attrs:
            study.set_user_attr("settings", now)
        for trial in trials:  # of a process that was killed
            if trial.state == optuna.trial.TrialState.RUNNING:
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        yield study


@dataclass(frozen=True)
class _Search:
    """A search, whose trials are in an open study.

    A trial has a place: its number among the trials that ended. Optuna also numbers trials of
    processes that were killed.
    """

    path: str
    given: Mapping[str, Any]
    recipe: Recipe
    data: Dataset
    parts: Sequence[Indices]
    space: Space
    study: "Study"  # Optuna's study

    def run(self, trials: int, seconds: float | None, folder: Path) -> None:
        """Run the trials that are missing, with a line on standard error for each of them."""
        began, before = time.monotonic(), len(self._ended())
        if before >= trials:
            print(f"{folder}: the search is finished, with {before} trials", file=sys.stderr)
        for place in range(before, trials):
            until = began + seconds if seconds is not None and place else None
            outcome = self._run_trial(place, until)
            if outcome is None:
                print(
                    f"{folder}: stopped after {seconds:g} seconds, with {place} of {trials} "
                    "trials; the same command goes on",
                    file=sys.stderr,
                )
                return
            elapsed = time.monotonic() - began
            left = elapsed / (place + 1 - before) * (trials - place - 1)
            if seconds is not None:
                left = min(left, max(0.0, seconds - elapsed))
            best, more = self.study.best_trial, trials - place - 1
            print(
                f"trial {place}: {outcome}; best {best.value:.4f} (trial {self._place(best)}); "
                f"{more} trial{'s' * (more != 1)} and {left / 60:.0f} min left",
                file=sys.stderr,
            )

    def result(self, folder: Path) -> Tuning:
        """Compare the best trial with the defaults."""
        ended, best = self._ended(), self.study.best_trial
        defaults, of_best = (self._all_scores(trial.params) for trial in (ended[0], best))
        options, groups = self._options(best.params), self.data.groups
        of_groups = "" if groups is None else f" in {len(np.unique(groups)):,} groups"
        return Tuning(
            metric=self._metric,
            options=options,
            defaults=self._moments(defaults).measure(),
            best=self._moments(of_best).measure(),
            difference=self._moments(of_best - defaults).measure(),
            examples=f"{len(self.data):,} examples{of_groups}, {len(self.parts)} folds",
            best_trial=self._place(best),
            trials=len(ended),
            stopped=sum(trial.state.name == "PRUNED" for trial in ended),
            command=_command(self.path, {**self.given, **options}, folder / MODEL),
        )

    @property
    def _metric(self) -> str:
        facts = self.recipe.task.facts
        return LOG_LIKELIHOOD if facts.kind == "choice" else facts.metric

    def _trials(self, *states: str) -> "list[FrozenTrial]":
        trials = self.study.get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state.name in states]

    def _ended(self) -> "list[FrozenTrial]":
        """Return the trials that ended, early or not, by their places."""
        return self._trials("COMPLETE", "PRUNED")

    def _place(self, trial: "FrozenTrial") -> int:
        return [other.number for other in self._ended()].index(trial.number)

    @property
    def _defaults(self) -> dict[str, Any]:
        """The parameters of the first trial."""
        table = self.recipe.table()
        return {key: table[key] for key in self.space}

    def _options(self, params: Mapping[str, Any]) -> dict[str, int | float]:
        """Return the parameters of a trial that differ from the defaults."""
        defaults = self._defaults
        return {key: value for key, value in params.items() if value != defaults[key]}

    def _run_trial(self, place: int, until: float | None) -> str | None:
        """Run a trial. Return its outcome in words, or None if it did not end in time."""
        from optuna.trial import TrialState

        trial = self._ask(place)
        options = self._options(trial.params)
        settings = f", with {_described(options)}" if options else ", with the defaults"
        with _quiet():
            assert isinstance(self.recipe.task, Custom)
            inferred = InferredTask(self.recipe.task, self.data)
            recipe = recipe_of(inferred, self.path, {**self.given, **options})
        scores = np.full(len(self.data), np.nan)
        for fold, rows in enumerate(self.parts):
            if until is not None and time.monotonic() > until:
                return None
            try:
                scores[rows] = self._scores(trial, recipe, fold)
            except DivergedError:
                if not place:
                    raise
                self.study.tell(trial, state=TrialState.PRUNED)
                return f"diverged{settings}"
            self._report(trial, scores[rows], fold)
            with _quiet():
                is_worse = fold + 1 < len(self.parts) and trial.should_prune()
            if is_worse:
                self.study.tell(trial, state=TrialState.PRUNED)
                return f"stopped after {fold + 1} of {len(self.parts)} folds{settings}"
        value = self._moments(scores).measure().value
        if value is None:
            raise InputError(f"{self.path}: {self._metric} is not defined for these examples")
        self.study.tell(trial, value)
        return f"{self._metric} {value:.4f}{settings}"

    def _ask(self, place: int) -> "Trial":
        """Begin a trial with new settings. The first one has the defaults.

        The settings depend only on the seed, the place and the trials that ended. So a search that
        was stopped has the same trials as one that was not.
        """
        from optuna.samplers import RandomSampler, TPESampler
        from optuna.trial import TrialState

        if not place and not self._trials("WAITING"):
            self.study.enqueue_trial(self._defaults)
        tried = [trial.params for trial in self._ended()]
        for attempt in count():
            seed = np.random.default_rng([self.recipe.run.seed, place, attempt]).integers(2**31)
            sampler = TPESampler if attempt < ATTEMPTS else RandomSampler
            self.study.sampler = sampler(seed=int(seed))
            trial = self.study.ask()
            for key, values in self.space.items():
                trial.suggest_categorical(key, values)
            if trial.params not in tried:
                break
            self.study.tell(trial, state=TrialState.FAIL)
        return trial

    def _scores(self, trial: "Trial", recipe: Recipe, fold: int) -> Floats:
        """Return the scores of a fold's examples. Train only if no trial has them yet.

        An earlier trial may have had the same settings, or may be that of a process that was
        killed.
        """
        known = self._known(trial.params, fold)
        if known is not None:
            return known
        rows = self.parts[fold]
        rest = np.setdiff1d(np.arange(len(self.data)), rows)
        learned, tested = (
            Dataset.of([self.data[row] for row in part.tolist()]) for part in (rest, rows)
        )
        scores = fold_scores(recipe, learned, tested, self._metric)
        trial.set_user_attr(_key(fold), scores.tolist())
        return scores

    def _known(self, params: Mapping[str, Any], fold: int) -> Floats | None:
        """Return the scores of a fold in the first trial with these parameters that has them."""
        for trial in self.study.get_trials(deepcopy=False):
            if trial.params == params and _key(fold) in trial.user_attrs:
                return np.array(trial.user_attrs[_key(fold)], float)
        return None

    def _report(self, trial: "Trial", scores: Floats, fold: int) -> None:
        """Report the mean gain over the defaults in each block of a fold, for the pruner.

        It compares means of all blocks so far, so they must not depend on how difficult a fold is.
        A block has whole groups.
        """
        rows, groups, weights = self.parts[fold], self.data.groups, self.data.weights
        _, units = np.unique(rows if groups is None else groups[rows], return_inverse=True)
        of_rows = np.ones(len(rows)) if weights is None else weights[rows]
        of_defaults = self._known(self._defaults, fold)
        assert of_defaults is not None  # the first trial was not stopped
        gains = scores - of_defaults
        for block in range(BLOCKS):
            chosen = units * BLOCKS // (units.max() + 1) == block
            mean = Moments.of(gains[chosen], weights=of_rows[chosen]).measure().value
            if mean is not None and np.isfinite(mean):
                trial.report(mean, fold * BLOCKS + block)

    def _all_scores(self, params: Mapping[str, Any]) -> Floats:
        """Return the scores `(B,)` of all examples in a trial that was not stopped."""
        scores = np.empty(len(self.data))
        for fold, rows in enumerate(self.parts):
            scores[rows] = self._known(params, fold)
        return scores

    def _moments(self, scores: Floats) -> Moments:
        return Moments.of(scores, self.data.groups, self.data.weights)


def fold_scores(recipe: Recipe, learned: Dataset, tested: Dataset, metric: str) -> Floats:
    """Train on the other folds, and return the scores `(B,)` of the fold's examples.

    The scaling follows from the examples that the training learns from, as if `ptrnet train` had a
    file of these examples. Categories that they do not have count as none.

    Args:
        recipe: what to train. Its task may know all examples.
        learned: the examples of the other folds.
        tested: the B examples of the fold.
        metric: a metric of `ptrnet evaluate`. A score is NaN if the metric is not defined.
    """
    from ptrnet.training.run import train

    task, path = recipe.task, recipe.data.data
    assert isinstance(task, Custom)
    with tempfile.TemporaryDirectory() as scratch, _quiet():
        own = infer_task_of(learned, task, path, task.kind, task.context).task
        # Answers of the fold may be longer than those of all others.
        own = replace(own, longest_answer=task.longest_answer, longest_share=task.longest_share)
        saved = train(replace(recipe, task=own), Path(scratch) / "run", data=learned)
        if (schema := own.facts.schema) is not None:
            is_new = schema.is_category & (learned.elements == learned.elements[0]).all(0)
            tested = replace(
                tested, elements=np.where(is_new, learned.elements[0], tested.elements)
            )
        scored = evaluated(predictor_of(saved.model, saved.task), features_read(tested, saved))
    return np.array([extra.get(metric, np.nan) for extra in scored.column("extra")], float)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hide warnings, and what a training prints."""
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _key(fold: int) -> str:
    """Return the name under which Optuna's journal has the scores of a fold."""
    return f"scores of fold {fold}"


def _described(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items())


def _command(path: str, options: Mapping[str, Any], output: Path) -> str:
    """Return the command line of a training."""
    words = ["ptrnet", "train"]
    for file in plugins.files():
        words += ["--plugins", file]
    for key, value in {"data": path, **options, "output": output}.items():
        flag = key.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            is_list = isinstance(value, list | tuple)
            words += [f"--{flag}", ",".join(map(str, value)) if is_list else str(value)]
    return shlex.join(words)
