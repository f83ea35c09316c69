"""Compare settings of the model `chooser` on drawn worlds.

Each world has 20 to 500 examples, which every setting is fitted to, and 100 questions. Each
line of the table has the mean log-likelihood of the questions, and by how much it differs from that
of the settings that ptrnet ships, with the standard error of the difference. Choices of persons who
have one set, choices of persons who have several, and grades are apart.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from ptrnet.progress import track
from ptrnet.training.own_data import MAX_ROWS
from ptrnet.training.sets import Sets
from ptrnet.training.spaces import SHIPPED, FitSettings, fit_spaces
from ptrnet.types import Floats
from ptrnet_lab.chooser.worlds import World, draw

QUESTIONS = 100


def _times(factor: float) -> FitSettings:
    """Return the shipped settings with all strengths multiplied."""
    linear, curved, placed = (
        tuple(factor * strength for strength in strengths)
        for strengths in (SHIPPED.linear, SHIPPED.curved, SHIPPED.placed)
    )
    return FitSettings(linear, curved, placed)


SETTINGS = {
    "shipped": SHIPPED,
    **{f"precision {p}": FitSettings(of_choices=p, of_grades=p) for p in (3, 10, 30, 100)},
    **{f"exponent {power}": FitSettings(exponent=power) for power in (0, 1)},
    "only linear": FitSettings(curved=(), placed=()),
    "linear and curved": FitSettings(placed=()),
    "strengths halved": _times(0.5),
    "strengths doubled": _times(2),
}
KINDS = ("choices, one set a person", "choices, several sets a person", "grades")


def drawn(seed: int, number: int) -> tuple[World, int, str]:
    """Draw a world, and return it with its number of examples and its kind."""
    rng = np.random.default_rng([seed, number])
    examples, graded = round(20 * 25 ** rng.random()), bool(rng.random() < 0.25)
    elements = rng.choice([5, 8, 10, 16] if graded else [3, 4, 5, 6, 8, 10])
    columns = rng.choice([4, 8, 12, 16, 24, 32])
    world = draw(rng, examples, QUESTIONS, int(elements), int(columns), graded)
    return world, examples, KINDS[2 if graded else world.several]


def log_likelihood(world: World, examples: int, settings: FitSettings) -> float:
    """Return the mean log-likelihood of the questions, after a fit to the examples."""
    spaces = fit_spaces(world.examples(slice(examples)), world.task, MAX_ROWS, settings)
    asked = slice(examples, None)
    features, present = world.features[asked], world.present[asked]
    with torch.no_grad():
        scores = spaces(torch.from_numpy(features).float(), torch.from_numpy(present))
    sets = Sets.of(world.examples(asked), world.task)
    return sets.log_likelihood(scores.double().numpy()[present]) / len(present)


def table(values: Floats, kinds: Sequence[str]) -> str:
    """Return the table in Markdown.

    Args:
        values: log-likelihoods `(num_worlds, num_settings)`, in the order of SETTINGS.
        kinds: that of each world.
    """
    parts = {kind: values[[own == kind for own in kinds]] for kind in KINDS}
    heads = [f"{kind} ({len(part)} worlds) | difference" for kind, part in parts.items()]
    lines = ["| settings | " + " | ".join(heads) + " |", "|---|" + "---|" * 2 * len(parts)]
    for k, name in enumerate(SETTINGS):
        cells = []
        for part in parts.values():
            change = part[:, k] - part[:, 0]
            error = change.std(ddof=1) / len(part) ** 0.5
            cells += [f"{part[:, k].mean():.4f}", f"{change.mean():+.4f} ± {error:.4f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw worlds, fit every setting to each of them, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m ptrnet_lab.chooser", description=__doc__)
    parser.add_argument("--worlds", type=int, default=300, help="at least 50  [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="at least 0  [%(default)s]")
    options = parser.parse_args(arguments)
    for name, least in (("worlds", 50), ("seed", 0)):
        if getattr(options, name) < least:
            parser.error(f"--{name}: expected at least {least}, got {getattr(options, name)}")
    values, kinds = [], []
    for number in track(range(options.worlds), "worlds", options.worlds):
        world, examples, kind = drawn(options.seed, number)
        kinds.append(kind)
        values.append([log_likelihood(world, examples, each) for each in SETTINGS.values()])
    print(table(np.array(values), kinds))


if __name__ == "__main__":
    main()
