"""Base class of sequence-to-sequence models, which need instances of a single size."""

import torch
from torch import Tensor, nn

from ptrnet.models.base import PointerModel, full_lengths
from ptrnet.models.parts.recurrent import State, encoder
from ptrnet_lab.models import DictionarySettings


class DictionaryModel(PointerModel):
    """Emits symbols of a fixed dictionary: the special slots, then positions 1 to n.

    The next decoder input is a learned embedding of the last symbol. The first decoder input is the
    embedding of END, in place of the paper's start symbol `=>`.
    """

    n: int

    def __init__(self, features: int, num_specials: int, settings: DictionarySettings) -> None:
        super().__init__(features, num_specials, settings)
        self.n = settings.n
        self.num_symbols = num_specials + settings.n
        self.encoder = encoder(features, settings)
        self.embedding = nn.Embedding(self.num_symbols, settings.hidden_size)

    def run_encoder(self, inputs: Tensor, lengths: Tensor | None) -> tuple[Tensor, State]:
        """The encoder's states `(B, n, H)` and its last state.

        Raises:
            ModelError: an instance does not have n elements.
        """
        lengths = full_lengths(inputs) if lengths is None else lengths
        self.check_lengths(lengths)
        states, state = self.encoder(inputs[:, : self.n], lengths)
        return states, state


def log_softmax(scores: Tensor) -> Tensor:
    """Log-softmax over all symbols of the dictionary, in float32 or better."""
    return scores.log_softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
