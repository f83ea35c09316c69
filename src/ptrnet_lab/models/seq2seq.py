"""Sequence to sequence (Vinyals et al. 2015, section 2.1).

An LSTM or GRU, the encoder, reads the input. A second LSTM or GRU, the decoder, writes symbols of a
dictionary.
"""

from torch import Tensor, nn

from ptrnet.models.base import Encoded, full_lengths, init_uniform, shift_right
from ptrnet.models.parts.recurrent import decoder
from ptrnet_lab.models import DictionarySettings
from ptrnet_lab.models.dictionary import DictionaryModel, log_softmax


class Seq2Seq(DictionaryModel):
    """`p(C_i) = softmax(W d_i + b)` over a dictionary.

    The decoder, whose state is `d_i`, starts from the encoder's last state.
    """

    Settings = DictionarySettings

    def __init__(self, features: int, num_specials: int, settings: DictionarySettings) -> None:
        super().__init__(features, num_specials, settings)
        self.decoder = decoder(settings.hidden_size, settings)
        self.output = nn.Linear(settings.hidden_size, self.num_symbols)
        init_uniform(self)

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        _, state = self.run_encoder(inputs, lengths)
        return Encoded(self.num_symbols, tuple(part[:, None] for part in state))

    def step(
        self, encoded: Encoded, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        state = self.decoder.step(self.embedding(tokens), state)
        return log_softmax(self.output(state[0])), state

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        _, state = self.run_encoder(inputs, lengths)
        if target_lengths is None:
            target_lengths = full_lengths(targets)
        states, _ = self.decoder(self.embedding(shift_right(targets)), target_lengths, state)
        return log_softmax(self.output(states))


MODEL = Seq2Seq
