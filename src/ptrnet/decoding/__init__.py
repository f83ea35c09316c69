"""From a model's distributions to answers. One search serves all: greedy is a beam of one."""

from ptrnet.decoding.beam import Beam, Greedy
from ptrnet.decoding.incremental import Incremental
from ptrnet.decoding.reconstruct import Reconstruct
from ptrnet.decoding.sample import Sample
from ptrnet.decoding.search import Decoder, Hypotheses

__all__ = ["Beam", "Decoder", "Greedy", "Hypotheses", "Incremental", "Reconstruct", "Sample"]
