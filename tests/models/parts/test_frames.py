"""Edge frames in batches and under autocast, and the geometry of open edges."""

import numpy as np
import pytest
import torch

from ptrnet import labellers, models, tasks
from ptrnet.constraints.triangulations import FrontEdge
from ptrnet.decoding import Beam, Greedy, Incremental, Sample
from ptrnet.errors import InputError
from ptrnet.kernels.frames import OpenEdgeFeatures
from ptrnet.models.base import shift_right
from ptrnet.models.parts.attention import Elements
from ptrnet.models.parts.frames import EdgeFrames
from ptrnet.solver import Solver

HULL, APEXES = tasks.get("hull"), tasks.get("delaunay", sequence="apexes")


@pytest.mark.parametrize(
    ("task", "decoder"),
    [(HULL, d) for d in (Greedy(), Beam(3), Sample(3, seed=0), Incremental(4))]
    + [(APEXES, d) for d in (Greedy(), Beam(3), Sample(3, seed=0))],
)
@pytest.mark.parametrize("constrained", [True, False], ids=["constrained", "free"])
def test_answers_with_edge_frames_do_not_depend_on_the_batch(task, decoder, constrained):
    """The standing contracts check this for models without edge frames."""
    torch.manual_seed(5)
    options = {"hidden_size": 16, "encoder_layers": 1, "edge_frames": True}
    edge = "open" if task is APEXES else "last"
    model = models.build(
        "transformer-ptr-net", 2, task.facts.num_specials, frame_edge=edge, **options
    )
    solver = Solver(model, task)
    rng = torch.Generator().manual_seed(1)
    sizes = (n for n in (1, 2, 3, 5, 8, 13) if n >= task.facts.min_elements)
    instances = [torch.rand(n, 2, generator=rng).double().numpy() for n in sizes]
    together = solver.solve(instances, decoder, constrained=constrained)
    for instance, answer in zip(instances, together, strict=True):
        alone = solver.solve(instance, decoder, constrained=constrained)
        assert answer.tolist() == alone.tolist()
        assert not constrained or task.answer_error(len(instance), answer) is None


@pytest.mark.parametrize("is_open", [False, True])
def test_autocast_does_not_round_coordinates(is_open):
    torch.manual_seed(5)
    points, tokens = torch.rand(3, 6, 2), torch.randint(0, 8, (3, 4))
    elements, frames = Elements(2, 16, 4, True), EdgeFrames(16, is_open)
    ends = frames.all_ends(tokens, 2)
    arguments = torch.randn(3, 4, 8), ends, torch.randn(3, 4, 16), points
    keys = torch.randn(3, 8, 16)
    exact = elements(points), frames(*arguments, frames.project_keys(keys))
    with torch.autocast("cpu", torch.bfloat16):
        lowered = elements(points), frames(*arguments, frames.project_keys(keys))
    for a, b in zip(lowered, exact, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("points", ["uniform", "clustered", "stretched"])
def test_apex_is_the_rightmost_point_in_the_frame_of_its_edge(points):
    """For every token after the first two of true sequences, in float32, including NONE."""
    task = tasks.get("delaunay", sequence="apexes", points=points)
    inputs = task.sample(np.random.default_rng(4), 50, 10)
    targets = torch.from_numpy(np.stack(task.to_tokens(labellers.label(task, inputs))))
    frames = EdgeFrames(8, is_open=True)
    front = FrontEdge(*frames.all_ends(shift_right(targets), 2))
    view = OpenEdgeFeatures(torch.from_numpy(inputs).float(), 2, *front)
    angles = torch.atan2(view.y, view.x)
    angles = angles.masked_fill(sum(view.is_end) > 0, torch.inf)
    angles[..., 0] = torch.inf  # END
    has_edge = front.head > 0
    assert has_edge.sum() > 500
    assert torch.equal(angles.argmin(-1)[has_edge], targets[has_edge])


@pytest.mark.parametrize(
    ("features", "num_specials", "options", "message"),
    [
        (2, 2, {"frame_edge": "open"}, "frame_edge open: needs edge_frames"),
        (2, 1, {"frame_edge": "open", "edge_frames": True}, "answers are sequences of apexes"),
        (3, 2, {"frame_edge": "open", "edge_frames": True}, "elements of 2 numbers"),
    ],
)
def test_edge_frames_are_refused_for_tasks_without_edges(features, num_specials, options, message):
    with pytest.raises(InputError, match=message):
        models.build("transformer-ptr-net", features, num_specials, **options)
