"""The Memory Ptr-Net (W 4): a second encoder carries the pointer."""

from torch import Tensor

from ptrnet.models.base import start_weights
from ptrnet.models.parts.layers import encoder
from ptrnet.models.parts.recurrent import State
from ptrnet.models.ptr_net import PtrNet
from ptrnet.models.settings import Attending


class MemoryPtrNet(PtrNet):
    """`u_j = v' tanh(W1 e'_j + W2 d_i)`: `e'` of a second encoder with its own parameters.

    The first encoder's last state starts the decoder; its other states are not used.
    """

    def __init__(self, features: int, num_specials: int, settings: Attending) -> None:
        super().__init__(features, num_specials, settings)
        self.memory = encoder(features, settings)
        start_weights(self.memory)

    def read(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        _, state = self.encoder(inputs, lengths)
        slots, _ = self.memory(inputs, lengths)
        return slots, state


MODEL = MemoryPtrNet
