"""Fast kernels for the formulas that take most of the time, and the formulas in plain PyTorch.

The package imports no models and no tasks.
"""
