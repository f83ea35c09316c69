"""From a model's distributions to answers. One search serves all: greedy is a beam of one."""

from ptrnet.decoding.beam import Beam, Greedy

__all__ = ["Beam", "Decoder", "Greedy"]

Decoder = Beam
