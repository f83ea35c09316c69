"""What several verbs share: their common options, and how `[TASK] FILE` is told apart."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ptrnet.errors import InputError

if TYPE_CHECKING:
    from ptrnet.decoding import Decoder
    from ptrnet.solver import Solver

Words = Annotated[list[str] | None, typer.Argument(metavar="[TASK] FILE", show_default=False)]
Task = Annotated[str, typer.Argument(metavar="TASK", help="hull, delaunay, tsp or sort.")]
Labeller = Annotated[
    str | None,
    typer.Option(
        "--labeller",
        help="The algorithm, by default the task's first. hull: monotone-chain; delaunay: qhull; "
        "tsp: exact, held-karp, a1, a2, a3, local-search; sort: argsort.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", help="A shipped model, a model's folder or a hub id; by default the task's."
    ),
]
DecoderName = Annotated[
    str, typer.Option("--decoder", help="greedy, beam, sample, incremental or reconstruct.")
]
BeamSize = Annotated[
    int | None, typer.Option("--beam-size", help="Prefixes that a beam keeps.  [8]")
]
Samples = Annotated[
    int | None, typer.Option("--samples", help="Answers that are drawn; the best counts.  [16]")
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", help="Of the draws: near 0 greedy, 1 the model's own.  [1]"),
]
Window = Annotated[
    int | None,
    typer.Option("--window", help="Elements that incremental decoding adds at a time.  [25]"),
]
Inner = Annotated[
    str | None,
    typer.Option("--inner", help="What solves each window: greedy, beam or sample.  [greedy]"),
]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", help="How long parts of tours are solved again.  [1]"),
]
Augment = Annotated[
    int,
    typer.Option("--augment", help="Looks at an instance, turned and shuffled, that vote."),
]
Constrained = Annotated[
    bool,
    typer.Option("--constrained/--free", help="Consider only what the task allows as an answer."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of all that is drawn at random.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def task_and_file(
    words: list[str] | None, model: str | None, wanted: int
) -> tuple[str | None, str]:
    """The task, where it is given, and the file (`wanted` 1) or nothing (0) behind it."""
    words = list(words or [])
    if len(words) == wanted + 1:
        from ptrnet import tasks

        tasks.kind(words[0])
        return words[0], (words[1] if wanted else "")
    if len(words) == wanted and model is not None:
        return None, (words[0] if wanted else "")
    expected = "TASK FILE, or FILE with --model" if wanted else "TASK, or --model"
    raise InputError(f"expected {expected}; got: {' '.join(words) or 'nothing'}")


def solver_for(task: str | None, model: str | None) -> "Solver":
    """The trained model that is asked for. Raises InputError when it serves another task."""
    from ptrnet import weights

    if model is None and task not in weights.names():
        raise InputError(f"no model of {task} is shipped; name one with --model")
    solver = weights.load(model or str(task))
    if task not in (None, solver.task.name):
        raise InputError(f"model {model} serves task {solver.task.name}, asked for {task}")
    return solver


def say(text: str) -> None:
    """Prints a whole text on standard output. Raises InputError where that cannot be written."""
    from ptrnet.files import to_standard_output

    to_standard_output([text, "\n"])


def decoder_for(
    name: str,
    beam_size: int | None,
    samples: int | None,
    temperature: float | None,
    window: int | None,
    inner: str | None,
    seconds: float | None,
    seed: int,
) -> "Decoder":
    """The decoder of a name, with the options that are its own; None stands for the default.

    Raises:
        InputError: an unknown name, with the nearest, or an option of another decoder.
    """
    from ptrnet.decoding import Beam, Greedy, Incremental, Reconstruct, Sample
    from ptrnet.errors import unknown

    plain: dict[str, Callable[[], Decoder]] = {
        "greedy": Greedy,
        "beam": lambda: Beam(8 if beam_size is None else beam_size),
        "sample": lambda: Sample(
            16 if samples is None else samples, 1.0 if temperature is None else temperature, seed
        ),
    }
    options = {
        "beam": ("beam-size",),
        "sample": ("samples", "temperature"),
        "reconstruct": ("seconds",),
    }
    if name == "reconstruct":
        plain[name] = lambda: Reconstruct(1.0 if seconds is None else seconds, seed=seed)
    if name not in plain and name != "incremental":
        raise unknown("decoder", name, (*plain, "incremental", "reconstruct"))
    solving = (inner or "greedy") if name == "incremental" else name
    if solving not in plain:
        raise unknown("inner decoder", solving, plain)
    own = options.get(solving, ()) + (("window", "inner") if name == "incremental" else ())
    given = {
        "beam-size": beam_size,
        "samples": samples,
        "temperature": temperature,
        "window": window,
        "inner": inner,
        "seconds": seconds,
    }
    for option, value in given.items():
        if value is not None and option not in own:
            raise InputError(f"--{option} does nothing with {solving} decoding")
    found = plain[solving]()
    return Incremental(25 if window is None else window, found) if name == "incremental" else found
