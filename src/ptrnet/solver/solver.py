"""`Solver`: the one face of a trained model, in memory and on disk."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

import torch

from ptrnet.attention import attention
from ptrnet.constraints import Free
from ptrnet.data.examples import examples_of, has_answer, instances_of
from ptrnet.decoding import Decoder, Greedy, Sample
from ptrnet.errors import InputError, check_int, short
from ptrnet.evaluation import describe_training, evaluate
from ptrnet.models.base import PointerModel, num_weights
from ptrnet.solver.answer import Answer, cost_of
from ptrnet.solver.batches import answer_chunk, log_likelihoods_of
from ptrnet.solver.bulk import Bulk
from ptrnet.solver.pictures import Pictures
from ptrnet.solver.sampling import SampledAnswers, sample_answers
from ptrnet.solver.stored import Stored
from ptrnet.solver.trained_range import Message, TrainedRange
from ptrnet.tasks.base import Task
from ptrnet.types import Example

# Examples that are read before the first is answered, so that those of near sizes share a batch.
CHUNK_SIZE = 4096


class Solver(Bulk, Pictures, Stored):
    """Answers instances of one task with one trained network.

    Args:
        model: the network.
        task: what it was trained for, with its settings.
        trained: facts about the training, which stand in the model's files.
        card: what its files tell people of it, Markdown; empty where nobody wrote any.
    """

    def __init__(
        self,
        model: PointerModel,
        task: Task,
        trained: dict[str, Any] | None = None,
        card: str = "",
    ) -> None:
        super().__init__(model, task, trained, card)
        self.trained_range = TrainedRange(task, self.trained)

    def solve(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """The answer to one instance, or to each of a list.

        Args:
            instances: one is an array, a torch tensor or a frame `(n, d)`, or a list of lists of
                numbers; many are a list of such, or an array or tensor `(B, n, d)`. With d = 1
                an array `(n,)` is one as well. Numbers are real, of any type. Points outside the
                unit square, or within a 64th of its side, are made to fill it by one shift and
                one scale; for the task `custom` each feature is standardized as in training.
            decoder: `ptrnet.Greedy()` when None; `ptrnet.Beam(8)` searches wider.
            constrained: whether only what the task allows as an answer is considered.
            augment: the number of views of each instance that are answered: turned, mirrored,
                shuffled. The result is the answer of least cost, or the likeliest over all views.

        Returns:
            0-based indices, an array; for many instances a list of them.

        Raises:
            InputError: an instance that is empty, misshapen, too large or not finite, or of what
                is no real number: masked arrays, strings, dates, complex numbers.

        Warns:
            OutOfDistributionWarning: the first time that an instance has more or fewer elements
                than the model was trained on, or features far from those.
        """
        examples, is_one = instances_of(instances, self.task)
        solved = self.solve_examples(examples, decoder, constrained=constrained, augment=augment)
        answers = [example.outputs for example in solved]
        return answers[0] if is_one else answers

    def answer(
        self,
        instances: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Any:
        """As `solve`, with what is known of each answer: its likelihood, cost, time, warnings.

        Args, errors: as in `solve`. Nothing is warned of: each answer has its warnings.

        Returns:
            An `Answer`, or a list of them, whose `outputs` are what `solve` gives.
        """
        examples, is_one = instances_of(instances, self.task)
        began = perf_counter()
        decoder = decoder or Greedy()
        self.check_options(decoder, augment)
        solved = [
            answered
            for chunk in _chunks(examples)
            for answered in self.solve_chunk(chunk, decoder, constrained, augment)
        ]
        seconds = (perf_counter() - began) / max(1, len(solved))
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
            warnings=tuple(text for _, text in self.messages_of(answered, decoder)),
            task=self.task,
            elements=_pointed_at(answered),
            example=answered,
        )

    def solve_examples(
        self,
        examples: Iterable[Example],
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> Iterator[Example]:
        """The same examples, in their order, with the model's answers and their log-probability."""
        decoder = decoder or Greedy()
        self.check_options(decoder, augment)
        for chunk in _chunks(examples):
            self.warn_of(chunk, decoder)
            yield from self.solve_chunk(chunk, decoder, constrained, augment)

    def warn_of(self, examples: Iterable[Example], decoder: Decoder) -> None:
        """Warns of what is unlike the training, the first time that it comes."""
        for example in examples:
            self.trained_range.warn(self.messages_of(example, decoder))

    def solve_chunk(
        self, chunk: Sequence[Example], decoder: Decoder, constrained: bool, augment: int
    ) -> list[Example]:
        """As `solve_examples`, but nothing is warned of: filters of warnings are all threads', and
        other processes have none."""
        constraint = self.task.build_constraint() if constrained else Free(self.task.min_length)
        answers = answer_chunk(self.model, self.task, chunk, decoder, constraint, augment)
        return [
            example._replace(outputs=answer.outputs, log_prob=answer.log_prob)
            for example, answer in zip(chunk, answers, strict=True)
        ]

    def check_options(self, decoder: Decoder, augment: int) -> None:
        """Refuses a decoder that does not serve the task, and a number of views that is none."""
        if not isinstance(decoder, Decoder):
            raise InputError(f"decoder: expected one such as ptrnet.Beam(8), got {short(decoder)}")
        needs_more = (decoder.needs_decomposable and not self.task.decomposable) or (
            decoder.needs_circular and not self.task.circular
        )
        if needs_more:
            raise InputError(f"{decoder.name} decoding does not serve {self.task.name}")
        check_int("augment", augment, 1)

    def sample(
        self,
        instances: Any,
        size: int = 16,
        *,
        temperature: float = 1.0,
        constrained: bool = True,
        seed: int | None = None,
    ) -> SampledAnswers:
        """Draws answers, with log-probabilities to learn from.

        For learning loops of one's own: `log_probs` has gradients by the weights of `model`, where
        torch records them, and is that of the very policy that drew: renormalised over what is
        allowed. The gradient of `((cost - baseline) * log_probs).mean()` is REINFORCE's.

        Args:
            instances: as `solve` takes them; one is a batch of one. They are answered together.
            size: answers of each instance, K.
            temperature: above 0; they are drawn from p^(1/temperature).
            constrained: whether only what the task allows as an answer is drawn.
            seed: of the random numbers; None: each call draws anew, from torch's generator.

        Returns:
            Lists of answers, and `(B, K)` log-probabilities.

        Raises:
            InputError: no instance, one that cannot be used, a size or a temperature out of range.
        """
        examples, _ = instances_of(instances, self.task)
        if not examples:
            raise InputError("instances: expected at least one, got none")
        constraint = self.task.build_constraint() if constrained else Free(self.task.min_length)
        return sample_answers(
            self.model,
            self.task,
            [example.inputs for example in examples],
            Sample(size, temperature, seed),
            constraint,
        )

    def messages_of(self, example: Example, decoder: Decoder) -> Iterator[Message]:
        """How an instance is unlike the training, whatever was said before."""
        if not decoder.needs_decomposable:  # which solves parts, of other sizes
            yield from self.trained_range.size_messages(example)
        yield from self.trained_range.feature_messages(example)

    def log_likelihoods(self, examples: Any) -> Any:
        """`log p(C | P)` of each example's answer, in the canonical form that models train on.

        Args:
            examples: pairs of inputs `(n, d)` and outputs `(m,)`, in any form that `solve` and
                `fit` take; or `Example`s. Or one tuple of inputs and outputs.

        Returns:
            `(B,)` float64; of one example a float.

        Raises:
            InputError: an example without an answer, or that cannot be used.
        """
        known, is_one = examples_of(examples, self.task)
        log_likelihoods = log_likelihoods_of(self.model, self.task, known)
        return float(log_likelihoods[0]) if is_one else log_likelihoods

    def attention(self, instances: Any) -> Any:
        """The pointer's distribution at each step of an answer (V 2.3: attention is the answer).

        Args:
            instances: one or many, in any form that `solve` takes: the answer is the one that
                `solve` gives. Or an `Example`, a tuple of inputs and outputs, or a list of these.

        Returns:
            Probabilities `(m, S + n)`, special slots first and then the elements as they stand in
            the instance; and the answer's tokens `(m,)`, END included. Each step's distribution
            is given the tokens before it. For many a list of such pairs.

        Raises:
            InputError: an instance or an answer that cannot be used.
        """
        answered, is_one = self._with_answers(instances)
        attentions = [attention(self.model, self.task, example) for example in answered]
        return attentions[0] if is_one else attentions

    def _with_answers(self, instances: Any) -> tuple[list[Example], bool]:
        """Examples with answers as they are, others with the model's; and whether it was one."""
        first = instances[:1] if isinstance(instances, list) else [instances]
        if any(has_answer(item, self.task) for item in first):
            return examples_of(instances, self.task)
        examples, is_one = instances_of(instances, self.task)
        return list(self.solve_examples(examples)), is_one

    def evaluate(
        self,
        examples: Any,
        decoder: Decoder | None = None,
        *,
        constrained: bool = True,
        augment: int = 1,
    ) -> dict[str, dict[str, Any]]:
        """The task's metrics of the model's answers, as `ptrnet evaluate --json` has them.

        Args:
            examples: with the true answers, in any form that `log_likelihoods` takes.
            decoder: this and the others as in `solve`.

        Returns:
            For each metric its `value` with the 95% interval `low` to `high`, over `count`
            instances; `log_likelihood` is that of the true answers. None where nothing could be
            measured, or where the paper's rule says FAIL: then `fail` is True.

        Raises:
            InputError: no example, one without an answer, or one that cannot be used.
        """
        known, _ = examples_of(examples, self.task)
        if not known:
            raise InputError("examples: expected at least one, got none")
        answered = self.solve_examples(known, decoder, constrained=constrained, augment=augment)
        return {metric: m.to_dict() for metric, m in evaluate(self, known, answered).items()}

    def __repr__(self) -> str:
        """The task, the network, and what it was trained on and scores."""
        network = f"{type(self.model).__name__}, {num_weights(self.model):,} weights"
        lines = [f"Solver of task {self.task.name}: {network}"]
        return "\n".join([*lines, *describe_training(self.trained)])

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def _pointed_at(answered: Example) -> list[Any]:
    """The elements of an answer, in its order; of triangles lists of three."""
    assert answered.outputs is not None
    elements = answered.inputs if answered.elements is None else answered.elements
    if answered.outputs.ndim == 1:
        return [elements[k] for k in answered.outputs]
    return [[elements[k] for k in item] for item in answered.outputs]


def _chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """The examples in lists of CHUNK_SIZE, the last of fewer."""
    rest = iter(examples)
    while chunk := list(islice(rest, CHUNK_SIZE)):
        yield chunk
