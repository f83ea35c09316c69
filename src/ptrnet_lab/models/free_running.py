"""The Soft, Hard and Multi Ptr-Net (Chan and Sedoc 2016, 2.3 to 2.5), which do not read tokens."""

from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from ptrnet.masks import Lengths, gather_rows
from ptrnet.models.base import PointerModel
from ptrnet.models.parts.score import matmul_float32
from ptrnet.models.ptr_net import EncodedSlots, PtrNet
from ptrnet_lab.models import FreeRunningSettings, ThresholdSettings


class FreeRunningPtrNet(PtrNet):
    """A Ptr-Net whose next decoder input depends on `a = softmax(u)`, not on the token `C_i`.

    So the distribution at a step does not depend on the chosen tokens, and the prefixes of a
    search differ only in their tokens. `a` has a probability for each special slot and each
    element. `P` has a decoder input for each special slot and each element. The input for a special
    slot is a learned vector, such as `=>` for END. The input for an element is the element itself.

    The paper does not say what the decoder reads in training. With `teacher_forcing`, `log_probs`
    feeds `P_{C_i}` to the decoder in training mode, as the Ptr-Net does in every mode. In all other
    cases, the decoder reads the result of `next_input` (free running).
    """

    Settings = FreeRunningSettings

    def __init__(self, features: int, num_specials: int, settings: FreeRunningSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.teacher_forcing = settings.teacher_forcing

    @abstractmethod
    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        """The decoder's next input `(B, K, d)`, of `a` `(B, K, S + N)` and `P` `(B, S + N, d)`."""

    def encode(self, inputs: Tensor, lengths: Lengths = None) -> EncodedSlots:
        """See `PointerModel`. The state ends with the next decoder input, `=>` at first."""
        encoded = self.encode_slots(inputs, lengths)
        start_symbol = encoded.inputs[:, :1]
        return replace(encoded, state=(*encoded.state, start_symbol))

    def step(
        self, encoded: EncodedSlots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        *decoder_state, decoder_input = state
        log_probs, after = self.point(encoded, decoder_input, tuple(decoder_state))
        return log_probs, (*after, self.next_input(log_probs.exp(), encoded.inputs))

    def log_probs(
        self, inputs: Tensor, lengths: Lengths, targets: Tensor, target_lengths: Lengths = None
    ) -> Tensor:
        if self.training and self.teacher_forcing:
            return super().log_probs(inputs, lengths, targets, target_lengths)
        return PointerModel.log_probs(self, inputs, lengths, targets, target_lengths)


class SoftPtrNet(FreeRunningPtrNet):
    """2.3: the next decoder input is `sum_j a_j P_j` (see `FreeRunningPtrNet`).

    Gradients flow through the next input into `a`.
    """

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return matmul_float32(attention, inputs)


class HardPtrNet(FreeRunningPtrNet):
    """2.4: the next decoder input is `P_k` with `k = argmax a` (see `FreeRunningPtrNet`).

    The argmax has no gradient, so no gradient flows through the next input into `a`.
    """

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        return gather_rows(inputs, attention.argmax(-1))


class MultiPtrNet(FreeRunningPtrNet):
    """2.5: the next decoder input is the mean of all `P_j` with `a_j >= threshold`.

    If no `a_j` reaches the threshold, the input is `P_k` with `k = argmax a`. Neither the threshold
    nor the argmax has a gradient, so no gradient flows through the next input into `a`. Gradients
    do flow into the learned inputs of special slots. See `FreeRunningPtrNet` for `a` and `P`.
    """

    Settings = ThresholdSettings

    def __init__(self, features: int, num_specials: int, settings: ThresholdSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.threshold = settings.threshold

    def next_input(self, attention: Tensor, inputs: Tensor) -> Tensor:
        likely = attention >= self.threshold
        slots = torch.arange(attention.shape[-1], device=attention.device)
        likeliest = slots == attention.argmax(-1, keepdim=True)
        averaged = likely | (likeliest & ~likely.any(-1, keepdim=True))
        weights = averaged.to(attention.dtype)
        return matmul_float32(weights / weights.sum(-1, keepdim=True), inputs)
