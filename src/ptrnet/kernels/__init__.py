"""Fast kernels for the formulas that take most of the time, and the formulas in plain PyTorch.

Which network uses which kernels:

- Recurrent networks, such as `ptr-net`: some of `lstm`, `additive`, `pointer_step`, `linear` and
  `packed`.
- `transformer-ptr-net`: `decoder_layer` and `frames`.
- All other networks only use PyTorch.

`eager.py` decides between a kernel and the plain formula. The package imports no models and no
tasks.
"""
