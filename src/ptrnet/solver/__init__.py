"""`Solver`: a trained model with its task, which answers instances in memory and in files."""

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from ptrnet import model_folder, tasks
from ptrnet.data.arrays import rows_like
from ptrnet.data.dataset import examples_of, has_answer, instances_of, one_example
from ptrnet.decoding import Decoder
from ptrnet.errors import InputError, ModelError, unknown
from ptrnet.files import exists
from ptrnet.kernels import parts_of
from ptrnet.models.base import PointerModel, num_weights
from ptrnet.parallel import LOCAL
from ptrnet.run import CHUNK, Memory, Sink, Source, run
from ptrnet.settings import from_mapping, options_of
from ptrnet.solver.answer import Answer, cost_of
from ptrnet.solver.predict import Predictor, predictor_of, sample_answers
from ptrnet.solver.trained_range import TrainedRange
from ptrnet.tasks.base import Task
from ptrnet.types import Dataset, Ends, Example, Floats, Indices

if TYPE_CHECKING:
    from torch import Tensor

    from ptrnet.data.columns import Columns
    from ptrnet.data.tables import Table
    from ptrnet.evaluation import Evaluation
    from ptrnet.solver.coefficients import Coefficients
    from ptrnet.solver.simulate import Simulation

Result = TypeVar("Result")


def solve_source(
    predictor: Predictor,
    trained_range: TrainedRange,
    source: Source,
    sink: Sink[Result],
    activity: str = "",
    jobs: int = 1,
    backend: str = LOCAL,
) -> Result:
    """Answer the instances of a source, give the answers to a sink, and return its result.

    Warn about instances that are out of distribution. All answers go through this function, except
    those of `Solver.answer`, which carry their warnings, and those that are only scored
    (`ptrnet.solver.evaluating`, `ptrnet.solver.explain`).
    """
    chunks = trained_range.warned(source.chunks, predictor.decoder, at_once=sink.is_live)
    source = source._replace(chunks=chunks)
    if sink.is_live:  # answers lines as they arrive
        return run(source, predictor, sink)
    return run(source, predictor.for_many(source.num_rows), sink, activity, jobs, backend)


