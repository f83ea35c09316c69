"""What the Soft, Hard and Multi Ptr-Net share (C 2.3-2.5): they feed on their own distribution."""

from abc import abstractmethod
from dataclasses import replace

from torch import Tensor

from ptrnet.models.base import PointerModel
from ptrnet.models.ptr_net import PtrNet, Slots
from ptrnet.models.settings import FreeRunning


class FreeRunningPtrNet(PtrNet):
    """A Ptr-Net whose next input is made of `a = softmax(u)` instead of the token `C_i`.

    So the distribution at a step does not depend on the tokens before it, and a search's prefixes
    differ only in their tokens. `a` covers the special slots, too: their part of a mixture is
    their learned input, `=>` for END.

    C does not say what is fed in training. With `teacher_forcing` it is `P_{C_i}`, as for the
    Ptr-Net, as long as the module is in training mode; without it (free running) it is the mixture,
    step by step. In evaluation mode it is always the mixture.
    """

    Settings = FreeRunning

    def __init__(self, features: int, num_specials: int, settings: FreeRunning) -> None:
        super().__init__(features, num_specials, settings)
        self.teacher_forcing = settings.teacher_forcing

    @abstractmethod
    def mixture(self, a: Tensor, inputs: Tensor) -> Tensor:
        """What is fed next, `(B, K, d)`: of `a` `(B, K, S + N)` and the inputs `(B, S + N, d)`."""

    def encode(self, inputs: Tensor, lengths: Tensor | None = None) -> Slots:
        encoded = self.slots(inputs, lengths)
        first = encoded.inputs[:, :1]  # `=>`
        return replace(encoded, state=(*encoded.state, first))

    def step(
        self, encoded: Slots, state: tuple[Tensor, ...], tokens: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        *own, fed = state
        log_probs, after = self.point(encoded, fed, tuple(own))
        return log_probs, (*after, self.mixture(log_probs.exp(), encoded.inputs))

    def log_probs(
        self,
        inputs: Tensor,
        lengths: Tensor | None,
        targets: Tensor,
        target_lengths: Tensor | None = None,
    ) -> Tensor:
        if self.training and self.teacher_forcing:
            return super().log_probs(inputs, lengths, targets, target_lengths)
        return PointerModel.log_probs(self, inputs, lengths, targets, target_lengths)
