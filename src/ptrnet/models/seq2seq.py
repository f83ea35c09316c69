"""Sequence to sequence (V 2.1): one LSTM reads, another answers from a fixed dictionary."""

from torch import Tensor, nn

from ptrnet.models.base import Encoded, all_of, shifted, start_weights
from ptrnet.models.parts.dictionary import DictionaryModel, log_softmax
from ptrnet.models.parts.layers import decoder
from ptrnet.models.settings import Dictionary


class Seq2Seq(DictionaryModel):
    """`p(C_i) = softmax(W d_i + b)` over the dictionary; the encoder's last state starts `d`."""

    Settings = Dictionary

    def __init__(self, features: int, num_specials: int, settings: Dictionary) -> None:
        super().__init__(features, num_specials, settings)
        self.decoder = decoder(settings.hidden_size, settings)
        self.output = nn.Linear(settings.hidden_size, num_specials + self.n)
        start_weights(self)

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Encoded:
        _, state = self.read(inputs, lengths)
        return Encoded(tokens=self.num_specials + self.n, state=tuple(s[:, None] for s in state))

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
        _, state = self.read(inputs, lengths)
        if target_lengths is None:
            target_lengths = all_of(targets)
        states, _ = self.decoder(self.embedding(shifted(targets)), target_lengths, state)
        return log_softmax(self.output(states))


MODEL = Seq2Seq
