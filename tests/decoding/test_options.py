import pytest

from ptrnet.decoding import Beam, Greedy, Incremental, Reconstruct, Sample
from ptrnet.decoding.options import DecoderOptions
from ptrnet.errors import InputError


@pytest.mark.parametrize(
    ("options", "decoder"),
    [
        ({}, Greedy()),
        ({"decoder": "beam"}, Beam()),
        ({"decoder": "beam", "beam_size": 3}, Beam(3)),
        ({"decoder": "sample"}, Sample(seed=7)),
        ({"decoder": "sample", "temperature": 0.5}, Sample(temperature=0.5, seed=7)),
        ({"decoder": "incremental"}, Incremental()),
        ({"decoder": "incremental", "inner": "beam", "window": 2}, Incremental(2, Beam())),
        ({"decoder": "reconstruct"}, Reconstruct(seed=7)),
        ({"decoder": "reconstruct", "part": 20}, Reconstruct(part=20, seed=7)),
    ],
)
def test_options_that_are_left_out_have_the_decoders_defaults(options, decoder):
    assert DecoderOptions(**options).build(7) == decoder


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"decoder": "bean"}, "unknown decoder 'bean'; did you mean 'beam'"),
        ({"decoder": "incremental", "inner": "bem"}, "unknown inner 'bem'; did you mean 'beam'"),
        ({"decoder": "beam", "beam_size": 0}, "beam_size: expected a whole number of 1 or more"),
        ({"decoder": "reconstruct", "part": 3}, "part: expected a whole number of 4 or more"),
        ({"window": 2}, "window has no effect with greedy decoding"),
        (
            {"decoder": "incremental", "beam_size": 2},
            "beam_size has no effect with incremental decoding and inner greedy",
        ),
        (
            {"decoder": "incremental", "inner": "beam", "seconds": 1.0},
            "seconds has no effect with incremental decoding and inner beam",
        ),
        ({"decoder": "beam", "samples": 2}, "samples has no effect with beam decoding"),
    ],
)
def test_unknown_invalid_and_unused_options_are_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        DecoderOptions(**options).build(7)
