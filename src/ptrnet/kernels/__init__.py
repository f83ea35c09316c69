"""Fast kernels for the formulas that take most of the time, each beside its formula.

| formula | compiled for a CPU | for a GPU | used by |
|---|---|---|---|
| `additive_formula.py` | `additive_cpu.py` | `additive_gpu.py` | recurrent networks |
| `lstm_formula.py` | `lstm_cpu.py` | PyTorch's layer | recurrent networks |
| `DecoderLayer.step` in `models/parts` | `decoder_layer_cpu.py` | | `transformer-ptr-net` |
| `frames.py` | `frames_cpu.py` | | `transformer-ptr-net` |

`additive.py` and `lstm.py` decide between a kernel and the formula. For the other two, the network
decides. `eager.py` has the conditions that they share. The package imports no models and no tasks.
"""
