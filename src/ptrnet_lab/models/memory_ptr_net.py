"""The Memory Ptr-Net (Wang and Wang 2016, 4): the pointer attends to a second encoder's states."""

from torch import Tensor

from ptrnet.models.base import init_uniform
from ptrnet.models.parts.recurrent import State, encoder
from ptrnet.models.ptr_net import PtrNet
from ptrnet.models.settings import AttentionSettings


class MemoryPtrNet(PtrNet):
    """`u_j = v' tanh(W1 e'_j + W2 d_i)`, where a second encoder with its own weights computes `e'`.

    The decoder starts from the last state of the first encoder, whose other states are not used.
    """

    def __init__(self, features: int, num_specials: int, settings: AttentionSettings) -> None:
        super().__init__(features, num_specials, settings)
        self.memory = encoder(features, settings)
        init_uniform(self.memory)

    def run_encoder(self, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, State]:
        _, state = self.encoder(inputs, lengths)
        memory_states, _ = self.memory(inputs, lengths)
        return memory_states, state
