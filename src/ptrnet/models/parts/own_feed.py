"""What the Soft, Hard and Multi Ptr-Net share (C 2.3-2.5): they feed on their own distribution."""

from abc import abstractmethod
from dataclasses import replace

from torch import Tensor

from ptrnet.models.base import PointerModel
from ptrnet.models.ptr_net import PtrNet, Slots
from ptrnet.models.settings import OwnFeed


class OwnFeedPtrNet(PtrNet):
    """A Ptr-Net whose next input is made of `a = softmax(u)` instead of the token `C_i`.

    So the distribution at a step does not depend on the tokens before it, and a search's prefixes
    differ only in their tokens. `a` covers the special slots, too: their part of a mixture is
    their learned input, `=>` for END.

    C does not say what is fed in training. With `train_feed` "truth" it is `P_{C_i}`, as for the
    Ptr-Net, as long as the module is in training mode; with "own" it is the model's own, step by
    step. In evaluation mode it is always the model's own.
    """

    Settings = OwnFeed

    def __init__(self, features: int, specials: int, settings: OwnFeed) -> None:
        super().__init__(features, specials, settings)
        self.train_feed = settings.train_feed

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
        if self.training and self.train_feed == "truth":
            return super().log_probs(inputs, lengths, targets, target_lengths)
        return PointerModel.log_probs(self, inputs, lengths, targets, target_lengths)