class Solver:
    """Answers instances of one task with one trained network.

    Args:
        model: the network.
        task: the task that the network was trained for, with the task's settings.
        trained: facts about the training, as the model's files store them.
        card: the model card, in Markdown. Empty if the model has no card.

    Raises:
        ModelError: the network has another number of features or special slots than the task.
            Special slots are the tokens that are not elements, such as END.

    Examples:
        >>> model = ptrnet.load("hull")  # a Solver
        >>> model.solve([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
        array([0, 1, 2, 3])
    """

    def __init__(
        self,
        model: PointerModel,
        task: Task,
        trained: dict[str, Any] | None = None,
        card: str = "",
    ) -> None:
        for what, built, needed in (
            ("features", model.features, task.facts.num_features),
            ("special slots", model.num_specials, task.facts.num_specials),
        ):
            if built != needed:
                raise ModelError(
                    f"the task {task.name} needs a network of {needed} {what}, got one of {built}"
                )
        self.model, self.task, self.trained = model.eval(), task, trained or {}
        self.trained_range = TrainedRange(task, self.trained)
        self.card = card

    def _with_settings(self, settings: Mapping[str, Any]) -> "Solver":
        """Return the same network with other settings of its task; see `Facts.free_settings`.

        Raises:
            InputError: the task has no such setting, or a network is trained for it.
        """
        free = self.task.facts.free_settings
        for name in settings.keys() - set(free):
            raise unknown(f"setting that a model of {self.task.name} leaves open", name, free)
        task = tasks.get(self.task.name, **{**tasks.settings_of(self.task), **settings})
        return Solver(self.model, task, self.trained, self.card)

    @property
    def _network(self) -> PointerModel:
        """The network in evaluation mode, even if the user has left `model` in training mode."""
        if any(part.training for part in parts_of(self.model)):
            self.model.eval()
        return self.model

    def solve(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        set_id: str = "",
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        **fields: Any,
    ) -> Any:
        """Return the answer to one instance, or a list of answers to several.

        The model reads points in the unit square. If a point is outside of this square, or if all
        points extend over less than 1/64 in x and in y, the model shifts and scales the points to
        fill the square. A model of your own examples standardizes each feature as in training.

        Models cannot distinguish elements that are very close to each other. If an answer is right
        except for very close elements, the tasks `sort`, `hull` and `delaunay` correct it exactly.

        Args:
            instances: one instance is an array, tensor or frame `(n, d)`, or nested lists of this
                shape. If d = 1, the shape `(n,)` is accepted, too. Several instances are a list of
                instances, an array `(B, n, d)` or a `Dataset`. Numbers are real, of any type.
            decoder: the search. None means `ptrnet.Greedy()`, which keeps one prefix at each step.
                `ptrnet.Beam(8)` keeps 8.
            set_id: for a table (a frame or a file) in which each row is an element: the name of the
                column that says to which instance a row belongs. The model finds the columns of its
                features by name.
            constrained: whether to consider only answers that the task allows.
            augment: how many views of each instance the model answers, 1 or more. A view is the
                instance itself or a shuffled copy. If the task allows it, a copy is also rotated,
                mirrored or read backwards. The result is the answer with the lowest cost. If the
                task has no cost, the result is the most likely answer over all views.
            improve: whether to improve tours and routes by 2-opt and Or-opt moves until none makes
                them shorter. Other answers stay as they are, and so do all answers without the
                constraint.
            fields: the other fields of one instance, if instances of the task have fields:
                `model.solve(boxes, labels=..., page=...)`.

        Returns:
            An array of 0-based indices. For several instances, a list of arrays.

        Raises:
            InputError: an instance is empty or too large, or has the wrong shape. Or an instance
                holds NaN, infinity, or values that are not real numbers (masked arrays, strings,
                dates, complex numbers).

        Warns:
            OutOfDistributionWarning: instances have extreme features, or numbers of elements that
                are not among the sizes of the training. There is one warning for each kind, with
                counts. The solver does not repeat a warning in later calls.

        Examples:
            >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
            >>> ptrnet.load("hull").solve(square)
            array([0, 1, 2, 3])
            >>> ptrnet.load("tsp").solve([square, square[:3]], ptrnet.Beam(8))  # a list of two
        """
        data, is_one, table = self._read(instances, set_id, fields)
        solved = self.predict(
            data, decoder, constrained=constrained, augment=augment, improve=improve
        )
        answers = solved.all_outputs()
        if table is not None:
            from ptrnet.data.tables import positions_of

            answers = positions_of(table, solved)
            if table.layout.alternatives and self.task.facts.kind == "choice":
                names = np.array([table.layout.names[int(k)] for (k,) in answers])
                return str(names[0]) if is_one else rows_like(names, instances, "chosen")
        return answers[0] if is_one else answers

    def answer(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        set_id: str = "",
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        **fields: Any,
    ) -> Any:
        """Return the answers of `solve` with their log-probability, cost, time and warnings.

        Arguments and errors are those of `solve`. The method itself does not warn, because each
        answer has its warnings.

        Returns:
            An `Answer`. For several instances, a list of answers. `Answer.outputs` is what `solve`
            returns.

        Examples:
            >>> answer = ptrnet.load("hull").answer([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
            >>> answer.outputs, answer.log_prob
            (array([0, 1, 2, 3]), -0.0010545653058215976)
        """
        data, is_one, _ = self._read(instances, set_id, fields)
        for example in data:
            self.trained_range.check_readable(example)
        began = perf_counter()
        predictor = self._predictor(decoder, constrained, augment, improve)
        solved = list(predictor(data))
        seconds = (perf_counter() - began) / max(1, len(solved))
        decoder = predictor.decoder
        answers = [self._answer(example, decoder, seconds) for example in solved]
        return answers[0] if is_one else answers

    def _answer(self, answered: Example, decoder: Decoder, seconds: float) -> Answer:
        assert answered.outputs is not None and answered.log_prob is not None
        return Answer(
            inputs=answered.inputs,
            outputs=answered.outputs,
            log_prob=answered.log_prob,
            cost=cost_of(self.task, answered),
            decoder=decoder.name,
            seconds=seconds,
            warnings=tuple(m.text for m in self.trained_range.messages([answered], decoder)),
            task=self.task,
            elements=_pointed_at(answered),
            example=answered,
        )

    def predict(
        self,
        data: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        jobs: int = 1,
        backend: str = LOCAL,
        activity: str = "",
    ) -> Dataset:
        """Return the instances with the model's answers and their log-probabilities.

        Args:
            data: validated instances: a `Dataset`, or rows of a `Dataset`.
            decoder: as in `solve`. `constrained`, `augment` and `improve` are also as in
                `solve`.
            jobs: the number of processes, 1 or more. -1 means one process per core.
            backend: where the processes run: "local", or a cluster of "dask" or "ray".
            activity: the label of a progress bar. If the label is empty, there is no bar.

        Raises:
            InputError: the decoder cannot be used with the task, or another option is invalid.

        Warns:
            OutOfDistributionWarning: as in `solve`.

        Examples:
            >>> data = ptrnet.generate("hull", n="5-10", count=3, seed=1)  # a Dataset
            >>> solved = ptrnet.load("hull").predict(data)
            >>> [solved.outputs(row).tolist() for row in range(len(solved))]
            [[2, 0, 3, 4], [1, 3, 0, 6], [6, 7, 3, 1, 8, 9]]
        """
        data = Dataset.of(data)
        is_shared = jobs != 1 or backend != LOCAL
        chunks = data.chunks(CHUNK) if activity or is_shared else [data]
        predictor = self._predictor(decoder, constrained, augment, improve)
        source = Source(chunks, len(data), None)
        return solve_source(
            predictor, self.trained_range, source, Memory(), activity, jobs, backend
        )

    def _predictor(
        self,
        decoder: Decoder | None,
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
    ) -> Predictor:
        return predictor_of(self._network, self.task, decoder, constrained, augment, improve)

    def sample(
        self,
        instances: Any,
        size: int = 16,
        *,
        temperature: float = 1.0,
        constrained: bool = True,
        seed: int | None = None,
    ) -> tuple[list[list[Indices]], "Tensor"]:
        """Draw answers at random, and return them with their log-probabilities.

        Use this method in your own learning loop. Unless torch's gradients are off, `log_probs` has
        gradients with respect to the network's weights. The log-probabilities are those of the
        policy that drew the answers: the probabilities of the allowed tokens add up to 1. So
        `((cost - baseline) * log_probs).mean()` has the gradient of REINFORCE. Unlike the answers
        of `solve`, drawn answers are not corrected for nearly equal elements.

        Args:
            instances: as in `solve`. All B instances are answered in one batch. B is 1 if you give
                a single instance.
            size: K, the number of answers to each of the B instances.
            temperature: above 0. Tokens are drawn from p^(1/temperature), where p is the model's
                distribution.
            constrained: whether to draw only answers that the task allows.
            seed: the seed of the draws. None uses torch's generator, so calls differ.

        Returns:
            A pair: for each instance a list of K answers, and the `(B, K)` log-probabilities.

        Raises:
            InputError: there is no instance, an instance cannot be used, or the size or the
                temperature is out of range.

        Examples:
            >>> maps = np.random.default_rng(1).random((16, 12, 2))
            >>> tours, log_probs = ptrnet.load("tsp").sample(maps, 8, seed=1)
            >>> log_probs.shape
            torch.Size([16, 8])
        """
        from ptrnet.constraints import unconstrained
        from ptrnet.decoding import Sample

        data, _ = instances_of(instances, self.task)
        if not len(data):
            raise InputError("instances: expected at least one, got none")
        self.trained_range.warn_of(data)
        constraint = self.task if constrained else unconstrained(self.task.facts)
        return sample_answers(
            self._network,
            self.task,
            [example.inputs for example in data],
            Sample(size, temperature, seed),
            constraint,
        )

    def log_likelihoods(self, examples: Any) -> Any:
        """Return the log-probability that the model gives to each example's answer.

        The method first brings answers into the canonical form that models are trained on.

        Args:
            examples: pairs of inputs `(n, d)` and outputs `(m,)`, in any form that `solve` and
                `fit` take, or `Example`s. A tuple of inputs and outputs is one example.

        Returns:
            `(B,)` float64. For one example, a float.

        Raises:
            InputError: an example cannot be used, or has no answer.
            NotFiniteError: a log-probability is NaN.

        Examples:
            >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
            >>> ptrnet.load("hull").log_likelihoods((square, [0, 1, 2, 3]))
            -0.0010545653058144921
        """
        from ptrnet.solver.scoring import log_likelihoods_of

        known, is_one = self._known(examples)
        log_likelihoods = log_likelihoods_of(self._network, self.task, known)
        return float(log_likelihoods[0]) if is_one else log_likelihoods

    def scores(self, instances: Any, *, set_id: str = "") -> Any:
        """Return a score for each element.

        An element with a higher score is more likely to come first, or to be in the answer.

        For choices, grades and permutations, scores are the logarithms of the probabilities that
        `predict_proba` returns. For sets, subsets and sequences, scores are the log-odds of these
        probabilities.

        Args:
            instances: one or several instances, in any form that `solve` takes.
            set_id: as in `solve`.

        Returns:
            An array `(n,)`. For several instances, a list of arrays. For a frame or another table,
            a number for each row, in the order of the rows: a series with the index of the frame,
            or an array.

        Raises:
            InputError: as in `solve`, or the model was not trained on your own examples.

        Examples:
            >>> offers["score"] = model.scores(offers, set_id="order")
        """
        from ptrnet.solver.scoring import element_scores

        return self._of_elements(element_scores, "score", -np.inf, instances, set_id)

    def predict_proba(self, instances: Any, *, set_id: str = "") -> Any:
        """Return a probability for each element.

        The meaning of the probability depends on the kind of the answers:

        - Choices: the probability that the element is chosen.
        - Grades and permutations: the probability that the element comes first.
        - Sets, subsets and sequences: the probability that the element is in the answer.

        The probabilities of an instance add up to 1 for choices, grades and permutations, but not
        for sets, subsets and sequences.

        Arguments, return values and errors are those of `scores`.

        Examples:
            >>> offers["probability"] = model.predict_proba(offers, set_id="order")
        """
        from ptrnet.solver.scoring import element_probabilities

        return self._of_elements(element_probabilities, "probability", 0.0, instances, set_id)

    def explain(
        self, examples: Any, *, repeats: int = 5, seed: int = 0, group: Any = "", **columns: str
    ) -> dict[str, Any]:
        """Measure the importance of each field: how much a metric falls if the field is shuffled.

        The method is permutation importance (Breiman 2001). The metric is the main metric for the
        kind of answers that the model gives. If two fields hold the same information, the metric
        may hardly fall if only one of the two fields is shuffled.

        Args:
            examples: examples with the true answers, in any form that `evaluate` takes.
            repeats: how often to shuffle each field, 1 or more.
            seed: the seed of the shuffles.
            group: as in `evaluate`.
            columns: the columns of a long table, as in `evaluate`.

        Returns:
            A dictionary. `metric` is the name of the metric, and `value` is the metric's mean over
            `count` instances, with the 95% interval from `low` to `high`. `importance` says for
            each field how much the metric falls, with an interval. The largest fall comes first.

        Raises:
            InputError: as in `evaluate`, or the model was not trained on your own examples.

        Examples:
            >>> model.explain(offers, set_id="order", chosen="bought")["importance"]
        """
        from ptrnet.solver.explain import importance_of

        data = self._with_groups(examples, group, columns)
        predictor = self._predictor(None)
        self._own_task()
        self.trained_range.warn_of(data)
        return importance_of(predictor, data, repeats, seed).to_dict()

    def coefficients(self, errors: str = "") -> "Coefficients":
        """Return the coefficients of a conditional logit, with standard errors, as a table.

        Args:
            errors: the kind of standard errors: "classical" (inverse Hessian), "robust" (sandwich)
                or "clustered" by group. By default clustered if the training knew groups, otherwise
                classical.

        Returns:
            A list with a dictionary for each coefficient: `name`, `coefficient` in the units of the
            data, `std_error`, `z`, `p`, `low` and `high`. `print` shows it as a table. The
            attribute `statistics` has the log-likelihood, McFadden's rho-squared, AIC and others,
            and `notes` has a line about each coefficient that could not be estimated.

        Raises:
            InputError: the model is not a conditional logit, or has no such standard errors.

        Examples:
            >>> pd.DataFrame(model.coefficients("robust"))
        """
        from ptrnet.solver.coefficients import Coefficients

        if "coefficients" not in self.trained:
            raise InputError(
                "coefficients: expected a model that was trained by model conditional-logit"
            )
        return Coefficients.from_dict(self.trained["coefficients"], errors)

    def simulate(
        self,
        sets: Any,
        *,
        group: Any = "",
        **question: Any,
    ) -> "Simulation":
        """Answer what-if questions about choices: shares, elasticities, willingness to pay, ...

        The model must be one of choices (kind `choice`).

        Args:
            sets: the sets, in any form that `solve` takes. Answers are not needed.
            group: as in `evaluate`.
            question: the settings of `ptrnet.data.question.Question`: `change`, `where`, `drop`,
                `by`, `segment`, `elasticity`, `wtp`, `surplus`, `step`, `draws` and `seed`. And the
                columns of a long table: `set_id`, and `weight` for the weights of sets.

        Returns:
            A dictionary of `pandas.DataFrame`s, which `print` shows as a text. Each number has two
            more columns, `_low` and `_high`, with the ends of its interval.

            - `shares`: `before`, `after` and `change`. `diversion` says which part of the buyers
              that rows lose by the change goes to the other rows of each alternative. Without a
              change, there are only the shares `before`.
            - `elasticities`: `elasticity`. `diversion` says which part of the buyers that the
              alternative loses by a small change of its field goes to each other one.
            - `wtp` and `surplus`.

        Raises:
            InputError: an expression cannot be used, changes nothing, or changes a field that the
                model does not read; or the model is not one of choices.
            MissingExtraError: pandas is not installed.

        Examples:
            >>> model.simulate(trips, set_id="trip", by="mode", change="price * 1.1",
            ...     where="mode == train")["shares"]
        """
        from ptrnet.data.groups import grouped
        from ptrnet.data.question import Question
        from ptrnet.solver.simulate import simulate

        asked = Question(
            **{key: question.pop(key) for key in options_of(Question).keys() & question}
        )
        named = {key: name for key, name in question.items() if name}
        if isinstance(group, str) and group:
            named["group"] = group
        opened = self._read_sets(sets, named)
        data = grouped(instances_of(sets, self.task)[0], group) if opened is None else opened[0]
        self.model.eval()
        return simulate(self, data, asked)

    def plot_reliability(
        self, examples: Any, ax: Any = None, *, group: Any = "", **columns: str
    ) -> Any:
        """Draw a reliability diagram: how often the model is right, by the probability it gives.

        The probabilities are those of `predict_proba`. For choices, grades and permutations, the
        diagram shows the highest probability of each example. For sets, subsets and sequences, the
        diagram shows the probabilities of all elements.

        Args:
            examples: examples with the true answers, in any form that `evaluate` takes.
            ax: as in `plot`.
            group: as in `evaluate`.
            columns: the columns of a long table, as in `evaluate`.

        Returns:
            The axes.

        Raises:
            InputError: as in `evaluate`, or the model was not trained on your own examples.
            MissingExtraError: matplotlib is not installed.

        Examples:
            >>> ax = model.plot_reliability(offers, set_id="order", chosen="bought")
            >>> ax.figure.savefig("reliability.png")
        """
        from ptrnet.plots.figure import axes_or_new
        from ptrnet.plots.reliability import draw_reliability
        from ptrnet.solver.scoring import claims_of

        task = self._own_task()
        data = self._with_groups(examples, group, columns)
        self.trained_range.warn_of(data)
        ax = axes_or_new(ax)
        draw_reliability(ax, *claims_of(self._network, task, data))
        return ax

    def _of_elements(
        self,
        compute: Callable[[PointerModel, Task, Dataset], list[Floats]],
        name: str,
        impossible: float,
        instances: Any,
        set_id: str,
    ) -> Any:
        """Compute a number for each element. Return the numbers in the form of the instances.

        Elements that cannot be chosen have the number `impossible`.

        Raises InputError if the model was not trained on the user's own examples.
        """
        task = self._own_task()
        data, is_one, table = self._read(instances, set_id)
        self.trained_range.warn_of(data)
        numbers = compute(self._network, task, data)
        if table is None:
            return rows_like(numbers[0], instances, name) if is_one else numbers
        from ptrnet.data.tables import in_original_rows

        in_rows = in_original_rows(table, data, numbers, impossible)
        if is_one and isinstance(in_rows, dict):  # a row of a wide table
            return {alternative: float(of_rows[0]) for alternative, of_rows in in_rows.items()}
        return rows_like(in_rows, instances, name)

    def _own_task(self) -> Task:
        from ptrnet.tasks.custom import own_task

        return own_task(self.task)

    def attention(self, instances: Any) -> Any:
        """Return the pointer's distribution over the tokens at each step of an answer.

        In a Ptr-Net, the attention over the tokens is the distribution of the next token (Vinyals
        et al. 2015, section 2.3).

        Args:
            instances: one or several instances, in any form that `solve` takes. The model answers
                the instances first, as `solve` does. To use a known answer instead, give an
                `Example` or a tuple of inputs and outputs. For several known answers, give a list.

        Returns:
            A pair: the probabilities `(m, S + n)` of all tokens at m steps, and the m tokens of the
            answer, `(m,)`, including END. The columns are the S special slots, then the n
            elements in their given order. The distribution of a step is conditioned on the answer's
            tokens before this step. For several instances, a list of pairs.

        Raises:
            InputError: an instance or an answer cannot be used.

        Examples:
            >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
            >>> probabilities, tokens = ptrnet.load("hull").attention(square)
            >>> probabilities.shape
            (5, 6)
        """
        from ptrnet.solver.scoring import attention

        answered, is_one = self._with_answers(instances)
        attentions = [attention(self._network, self.task, example) for example in answered]
        return attentions[0] if is_one else attentions

    def _with_answers(self, instances: Any) -> tuple[Dataset, bool]:
        """Return instances with answers, and whether there was only one instance.

        If the first instance has no answer, the model answers all instances.
        """
        first = instances[:1] if isinstance(instances, list) else [instances]
        if any(has_answer(item, self.task) for item in first):
            return self._known(instances)
        data, is_one = instances_of(instances, self.task)
        return self.predict(data), is_one

    def evaluate(
        self,
        examples: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        group: Any = "",
        **columns: str,
    ) -> dict[str, dict[str, Any]]:
        """Measure the model's answers by the metrics of the task, as `ptrnet evaluate --json` does.

        Args:
            examples: examples with the true answers, in any form that `log_likelihoods` takes. A
                table, as in `solve`, is also accepted.
            decoder: as in `solve`. `constrained`, `augment` and `improve` are also as in
                `solve`.
            group: the column, the key or the field that says to which group each instance belongs,
                such as a person. Or the groups themselves: a name or number for each example. The
                intervals take a group as one observation.
            columns: the columns of a long table, in which each row is an element: `set_id` and one
                of `chosen`, `rank`, `grade` and `member`, as in `ptrnet.read_table`.

        Returns:
            For each metric its `value` and the 95% interval from `low` to `high`, over `count`
            instances. The metric `log_likelihood` is the mean log-probability of the true answers.
            If a metric is undefined for all instances, its value is None. If over 1% of the answers
            to `hull` are not simple polygons, the value of `area` is None and `fail` is True.
            Vinyals et al. (2015) print FAIL in this case.

        Raises:
            InputError: there is no example, or an example cannot be used or has no answer.

        Warns:
            AmbiguousInputWarning: no groups are given, but a field looks like an id of groups.

        Examples:
            >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
            >>> ptrnet.load("hull").evaluate([(square, [0, 1, 2, 3])])["accuracy"]
            {'value': 1.0, 'low': 0.20654931437723745, 'high': 1.0, 'count': 1}
        """
        from ptrnet.solver.scoring import score_answers

        data = self._with_groups(examples, group, columns)
        if not len(data):
            raise InputError("examples: expected at least one, got none")
        answered = self.predict(
            data, decoder, constrained=constrained, augment=augment, improve=improve
        )
        measures = score_answers(self._network, self.task, data, answered)
        return {metric: measure.to_dict() for metric, measure in measures.items()}

    def _with_groups(self, examples: Any, group: Any, columns: Mapping[str, str]) -> Dataset:
        """Return examples with their groups, and warn if they should have some; see `evaluate`."""
        from ptrnet.data.groups import grouped, warned_of_ids

        named = {key: name for key, name in columns.items() if name}
        if isinstance(group, str) and group:
            named["group"] = group
        opened = self._read_sets(examples, named, with_answers=True)
        if opened is not None:
            data = examples_of(opened[0], self.task)[0]
        else:
            data = grouped(examples_of(examples, self.task)[0], group)
        for _ in warned_of_ids(data):
            pass
        return data

    def _with_fields(self, values: Any, fields: Mapping[str, Any]) -> Any:
        """Return an instance whose other fields were given by name as a dictionary of all fields.

        Raises:
            InputError: instances of the task have no such field.
        """
        if not fields:
            return values
        name, *others = self.task.facts.field_names or ("inputs",)
        for field in fields.keys() - set(others):
            raise unknown("argument", field, others)
        return {name: values, **fields}

    def _read(
        self, values: Any, set_id: str, fields: Mapping[str, Any] = {}
    ) -> tuple[Dataset, bool, "Table | None"]:
        """Return instances, whether there is only one, and the table that they were read from."""
        columns = {"set_id": set_id} if set_id else {}
        opened = self._read_sets([values] if isinstance(values, Mapping) else values, columns)
        if opened is None:
            return *instances_of(self._with_fields(values, fields), self.task), None
        return opened[0], isinstance(values, Mapping), opened[1]

    def _read_sets(
        self, values: Any, columns: Mapping[str, str], with_answers: bool = False
    ) -> "tuple[Dataset, Table] | None":
        """Return the sets of a table, and the table; None if `values` are not a table of sets."""
        if columns.keys() <= {"group"} and not self.task.facts.layout.alternatives:
            return None  # without the imports of tables
        from ptrnet.data import formats
        from ptrnet.data.columns import WeightedColumns

        named = from_mapping(WeightedColumns, columns, "a table")
        opened = formats.open_sets(values, named, self.task, with_answers)
        return None if opened is None else opened[:2]

    def _known(self, values: Any) -> tuple[Dataset, bool]:
        """Validate examples as `examples_of` does, and warn of them."""
        data, is_one = examples_of(values, self.task)
        self.trained_range.warn_of(data)
        return data, is_one

    def solve_file(
        self,
        file: str | Path,
        output: str | Path,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        start: int | None = None,
        end: int | None = None,
        open: bool = False,
        jobs: int = 1,
        backend: str = LOCAL,
        columns: "Columns | None" = None,
        probability: str = "",
    ) -> None:
        """Answer every instance of a file, and write the answers to another file.

        ptrnet reads, answers and writes in chunks, so a large file does not need more memory than a
        small one. Only long tables have to fit into memory. A call that reads a file (not a long
        table) and writes a .txt, .jsonl or .parquet file can be resumed. If the call is stopped,
        its finished chunks stay in `OUTPUT.partial/`. Repeat the same call to continue.

        Args:
            file: the instances, in any format. "-" is standard input.
            output: the file for the answers. Its extension is the format. "-" is standard output.
                From standard input to standard output, each instance is answered and printed as
                soon as its line has been read.
            decoder: as in `solve`. `constrained`, `augment` and `improve` are also as in
                `solve`.
            start: the first city of each tour, as in `ptrnet.label`.
            end: the last city of each tour. If `start` and `end` are given, the network completes a
                closed tour whose first two cities are `end` and `start`. ptrnet rotates this tour,
                so that `start` comes first and `end` comes last. If one of them is not given, the
                network gives a closed tour without fixed ends. Then ptrnet rotates or
                reverses this tour, or removes an edge, to obey `open` and any given end. If an end
                of an open path is not given, ptrnet also tries other cities at this end, except
                with `ptrnet.Reconstruct`.
            open: whether the tour is a path that does not return to its first city.
            jobs: the number of processes, 1 or more. -1 means one process per core.
            backend: where the processes run: "local", or a cluster of "dask" or "ray".
            columns: the columns of a long table, in which each row is an element. None if the
                file is not a long table. If the output is a table or standard output, it has all
                columns of the input and a column of answers. Other outputs have a line for each
                instance.
            probability: the name of a further column, with the probability of each row's element as
                `predict_proba` returns it. Empty: no such column.

        Raises:
            InputError: an instance cannot be used, the output cannot be written, or
                `OUTPUT.partial/` has the finished chunks of another call. The message names file
                and line. After an error there is no output, except answers that were already
                printed.
            MissingExtraError: the format or the backend needs a package that is not installed.

        Examples:
            >>> ptrnet.generate("hull", n=10, count=100, output="hulls.txt")
            >>> ptrnet.load("hull").solve_file("hulls.txt", "answers.jsonl", ptrnet.Beam(4))
        """
        from ptrnet.data.columns import NO_COLUMNS
        from ptrnet.solver.solving import ACTIVITY, open_file

        predictor = self._predictor(decoder, constrained, augment, improve)
        source, sink = open_file(
            predictor,
            os.fspath(file),
            os.fspath(output),
            Ends(start, end, open),
            NO_COLUMNS if columns is None else columns,
            probability,
        )
        solve_source(predictor, self.trained_range, source, sink, ACTIVITY, jobs, backend)

    def evaluate_file(
        self,
        file: str | Path,
        output: str | Path | None = None,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
        improve: bool = True,
        jobs: int = 1,
        backend: str = LOCAL,
        by: str | None = None,
        columns: "Columns | None" = None,
    ) -> "Evaluation":
        """Answer every instance of a file, and compare with the true answers in the file.

        Args:
            file: the examples, in any format. "-" is standard input.
            output: a .jsonl or .parquet file for the examples, each with the model's `answer` and
                the scores of this answer. A stopped call can be resumed as in `solve_file`. If
                `output` is None, no file is written.
            decoder: as in `solve_file`. All arguments that are not described here are also as in
                `solve_file`.
            by: a key of each line, or a field with the same value for all elements of an instance.
                The result then also has the measures for each value of this key or field.
            columns: the columns of a long table, as in `solve_file`; and the field of groups. The
                intervals take a group as one observation.

        Returns:
            The measures over all examples, by size, and by the values of `by`.

        Raises:
            InputError: an example cannot be used, has no answer, or has no field `by`. Or the
                output cannot be written, or `OUTPUT.partial/` has the finished chunks of another
                call. The message names file and line.
            MissingExtraError: the format or the backend needs a package that is not installed.

        Examples:
            >>> ptrnet.generate("hull", n="5-10", count=100, seed=1, output="hulls.txt")
            >>> evaluation = ptrnet.load("hull").evaluate_file("hulls.txt")
            >>> evaluation.measures()["accuracy"].value
            1.0
        """
        from ptrnet.data.columns import NO_COLUMNS
        from ptrnet.solver.evaluating import evaluate_file

        return evaluate_file(
            self._predictor(decoder, constrained, augment, improve),
            self.trained_range,
            os.fspath(file),
            None if output is None else os.fspath(output),
            by,
            NO_COLUMNS if columns is None else columns,
            jobs,
            backend,
        )

    def plot(self, points: Any, ax: Any = None) -> Any:
        """Draw the model's answer to one instance.

        If the true answer is better than the model's answer, it is drawn, too, with dashed lines.
        The first labeller of the task, an algorithm, computes the true answer. But if the task has
        no labeller or is a `Problem`, the true answer is the one given with `points`. If `points`
        has no answer in this case, only the model's answer is drawn.

        Args:
            points: an instance as in `solve`, an example, or an `Answer`. An `Answer` is drawn
                without answering its instance again.
            ax: matplotlib's axes. None makes a new figure.

        Returns:
            The axes.

        Raises:
            InputError: there is more than one instance, or the instance cannot be used or drawn.
            MissingExtraError: matplotlib is not installed.

        Examples:
            >>> ax = model.plot(points)
            >>> ax.figure.savefig("answer.png")
        """
        from ptrnet.plots.answer import draw_answered
        from ptrnet.plots.figure import axes_or_new

        if isinstance(points, Answer):
            self._check_task(points)
            return points.plot(ax)
        example = one_example(points, self.task)
        answered = self.predict([example])[0]
        ax = axes_or_new(ax)
        draw_answered(ax, self.task, answered, example.outputs)
        return ax

    def plot_attention(self, points: Any, ax: Any = None) -> Any:
        """Draw the pointer's attention: a row for each step, a column for each token.

        Args:
            points: an instance as in `solve`, an example, or an `Answer`. If an example has an
                answer, or if you give an `Answer`, this answer is drawn. Otherwise the model first
                answers the instance.
            ax: as in `plot`.

        Returns:
            The axes.

        Raises:
            InputError: as in `plot`, or there are more than 200 steps or tokens.
            MissingExtraError: matplotlib is not installed.

        Examples:
            >>> square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
            >>> ax = ptrnet.load("hull").plot_attention(square)
            >>> ax.figure.savefig("attention.png")
        """
        from ptrnet.plots.attention import draw_matrix
        from ptrnet.plots.figure import axes_or_new
        from ptrnet.plots.labels import element_names
        from ptrnet.solver.scoring import attention

        known = self._one_with_answer(points)
        probabilities, tokens = attention(self._network, self.task, known)
        ax = axes_or_new(ax)
        draw_matrix(ax, probabilities, tokens, self.task.facts.special_names, element_names(known))
        return ax

    def _one_with_answer(self, points: Any) -> Example:
        """Return an instance with its known answer. If no answer is known, the model answers."""
        if isinstance(points, Answer):
            self._check_task(points)
            return points.example
        example = one_example(points, self.task)
        if example.outputs is not None:
            self.trained_range.warn_of([example])
            return example
        return self.predict([example])[0]

    def _check_task(self, answer: Answer) -> None:
        if answer.task.name != self.task.name:
            raise InputError(
                f"expected an answer of task {self.task.name}, got one of {answer.task.name}"
            )

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json`, `model.safetensors` and the card, README.md, to a folder.

        The folder is made if it is missing. A README.md in a folder without a model is not
        overwritten. The card and `trained["scores"]` are those of the training: if you have changed
        the weights since then, clear both.

        Raises:
            InputError: the folder cannot be written, or is the run folder of a training. The
                checkpoints in a run folder must belong to the model in the same folder.

        Examples:
            >>> model = ptrnet.load("hull")
            >>> model.save_pretrained("my-hull")
            >>> ptrnet.load("./my-hull").solve([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
            array([0, 1, 2, 3])
        """
        path = Path(folder)
        if exists(path / model_folder.RECIPE):
            raise InputError(f"{path}: holds the run of a training; name another folder")
        is_users_readme = exists(path / model_folder.CARD) and not model_folder.is_there(path)
        saved = model_folder.Saved(self.model, self.task, self.trained)
        model_folder.save(path, saved)
        if not is_users_readme:
            name = path.resolve().name
            text = self.card or model_folder.basic_card(name, saved)
            model_folder.write_card(path, model_folder.with_front_matter(text, name, saved))

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """Load a solver from a folder, or from a repository on the Hugging Face hub.

        Args:
            name: the folder, or "owner/name" or "owner/name@revision" on the hub.

        Raises:
            ModelError: files are missing or damaged, or the hub has no such repository.

        Examples:
            >>> ptrnet.load("hull").save_pretrained("my-hull")
            >>> model = ptrnet.Solver.from_pretrained("my-hull")
        """
        folder = Path(name)
        if not os.path.exists(name):  # noqa: PTH110  Path.exists raises for too long names
            from ptrnet import hub

            folder = hub.fetch(str(name))
        saved, text = model_folder.load(folder), model_folder.read_card(folder)
        return cls(*saved, card=text)

    def push_to_hub(
        self, repository: str, private: bool = False, license: str | None = None
    ) -> str:
        """Upload the model to "owner/name" on the Hugging Face hub, and return the address.

        The card begins with the metadata that the hub reads: task, network, scores.

        Args:
            repository: "owner/name".
            private: whether a new repository is visible only to its owner.
            license: the license of the model, as the hub names it, such as "mit".

        Raises:
            ModelError: the hub refuses the upload, or cannot be reached.

        Examples:
            >>> model.push_to_hub("my-name/my-hull", private=True)  # after `hf auth login`
        """
        from ptrnet import hub

        saved = model_folder.Saved(self.model, self.task, self.trained)
        text = self.card or model_folder.basic_card(repository, saved)
        with tempfile.TemporaryDirectory() as folder:
            model_folder.save(Path(folder), saved)
            name = repository.rpartition("/")[2]
            model_folder.write_card(
                Path(folder), model_folder.with_front_matter(text, name, saved, license)
            )
            return hub.push(Path(folder), repository, private=private)

    def __repr__(self) -> str:
        """Return a text with the task, the network, the training data and the network's scores."""
        from ptrnet.evaluation import describe_training

        network = f"{type(self.model).__name__}, {num_weights(self.model):,} weights"
        lines = [f"Solver of task {self.task.name}: {network}"]
        return "\n".join([*lines, *describe_training(self.trained)])


def _pointed_at(answered: Example) -> list[Any]:
    """Return the elements in the order of the answer. For triangles, lists of three elements."""
    assert answered.outputs is not None
    elements = answered.inputs if answered.elements is None else answered.elements
    if answered.outputs.ndim == 1:
        return [elements[k] for k in answered.outputs]
    return [[elements[k] for k in item] for item in answered.outputs]
