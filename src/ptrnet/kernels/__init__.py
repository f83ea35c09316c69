"""Fast kernels for the formulas that take most of the time, and the formulas in plain PyTorch.

Which network uses which kernels:

- Recurrent networks, such as `ptr-net`: some of `lstm`, `additive`, `pointer_step`, `linear` and
  `packed`.
- `transformer-ptr-net`: `decoder_layer` and `frames`.
- All other networks only use PyTorch.

Each entry function decides between a kernel and the plain formula: `additive_scores` and
`prepared_scores` in `additive`, `lstm` and `cell` in `lstm`, and `linear` in `linear`. For the
other kernels, the networks decide: `Pointer._compiled_for` in `models/ptr_net.py`, and
`TransformerPtrNet._compiled` in `models/transformer_ptr_net.py`. `eager.py` has the conditions that
these functions share. The package imports no models and no tasks.
"""
