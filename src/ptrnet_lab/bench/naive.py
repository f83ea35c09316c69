"""A straightforward Ptr-Net in plain PyTorch, used only as the baseline of measurements.

An `nn.LSTM` encodes, and an `LSTMCell` decodes step by step. Each step adds the projected decoder
state to every projected encoder state, and computes tanh of all sums. Numbers are float32.
"""

from typing import Self

import torch
from torch import Tensor, nn

from ptrnet.data.batches import Batch
from ptrnet.masks import gather_tokens, length_mask
from ptrnet.models.base import PointerModel
from ptrnet.types import END


class NaivePtrNet(nn.Module):
    """The network of Vinyals et al., section 2.3, for instances of one size."""

    def __init__(self, features: int, num_specials: int, units: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(features, units, batch_first=True)
        self.decoder = nn.LSTMCell(features, units)
        self.w1 = nn.Linear(units, units, bias=False)
        self.w2 = nn.Linear(units, units, bias=False)
        self.v = nn.Linear(units, 1, bias=False)
        self.special_inputs = nn.Parameter(torch.zeros(num_specials, features))
        self.special_states = nn.Parameter(torch.zeros(num_specials, units))

    @classmethod
    def from_ptr_net(cls, model: PointerModel) -> Self:
        """Return a naive copy of a Ptr-Net that has one LSTM layer and additive scores."""
        naive = cls(model.features, model.num_specials, model.settings()["hidden_size"])
        state = model.state_dict()
        for name, parameter in naive.state_dict().items():
            parameter.copy_(state[_NAMES.get(name, name)].view_as(parameter))
        return naive.to(next(model.parameters()).device)

    def log_probs(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Teacher-forced log-probabilities `(B, M, S + N)` of `(B, N, d)` inputs."""
        slots, decoder_inputs, state = self._read(inputs)
        last = torch.zeros_like(targets[:, 0])
        steps = []
        for i in range(targets.shape[1]):
            scores, state = self._step(slots, decoder_inputs, state, last)
            steps.append(scores.log_softmax(-1))
            last = targets[:, i]
        return torch.stack(steps, 1)

    def loss(self, batch: Batch) -> Tensor:
        """The mean negative log-likelihood of a token."""
        log_probs = self.log_probs(batch.inputs, batch.targets)
        likelihood = gather_tokens(log_probs, batch.targets)
        return -likelihood[length_mask(batch.target_lengths, batch.targets.shape[1])].mean()

    @torch.no_grad()
    def greedy(self, inputs: Tensor, max_tokens: int) -> Tensor:
        """Greedy tokens `(B, M)`, padded with END. M is at most `max_tokens + 1`."""
        slots, decoder_inputs, state = self._read(inputs)
        last = torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)
        done = torch.zeros_like(last, dtype=torch.bool)
        steps: list[Tensor] = []
        while len(steps) <= max_tokens and not done.all():
            scores, state = self._step(slots, decoder_inputs, state, last)
            if not steps:
                scores[:, END] = -torch.inf  # no answer is empty
            last = scores.argmax(-1)
            last[done] = END
            done |= last == END
            steps.append(last)
        return torch.stack(steps, 1)

    def _read(self, inputs: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Encoder states and decoder inputs of all tokens, and the first state of the decoder."""
        batch = len(inputs)
        states, (h, c) = self.encoder(inputs)
        slots = torch.cat([self.special_states.expand(batch, -1, -1), states], 1)
        decoder_inputs = torch.cat([self.special_inputs.expand(batch, -1, -1), inputs], 1)
        return slots, decoder_inputs, (h[0], c[0])

    def _step(
        self, slots: Tensor, decoder_inputs: Tensor, state: tuple[Tensor, Tensor], last: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Scores `(B, S + N)` of the token after `last` `(B,)`, and the new decoder state."""
        rows = torch.arange(len(last), device=last.device)
        h, c = self.decoder(decoder_inputs[rows, last], state)
        return self.v(torch.tanh(self.w1(slots) + self.w2(h)[:, None]))[..., 0], (h, c)


# Keys are names of parameters in `NaivePtrNet`, values are their names in `PtrNet`.
_LSTM_NAMES = {
    "weight_ih": "w_input",
    "weight_hh": "w_hidden",
    "bias_ih": "b_input",
    "bias_hh": "b_hidden",
}
_NAMES = {
    **{f"encoder.{name}_l0": f"encoder.{ours}" for name, ours in _LSTM_NAMES.items()},
    **{f"decoder.{name}": f"decoder.{ours}" for name, ours in _LSTM_NAMES.items()},
    "w1.weight": "key.weight",
    "w2.weight": "query.weight",
    "v.weight": "v",
}
